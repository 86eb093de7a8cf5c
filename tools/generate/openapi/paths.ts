/** Builds `paths`: every address of every operation, and the addresses without an API key. */

import { idPattern } from "../../../shared/core/ids.ts";
import { METRICS_TYPE } from "../../../shared/http/internal_routes.ts";
import { PAYMENTS_FUNCTION, type Route, SANDBOX_FUNCTION } from "../../../shared/http/route.ts";
import { pathKind } from "../../../shared/http/path_id.ts";
import {
  DEFAULT_PAGE,
  MAX_CUSTOMER_ID,
  MAX_IDEMPOTENCY_KEY,
  MAX_PAGE,
} from "../../../shared/schema/limits.ts";
import { memberOf } from "../../../shared/schema/requirement.ts";
import { EmptyBody } from "../../../shared/schema/empty.ts";
import { DispatcherAwake, Health, Purged } from "../../../shared/schema/service.ts";
import { errorRefs, errorResponses } from "./errors.ts";
import type { Examples } from "./examples.ts";
import { EVERY_RESPONSE, headerRefs, WITH_KEY } from "./headers.ts";
import { type Address, ADDRESSES } from "./operations.ts";
import { type Json, queryProperties, schemaRef } from "./schemas.ts";

export const COMPONENT_PARAMETERS: Record<string, Json> = {
  IdempotencyKeyHeader: {
    name: "Idempotency-Key",
    in: "header",
    description: "A unique name for this operation, such as a UUID. If you send the same request " +
      "again within 24 hours, it changes nothing and gets the first response.",
    schema: {
      type: "string",
      minLength: 1,
      maxLength: MAX_IDEMPOTENCY_KEY,
      pattern: "^[\\x21-\\x7e]+$",
    },
  },
  Limit: {
    name: "limit",
    in: "query",
    description: "Maximum number of items on a page",
    schema: { type: "integer", minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE },
  },
};

/** Tag of aliases: operations at further addresses. */
export const ALIASES_TAG = "Aliases";
/** Tag of the addresses without an API key: health, the document, and the operator's calls. */
export const SERVICE_TAG = "Service";

export function paths(examples: Examples["operations"]): Record<string, Json> {
  const items: Record<string, Json> = {};
  for (const address of ADDRESSES) {
    const { operation, path } = address;
    (items[path] ??= {})[operation.method.toLowerCase()] = describe(address, examples);
  }
  return { ...items, ...keylessPaths() };
}

function describe(
  { id, operation, path, alias_of }: Address,
  examples: Examples["operations"],
): Json {
  const { group, summary, description = "", method, scope, test_only } = operation;
  const notes = [
    ...(alias_of === null ? [description] : [`The same operation as \`${method} ${alias_of}\`.`]),
    scope === null ? "Needs no scope." : `Scope: \`${scope}\`.`,
    ...(test_only ? ["Test keys only."] : []),
  ];
  const list = parameters(operation, path);
  // Only the main address has the examples.
  const { requests, responses } = alias_of === null && examples[id] || {};
  return {
    operationId: id,
    tags: [alias_of === null ? group : ALIASES_TAG],
    summary: alias_of === null ? summary : `${summary} (${path.replace(/\/\{id\}.*/, "")})`,
    description: notes.filter((note) => note !== "").join(" "),
    ...(list.length > 0 && { parameters: list }),
    ...requestBody(operation, { examples: requests }),
    responses: {
      [operation.status]: success(operation, { examples: responses }),
      ...errorResponses(operation),
    },
  };
}

function parameters(operation: Route, path: string): Json[] {
  const query = Object.entries(queryProperties(operation.query)).map(([name, property]) => {
    if (name === "limit") return { $ref: "#/components/parameters/Limit" };
    const { description, example, ...schema } = property;
    const is_required = !memberOf(operation.query, name)!.safeParse(undefined).success;
    return {
      name,
      in: "query",
      description,
      schema,
      ...(is_required && { required: true, example }),
    };
  });
  return [
    ...(path.includes("{id}") ? [idParameter(path)] : []),
    ...(path.includes("{key}") ? [KEY_PARAMETER] : []),
    ...(path.includes("{customer}") ? [CUSTOMER_PARAMETER] : []),
    ...query,
    ...(operation.method === "GET"
      ? []
      : [{ $ref: "#/components/parameters/IdempotencyKeyHeader" }]),
  ];
}

const KEY_PARAMETER: Json = {
  name: "key",
  in: "path",
  required: true,
  description: "The idempotency key, percent-encoded",
  schema: { type: "string", minLength: 1, maxLength: MAX_IDEMPOTENCY_KEY },
};

/** The merchant's own id of a customer in a path. */
const CUSTOMER_PARAMETER: Json = {
  name: "customer",
  in: "path",
  required: true,
  description: "Your own id of the customer, percent-encoded",
  schema: { type: "string", minLength: 1, maxLength: MAX_CUSTOMER_ID },
};

