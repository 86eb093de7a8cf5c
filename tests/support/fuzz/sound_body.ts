/**
 * Generates bodies that an operation should accept: those of the catalogue, with texts of the
 * merchant that the schema allows.
 */

import fc from "fast-check";
import { CATALOGUE } from "../catalogue/requests.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Members that fit to every body. */
const TEXTS = ["description", "reference", "metadata"];

/**
 * Makes bodies that an operation should accept from bodies that its schema allows, in which each
 * known id is one that exists.
 */
export function soundBody(operation_id: string, mixed: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  const main_id = operation_id.replace(/V1$/, "");
  const bodies = CATALOGUE.flatMap(({ operation, body }) =>
    operation === main_id && body ? [body] : []
  );
  if (bodies.length === 0) return mixed;
  return fc.record({ body: fc.constantFrom(...bodies), mixed }).map(({ body, mixed }) => ({
    ...pick(mixed, TEXTS),
    ...body,
    ...pick(mixed, Object.keys(body).filter((name) => String(body[name]).startsWith("$"))),
    ...("since" in body && { since: new Date(Date.now() - 60_000).toISOString() }),
  }));
}

function pick(value: Json, names: readonly string[]): Json {
  return Object.fromEntries(names.flatMap((name) => name in value ? [[name, value[name]]] : []));
}
