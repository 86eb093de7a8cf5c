/**
 * Odd values in every field of every operation: missing, at the limits of RFC 3339, `timestamptz`,
 * `Date` and PostgreSQL's integers, of another kind, and in any mixture with values of other
 * requests. No response is a 5xx, and every response matches the document and has a message for
 * people (tests/support/service/openapi_check.ts checks every call of a test). `SEED` chooses other
 * mixtures, `RUNS` sets their number.
 */

import assert from "node:assert/strict";
import fc from "fast-check";
import * as z from "zod";
import { layersOf, memberOf, namesOf } from "../../shared/schema/requirement.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import { CATALOGUE, type CatalogueRequest } from "../support/catalogue/requests.ts";
import { fill, firstValues, type Saved, saveId } from "../support/catalogue/run_catalogue.ts";
import { fieldsWithLiterals, isNumber, isTime } from "../support/http/field_literals.ts";
import type { TestService } from "../support/service/service.ts";
import { serviceCase } from "../support/service/service_case.ts";

const SEED = Number(Deno.env.get("SEED") ?? 1);
/** The number of mixtures of each request of the catalogue. */
const RUNS = Number(Deno.env.get("RUNS") ?? 5);

/** Times near the limits of each type. An offset moves some of them out of the years 1 to 9999. */
const TIMES = [
  ...["9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.999Z"],
  ...["9999-12-31T23:59:59.9999999999999999Z", "9999-12-31T24:00:00Z", "9999-12-31T23:59:60Z"],
  ...["10000-01-01T00:00:00Z", "+010000-01-01T00:00:00Z", "+275760-09-13T00:00:00Z"],
  ...["0000-01-01T00:00:00Z", "0000-01-01T00:00:00+14:00", "0001-01-01T00:00:00+23:59"],
  ...["0001-01-01T00:00:00Z", "-000001-01-01T00:00:00Z", "-271821-04-20T00:00:00Z"],
  ...["1969-12-31T23:59:59.999Z", "3084-12-31T00:00:00Z", "2030-02-29T00:00:00Z"],
  ...["2030-01-01T00:00Z", "infinity", ""],
];
/** JSON literals, written into the body unchanged. */
const NUMBERS: (string | undefined)[] = [
  ...["-1", "0", "-0", "1e0", "1.5", "2147483647", "2147483648", "-2147483649"],
  ...["9007199254740991", "9007199254740993", "9223372036854775807", "9223372036854775808"],
  ...["1e22", "1e308", "1e400", "-1e400", "1e-400", "null", '"12"', '"nonsense!"', undefined],
];
/** Values of any field. Undefined: the field is missing. */
const ODD: unknown[] = [
  ...[
    undefined,
    null,
    true,
    0.5,
    "",
    " ",
    "\u0000",
    "\ud800",
    "💶",
    "a".repeat(600),
    "' or 1=1 --",
  ],
  ...[[], {}, [[[[]]]], [null], { "": "" }, { constructor: 1 }],
];
const anything = fc.oneof(
  fc.constantFrom(...ODD),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.integer(),
  fc.jsonValue({ maxDepth: 3 }),
);

/** The members that a field of this name needs beside those of the catalogue, or in their place. */
const BASES: Record<string, Record<string, unknown>> = {
  amount_minor: { amount: undefined },
  to: { advance: undefined },
  mandate: {
    iban: "DE89 3704 0044 0532 0130 00",
    mandate: { id: "M-1", signed_at: "2026-01-31", sequence: "recurring" },
  },
};
/** The names of fields that were odd, by the schema that has them. */
type Done = Map<z.ZodType, Set<string>>;
/** The operations that have accepted an odd request. */
const accepting = new Set<string>();
/** Resources of which a sandbox takes few, or that would change later requests. */
const REMOVED = /\/(faults|webhook_endpoints|api_keys)$/;

