/**
 * Times and numbers at the limits of RFC 3339, `timestamptz`, `Date` and PostgreSQL's integers, in
 * every such field of every request of the OpenAPI document. No response is a 5xx.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { bodyOf } from "../support/http/routes.ts";
import { APPROVED, assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const DOCUMENT: Json = JSON.parse(
  await Deno.readTextFile(new URL("../../docs/openapi.json", import.meta.url)),
);

/** Times near the limits of each type. An offset moves some of them out of the years 1 to 9999. */
const TIMES = [
  "9999-12-31T23:59:59-14:00",
  "9999-12-31T23:59:59-23:59",
  "9999-12-31T23:59:59.999Z",
  "9999-12-31T23:59:59.9999999999999999Z",
  "9999-12-31T24:00:00Z",
  "9999-12-31T23:59:60Z",
  "10000-01-01T00:00:00Z",
  "+010000-01-01T00:00:00Z",
  "+275760-09-13T00:00:00Z",
  "0000-01-01T00:00:00Z",
  "0000-01-01T00:00:00+14:00",
  "0001-01-01T00:00:00+23:59",
  "0001-01-01T00:00:00Z",
  "-000001-01-01T00:00:00Z",
  "-271821-04-20T00:00:00Z",
  "1969-12-31T23:59:59.999Z",
  "3084-12-31T00:00:00Z",
  "2030-02-29T00:00:00Z",
  "2030-01-01T00:00Z",
  "infinity",
  "",
];
/** JSON literals, written into the body unchanged. */
const NUMBERS = [
  "-1",
  "0",
  "-0",
  "1e0",
  "1.5",
  "2147483647",
  "2147483648",
  "-2147483649",
  "9007199254740991",
  "9007199254740993",
  "9223372036854775807",
  "9223372036854775808",
  "1e22",
  "1e308",
  "1e400",
  "-1e400",
  "1e-400",
  "null",
];

/** A field of a request that is a time or a number. */
interface Field {
  method: string;
  path: string;
  /** The schema of the body; null: the field is a parameter of the query. */
  schema: string | null;
  name: string;
  members: string[];
  values: string[];
}

/** Bodies to which every such field can be added, where those of the catalogue exclude some. */
const BODIES: Record<string, Json> = {
  AdvancePaymentBody: { to: "processing" },
  CapturePaymentBody: {},
  CreateRefundBody: {},
  SetClockBody: {},
  CreateFaultBody: { on: "request", fault: "delay", delay_ms: 1 },
};

function resolve(schema: Json): Json {
  return schema?.$ref ? DOCUMENT.components.schemas[schema.$ref.split("/").at(-1)] : schema;
}

/** Paths to every time and number in a schema. */
function fieldsOf(schema: Json, members: string[] = []): [string[], string[]][] {
  const resolved = resolve(schema) ?? {};
  if (resolved.format === "date-time") return [[members, TIMES.map((t) => JSON.stringify(t))]];
  if (["integer", "number"].includes(resolved.type)) return [[members, NUMBERS]];
  const branches = [...resolved.anyOf ?? [], ...resolved.oneOf ?? [], ...resolved.allOf ?? []];
  return [
    ...branches.flatMap((branch: Json) => fieldsOf(branch, members)),
    ...Object.entries(resolved.properties ?? {}).flatMap(([name, property]) =>
      fieldsOf(property, [...members, name])
    ),
  ];
}

/**
 * Collects the fields from the document: times and numbers of bodies, times and `limit` of queries.
 */
function requestFields(): Field[] {
  const fields: Field[] = [];
  for (const [path, methods] of Object.entries<Json>(DOCUMENT.paths)) {
    for (const [method, operation] of Object.entries<Json>(methods)) {
      if (path.includes("/internal/")) continue;
      for (const named of operation.parameters ?? []) {
        const parameter = named.$ref
          ? DOCUMENT.components.parameters[named.$ref.split("/").at(-1)]
          : named;
        if (parameter.in !== "query") continue;
        const is_time = parameter.schema.format === "date-time";
        if (!is_time && parameter.name !== "limit") continue;
        const values = is_time ? TIMES : NUMBERS;
        fields.push({
          ...{ method, path, schema: null, name: parameter.name },
          ...{ members: [parameter.name], values },
        });
      }
      const body = operation.requestBody?.content["application/json"].schema;
      if (!body) continue;
      const schema = body.$ref?.split("/").at(-1) ?? path;
      for (const [members, values] of fieldsOf(body)) {
        fields.push({ method, path, schema, name: members.join("."), members, values });
      }
    }
  }
  return fields;
}

