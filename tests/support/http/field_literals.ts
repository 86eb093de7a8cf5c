/** The fields of a body by its zod schema, each with a body that has any literal of JSON there. */

import * as z from "zod";
import { layersOf, memberOf } from "../../../shared/schema/requirement.ts";

type Step = string | number;

interface Field {
  path: Step[];
  schema: z.ZodType;
}

/** Stands for the literal in the text of a body. */
const MARK = "MARK";

/** Valid objects around a field, by their names, for bodies without them. */
const AROUND: Record<string, object> = {
  address: { city: "Berlin", country: "DE" },
  card: { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" },
  customer: { email: "ada@example.com" },
  iban: { iban: "DE89 3704 0044 0532 0130 00" },
  wallet: { address: "0x000000000000000000000000000000000000dEaD" },
};

/** Returns each field of a body. `withLiteral` makes the text of a body from a valid one. */
export function fieldsWithLiterals(body: z.ZodType) {
  return fieldsOf(body, []).map(({ path, schema }) => ({
    name: path.map((step) => typeof step === "number" ? `[${step}]` : `.${step}`).join("").slice(1),
    schema,
    /** Undefined leaves the field out. */
    withLiteral(valid: object, literal: string | undefined): string {
      const mark = literal === undefined ? undefined : MARK;
      return JSON.stringify(put(valid, path, mark)).replace(`"${MARK}"`, () => literal!);
    },
  }));
}

/** Whether a field is a time. A text of another kind accepts the day that no year has. */
export function isTime(schema: z.ZodType): boolean {
  return accepts(schema, "2026-01-31T09:00:00Z") && !accepts(schema, "2030-02-31T00:00:00Z");
}

/** Whether a field is a number, or a parameter of a query with the digits of one. */
export function isNumber(schema: z.ZodType): boolean {
  return innermost(schema) instanceof z.ZodNumber || accepts(schema, "7") && !accepts(schema, "x");
}

function fieldsOf(schema: z.ZodType, path: Step[]): Field[] {
  const inner = innermost(schema);
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.keys(inner.shape).flatMap((name) => {
    const member = memberOf(schema, name)!;
    const here = [...path, name];
    const item = innermost(member) instanceof z.ZodArray
      ? [{ path: [...here, 0], schema: memberOf(member, 0)! }]
      : [];
    return [{ path: here, schema: member }, ...item, ...fieldsOf(member, here)];
  });
}

function put(object: object, [step, ...rest]: readonly Step[], value: unknown): object {
  const copy = (Array.isArray(object) ? [...object] : { ...object }) as Record<Step, unknown>;
  const inner = copy[step!];
  const around = typeof rest[0] === "number" ? [] : AROUND[step!] ?? {};
  copy[step!] = rest.length === 0
    ? value
    : put(typeof inner === "object" && inner !== null ? inner : around, rest, value);
  return copy;
}

function accepts(schema: z.ZodType, value: unknown): boolean {
  return schema.safeParse(value).success;
}

function innermost(schema: z.ZodType): z.ZodType {
  return layersOf(schema).at(-1)!;
}
