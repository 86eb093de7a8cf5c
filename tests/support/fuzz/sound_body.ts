/**
 * Generates bodies that an operation should accept: those of the catalogue with other amounts, and
 * with further members that its schema allows.
 */

import fc from "fast-check";
import { mainOperation } from "../../../tools/generate/openapi/operations.ts";
import { CATALOGUE } from "../catalogue/requests.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** Members that fit to every body. */
const TEXTS = ["description", "reference", "metadata"];
/** Members that must fit to others, which a schema cannot express. */
const DEPENDENT = [
  ...["amount", "amount_minor", "currency", "capability", "method_kind", "card", "iban", "wallet"],
  ...["mandate", "destination", "speed", "amount_received", "return_code", "reason", "until"],
  ...["starting_after", "to", "advance", "url", "delivery", "save", "instrument", "off_session"],
];
/** The two names of one field. */
const PAYERS = ["customer", "payer"];

/**
 * Makes bodies that an operation should accept from bodies that its schema allows, in which each
 * known id is one that exists.
 */
export function soundBody(operation_id: string, mixed: fc.Arbitrary<Json>): fc.Arbitrary<Json> {
  const main_id = mainOperation(operation_id);
  const bodies = CATALOGUE.flatMap(({ operation, body }) =>
    operation === main_id && body ? [body] : []
  );
  if (bodies.length === 0) return mixed;
  return fc.record({
    body: fc.constantFrom(...bodies),
    mixed,
    is_varied: fc.boolean(),
    share: fc.double({ min: 0.01, max: 1, noNaN: true }),
  }).map(({ body, mixed, is_varied, share }) => {
    const known = Object.keys(body);
    const has_payer = PAYERS.some((name) => known.includes(name));
    const further = Object.keys(mixed).filter((name) =>
      !DEPENDENT.includes(name) && !(has_payer && PAYERS.includes(name))
    );
    return {
      ...pick(mixed, is_varied ? further : TEXTS),
      ...body,
      ...("amount" in body && { amount: Math.ceil(body["amount"] as number * share) }),
      ...pick(mixed, known.filter((name) => String(body[name]).startsWith("$"))),
      ...("since" in body && { since: new Date(Date.now() - 60_000).toISOString() }),
    };
  });
}

function pick(value: Json, names: readonly string[]): Json {
  return Object.fromEntries(names.flatMap((name) => name in value ? [[name, value[name]]] : []));
}
