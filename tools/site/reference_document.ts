/**
 * The OpenAPI document of the reference page: the served document with code samples for every
 * operation. The served document leaves them out, because generators of clients do not need them.
 */

import { isId } from "../../shared/core/ids.ts";
import { METRICS_TYPE } from "../../shared/http/internal_routes.ts";
import { OPENAPI_GZIP } from "../../shared/http/openapi_document.ts";
import { unpackDocument } from "../../shared/http/openapi_route.ts";
import { pathKind } from "../../shared/http/path_id.ts";
import { codeSamples, type SampleCall } from "../generate/code_samples/code_samples.ts";
import { KEY_VARIABLE } from "../generate/code_samples/snippets.ts";
import { type Examples, examplesIn } from "../generate/openapi/examples.ts";
import { mainOperation } from "../generate/openapi/operations.ts";
import type { Json } from "../generate/openapi/schemas.ts";

/** The parts of the document that this module reads and changes. */
interface Document extends Json {
  servers: Json[];
  paths: Record<string, Record<string, DocumentedOperation>>;
  components: { parameters: Record<string, Json> };
}

export interface DocumentedOperation extends Json {
  operationId: string;
  parameters?: Json[];
  responses: Record<number, { content?: Json }>;
  /** Without it the operation takes an API key. */
  security?: Json[];
}

/**
 * Builds the document.
 * @param base_url base URL of the service, for the samples
 * @param server_url base URL for the requests of the page, or its path on the origin of the page
 */
export async function buildReferenceDocument(base_url: string, server_url: string): Promise<Json> {
  const document = JSON.parse(await unpackDocument(OPENAPI_GZIP)) as Document;
  document.servers = [{ url: server_url, description: "This service" }];
  const examples = examplesIn(document);
  untick(Object.values(document.components.parameters));
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      untick(operation.parameters);
      operation["x-codeSamples"] = codeSamples(
        sampleCall(operation, method.toUpperCase(), path, base_url, examples),
      );
    }
  }
  return document;
}

/**
 * Leaves optional parameters out of a request until the reader ticks them. Scalar would tick each
 * one for which it finds a value: a default, or the first of a list, which has a schema of its own.
 */
function untick(parameters: Json[] = []): void {
  for (const parameter of parameters) {
    const schema = (parameter["schema"] ?? {}) as Json;
    if (parameter["required"] || !["default", "enum", "$ref"].some((name) => name in schema)) {
      continue;
    }
    parameter["examples"] = { default: { "x-disabled": true, value: schema["default"] } };
  }
}

/** The request that the samples of an operation show: its first example, at its own address. */
export function sampleCall(
  { operationId: operation_id, security, parameters = [], responses }: DocumentedOperation,
  method: string,
  path: string,
  base_url: string,
  { operations }: Examples,
): SampleCall {
  const [request] = Object.values(operations[mainOperation(operation_id)]?.requests ?? {});
  const id = idInPath(path, operations);
  const own_path = path.replace(/\{(id|key|customer)\}/, id ?? "");
  const [required] = parameters.filter(({ required, in: place }) => required && place === "query");
  const query = required ? `?${required.name}=${encodeURIComponent(String(required.example))}` : "";
  const is_list = parameters.some(({ $ref }) => $ref === "#/components/parameters/Limit");
  const secret = security === undefined
    ? KEY_VARIABLE
    : security.length === 0
    ? null
    : "RELAY_TOKEN";
  return {
    operation_id,
    method,
    path: own_path + (is_list ? "?limit=1" : query),
    base_url,
    body: request?.value ?? null,
    id,
    secret,
    reads: responses[200]?.content?.[METRICS_TYPE] === undefined ? "json" : "text",
  };
}

/** The first id of the kind, or the first idempotency key, in the examples; null without one. */
function idInPath(path: string, operations: Examples["operations"]): string | null {
  if (path.includes("{key}")) {
    return Object.values(operations["getIdempotencyKey"]!.responses!)[0]!.value["key"] as string;
  }
  if (path.includes("{customer}")) {
    return Object.values(operations["eraseCustomer"]!.responses!)[0]!.value["id"] as string;
  }
  const kind = pathKind(path);
  if (kind === null) return null;
  const texts = JSON.stringify(operations).split('"');
  return texts.find((text) => isId(kind.prefix, text))!;
}