/** The body as text, with one member replaced. */
function bodyWith(body: Json, [first, ...rest]: string[], value: string): string {
  const others = Object.entries(body).filter(([name]) => name !== first)
    .map(([name, member]) => `${JSON.stringify(name)}:${JSON.stringify(member)}`);
  const inner = first === "card" ? APPROVED.card.card : body[first!] ?? {};
  const member = rest.length === 0 ? value : bodyWith(inner, rest, value);
  return `{${[...others, `${JSON.stringify(first)}:${member}`].join(",")}}`;
}

/** The id of an existing resource for a path. */
async function resourceIn(service: TestService, path: string): Promise<string> {
  if (path.includes("/api_keys/")) return (await service.issueKey(service.key.environment_id)).id;
  if (path.includes("/webhook_endpoints/")) {
    const made = await service.call("POST", "/api-v1-payments/v1/webhook_endpoints", {
      body: { url: "http://127.0.0.1:47999/hook" },
    });
    return made.body.id;
  }
  // Only a payment with an address takes amount_received.
  if (/(payments|sandbox)\/\{id\}\/advance$/.test(path)) {
    return (await service.pay({ currency: "USDC", method_kind: "stablecoin" })).body.id;
  }
  return (await service.pay({ ...APPROVED.card })).body.id;
}

const FIELDS = requestFields();

Deno.test("requestFields() finds the times and numbers of all requests", () => {
  const names = new Set(FIELDS.map(({ name }) => name));
  for (
    const name of [
      ...["limit", "created_after", "created_before", "expires_at", "expires_in", "amount"],
      ...["amount_minor", "card.exp_month", "card.exp_year"],
    ]
  ) {
    assert.ok(names.has(name), `${name} is not among ${[...names]}`);
  }
});

serviceCase("times and numbers at the limits of their types", async (t, service) => {
  for (const { method, path, schema, name, members, values } of FIELDS) {
    await t.step(`${method.toUpperCase()} ${path}, ${name}: no 5xx`, async () => {
      const id = path.includes("{id}") ? await resourceIn(service, path) : "";
      const body = schema && (BODIES[schema] ?? bodyOf(method.toUpperCase(), path));
      const has_body = !schema || schema in BODIES || Object.keys(body).length > 0;
      assert.ok(has_body, `no sound body of ${schema}`);
      for (const value of values) {
        const query = schema ? "" : `?${name}=${encodeURIComponent(value)}`;
        const response = await service.call(
          method.toUpperCase(),
          path.replace("{id}", id) + query,
          schema ? { body: bodyWith(body, members, value) } : {},
        );
        assert.ok(response.status < 500, `${value}: ${response.status} ${response.text}`);
        const is_received = name === "amount_received" && value === "2147483647";
        if (is_received) assert.equal(response.body.amount_received, 2147483647, response.text);
      }
    });
  }
  await t.step("a time whose offset moves it past the year 9999 in UTC is 400", async () => {
    const time = "9999-12-31T23:59:59-14:00";
    const made = await service.call("POST", "/api-v1-payments/v1/api_keys", {
      body: { name: "x", expires_at: time },
    });
    assertRefused(made, 400, "invalid_parameter", "expires_at");
    for (const name of ["created_after", "created_before"]) {
      for (const list of [PAYMENTS, "/api-v1-payments/v1/transfers"]) {
        const listed = await service.call("GET", `${list}?${name}=${time}`);
        assertRefused(listed, 400, "invalid_parameter", name);
      }
    }
  });
  await t.step("the last time of the year 9999 in UTC is accepted", async () => {
    const made = await service.call("POST", "/api-v1-payments/v1/api_keys", {
      body: { name: "x", expires_at: "9999-12-31T13:59:59.999-10:00" },
    });
    assert.equal(made.status, 201, made.text);
    assert.equal(made.body.secrets[0].expires_at, "9999-12-31T23:59:59.999Z");
  });
});