function idParameter(path: string): Json {
  const { prefix, noun } = pathKind(path)!;
  return {
    name: "id",
    in: "path",
    required: true,
    description: `Id of the ${noun}`,
    schema: { type: "string", pattern: idPattern(prefix).source },
  };
}

function requestBody({ method, body }: Route, examples: Json): Json {
  if (method === "GET" || body === EmptyBody) return {};
  return {
    requestBody: {
      required: !body.safeParse({}).success,
      content: { "application/json": { schema: schemaRef(body), ...examples } },
    },
  };
}

const STATUS_WORDS = { 200: "OK", 201: "Created", 202: "Accepted" } as const;

function success(
  { method, status, response, media_type = "application/json" }: Route,
  examples: Json,
): Json {
  return {
    description: STATUS_WORDS[status],
    headers: headerRefs([
      ...WITH_KEY,
      ...(method === "GET" ? [] : ["Idempotent-Replayed"]),
      ...(status === 201 ? ["Location"] : []),
    ]),
    content: { [media_type]: { schema: schemaRef(response), ...examples } },
  };
}

const DATABASE_ERRORS = ["origin_not_allowed", "internal_error", "service_unavailable"] as const;
const DOCUMENT_HEADERS = {
  ...headerRefs(["Request-Id", "X-Content-Type-Options", "ETag"]),
  // Other responses may not be stored.
  "Cache-Control": headerRefs(["Document-Cache-Control"])["Document-Cache-Control"],
};

/** Path items of the addresses without an API key. */
function keylessPaths(): Record<string, Json> {
  return {
    [`/${PAYMENTS_FUNCTION}/health`]: health("getPaymentsHealth", "the payments function"),
    [`/${SANDBOX_FUNCTION}/health`]: health("getSandboxHealth", "the sandbox function"),
    [`/${PAYMENTS_FUNCTION}/v1/openapi.json`]: keyless("get", {
      operationId: "getOpenapiDocument",
      summary: "This document",
      description:
        "Needs no key. Any web page may read it. The first of `servers` is this service.",
      security: [],
      parameters: [{
        name: "If-None-Match",
        in: "header",
        description:
          "The `ETag` of your copy. If the document has not changed, the response is 304",
        schema: { type: "string" },
      }],
      responses: {
        200: {
          description: "An OpenAPI 3.1 document",
          headers: DOCUMENT_HEADERS,
          content: { "application/json": { schema: { type: "object" } } },
        },
        304: { description: "Your copy is the current version", headers: DOCUMENT_HEADERS },
        ...errorRefs(["rate_limited", "internal_error"]),
      },
    }),
    ...scheduledCall("relay", "post", {
      operationId: "wakeDispatcher",
      summary: "Wake the delivery of webhooks",
      description:
        "The operator's scheduler calls this every few seconds. It starts due deliveries.",
    }, {
      202: plainResponse("The dispatcher is awake", schemaRef(DispatcherAwake), {
        status: "awake",
      }),
    }),
    ...scheduledCall("retention", "post", {
      operationId: "purgeOutlivedData",
      summary: "Delete expired data",
      description:
        "The operator's scheduler calls this every few minutes. A call works for about 2 s.",
    }, {
      200: plainResponse("The number of deleted rows", schemaRef(Purged), { purged: 0 }),
    }),
    ...scheduledCall("metrics", "get", {
      operationId: "getMetrics",
      summary: "Metrics of the service",
      description: "The operator's Prometheus reads this, in its text form.",
    }, {
      200: {
        description: "One gauge for each number about the service",
        headers: headerRefs(EVERY_RESPONSE),
        content: { [METRICS_TYPE]: { schema: { type: "string" } } },
      },
    }),
  };
}

function keyless(method: "get" | "post", { operationId, ...operation }: Json): Json {
  return { [method]: { operationId, tags: [SERVICE_TAG], ...operation } };
}

function health(operationId: string, name: string): Json {
  return keyless("get", {
    operationId,
    summary: `Health of ${name}`,
    description: "Needs no key.",
    security: [],
    responses: {
      200: plainResponse("The database responds", schemaRef(Health), { status: "ok" }),
      ...errorRefs(DATABASE_ERRORS),
    },
  });
}

/** The path item of a call with the operator's token. */
function scheduledCall(
  name: string,
  method: "get" | "post",
  operation: Json,
  success: Record<number, Json>,
): Record<string, Json> {
  const responses = { ...success, ...errorRefs(["unauthorized", ...DATABASE_ERRORS]) };
  return {
    [`/${PAYMENTS_FUNCTION}/internal/${name}`]: keyless(method, {
      ...operation,
      security: [{ relay_token: [] }],
      responses,
    }),
  };
}

function plainResponse(description: string, schema: Json, example: Json): Json {
  return {
    description,
    headers: headerRefs(EVERY_RESPONSE),
    content: { "application/json": { schema, example } },
  };
}