serviceCase("no odd value of a request is a 5xx, and the document describes each response", async (
  t,
  service,
) => {
  const saved = firstValues();
  const known = new Map<string, unknown[]>();
  const done: Done = new Map();
  for (const request of CATALOGUE) {
    await t.step(`${request.operation} ${request.name}, seed ${SEED}`, async () => {
      const { method, path, body, options } = fill(request, saved);
      const response = await service.call(method, path, options);
      assert.ok(response.status < 500, response.text);
      // An odd request before it can have made the same move.
      if (response.status < 300) saveId(request, response.body, saved);
      for (const [name, value] of Object.entries(body ?? {})) {
        known.set(name, [...known.get(name) ?? [], value]);
      }
      await sendOddQueries(service, request, saved, done);
      await sendOddFields(service, request, saved, done);
      await sendMixtures(service, request, saved, known);
    });
  }
  assert.ok(accepting.size >= 20, [...accepting].join(" "));
}, { request_log: true, rate_limit: 100_000 });

function operationOf({ operation }: CatalogueRequest) {
  return ADDRESSES.find(({ id }) => id === operation)!.operation;
}

async function send(
  service: TestService,
  operation: string,
  method: string,
  path: string,
  body?: string,
) {
  const { status, text, body: made } = await service.call(method, path, { body });
  assert.ok(status < 500, `${method} ${path} ${body}: ${text}`);
  if (status < 300) accepting.add(operation);
  if (status === 201 && REMOVED.test(path)) await service.call("DELETE", `${path}/${made.id}`);
}

/** Whether a field of a schema, which several operations can have, comes for the first time. */
function isFirst(done: Done, schema: z.ZodType, name: string): boolean {
  const names = done.get(schema) ?? new Set();
  const is_first = !names.has(name);
  done.set(schema, names.add(name));
  return is_first;
}

function valuesFor(schema: z.ZodType): readonly unknown[] {
  if (isTime(schema)) return TIMES;
  if (isNumber(schema)) return NUMBERS;
  return layersOf(schema).at(-1) instanceof z.ZodEnum ? [undefined, null, 5, "nonsense!"] : ODD;
}

async function sendOddQueries(
  service: TestService,
  request: CatalogueRequest,
  saved: Saved,
  done: Done,
): Promise<void> {
  const { query } = operationOf(request);
  const { method, path } = fill({ ...request, query: "" }, saved);
  for (const name of namesOf(query)) {
    if (!isFirst(done, query, name)) continue;
    const schema = memberOf(query, name)!;
    for (const value of valuesFor(schema)) {
      await send(
        service,
        request.operation,
        method,
        `${path}?${name}=${encodeURIComponent(String(value).toWellFormed())}`,
      );
    }
  }
}

/** Sends each field of a body with each odd value, in the request of the catalogue that has it. */
async function sendOddFields(
  service: TestService,
  request: CatalogueRequest,
  saved: Saved,
  done: Done,
): Promise<void> {
  const { method, path, body = {} } = fill(request, saved);
  const others = CATALOGUE.filter(({ operation }) => operation === request.operation);
  const schema_of_body = operationOf(request).body;
  for (const { name, schema, withLiteral } of fieldsWithLiterals(schema_of_body)) {
    const [outer] = name.split(/[.[]/) as [string];
    const is_elsewhere = !(outer in body) && others.some((other) => outer in (other.body ?? {}));
    if (is_elsewhere || !isFirst(done, schema_of_body, name)) continue;
    const values = valuesFor(schema);
    const literals = values === NUMBERS ? NUMBERS : values.map((value) => JSON.stringify(value));
    for (const literal of literals) {
      await send(
        service,
        request.operation,
        method,
        path,
        withLiteral({ ...body, ...BASES[outer] }, literal),
      );
    }
  }
}

/** Sends a body with up to three members that other requests have, or that are anything. */
async function sendMixtures(
  service: TestService,
  request: CatalogueRequest,
  saved: Saved,
  known: ReadonlyMap<string, unknown[]>,
): Promise<void> {
  const names = namesOf(operationOf(request).body);
  if (names.length === 0) return;
  const { method, path, body } = fill(request, saved);
  const valueOf = (name: string) =>
    known.has(name)
      ? fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known.get(name)!) }, anything)
      : anything;
  const mixtures = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }).chain((
    some,
  ) => fc.record(Object.fromEntries(some.map((name) => [name, valueOf(name)]))));
  const property = fc.asyncProperty(
    mixtures,
    (mixture) =>
      send(service, request.operation, method, path, JSON.stringify({ ...body, ...mixture })),
  );
  await fc.assert(property, { numRuns: RUNS, seed: SEED });
}
