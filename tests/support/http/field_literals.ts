/** The fields of a body by its zod schema, each with a valid body around it. */

import * as z from "zod";
import { isOptional, layersOf, memberOf } from "../../../shared/schema/requirement.ts";

/** Valid values of fields whose form their schema does not describe. */
const SOUND: Readonly<Record<string, unknown>> = {
  currency: "EUR",
  number: "4242 4242 4242 4242",
  exp_month: 12,
  exp_year: 2034,
  cvc: "123",
  iban: "DE89 3704 0044 0532 0130 00",
  wallet: "0x000000000000000000000000000000000000dEaD",
  address: "0x000000000000000000000000000000000000dEaD",
  bic: "COBADEFF",
  email: "ada@example.com",
  url: "https://example.com/webhooks",
  endpoint_id: `whe_${"0".repeat(26)}`,
  payment_id: `pay_${"0".repeat(26)}`,
  expires_at: "2034-01-31T09:00:00Z",
  since: "2026-01-31T09:00:00Z",
  signed_at: "2026-01-31",
  metadata: { order: "1001" },
};

type Step = string | number;

/** Stands for the literal in the text of a body. */
const MARK = "MARK";

/** Returns each field of a body, which `withLiteral` makes a text with a literal of JSON in it. */
export function fieldsWithLiterals(body: z.ZodType) {
  return fieldsOf(body, []).map(({ path, schema }) => ({
    name: nameOf(path),
    schema,
    /** Undefined leaves the field out. */
    withLiteral(base: object, literal: string | undefined): string {
      const sound = merged(soundObject(body, path), base);
      const mark = literal === undefined ? undefined : MARK;
      return JSON.stringify(put(sound, path, mark)).replace(`"${MARK}"`, () => literal!);
    },
  }));
}

/** Members of both; those of the second win, unless the first has an object in place of a text. */
function merged(sound: unknown, base: unknown): unknown {
  if (typeof sound !== "object" || sound === null) return base;
  if (typeof base !== "object" || base === null || Array.isArray(base)) return sound;
  const all = { ...base } as Record<string, unknown>;
  for (const [name, member] of Object.entries(sound)) {
    all[name] = name in base ? merged(member, all[name]) : member;
  }
  return all;
}

/** Whether a field is a time. A text of another kind accepts the day that no year has. */
export function isTime(schema: z.ZodType): boolean {
  return accepts(schema, SOUND.since) && !accepts(schema, "2030-02-31T00:00:00Z");
}

/** Whether a field is a number, or a parameter of a query with the digits of one. */
export function isNumber(schema: z.ZodType): boolean {
  return innermost(schema) instanceof z.ZodNumber || accepts(schema, "7") && !accepts(schema, "x");
}

interface Field {
  path: Step[];
  schema: z.ZodType;
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

function accepts(schema: z.ZodType, value: unknown): boolean {
  return schema.safeParse(value).success;
}

/** Returns a valid value, with every optional object on the way to `path`. */
function soundObject(schema: z.ZodType, path: readonly Step[]): unknown {
  const inner = innermost(schema);
  if (inner instanceof z.ZodArray) {
    return [innermost(memberOf(inner, 0)!).safeParse("*").success ? "*" : "payments:read"];
  }
  if (!(inner instanceof z.ZodObject)) return undefined;
  const object: Record<string, unknown> = {};
  for (const name of Object.keys(inner.shape)) {
    const member = memberOf(schema, name)!;
    const is_on_path = path[0] === name && path.length > 1;
    const is_amount = name === "amount" && path[0] !== "amount_minor";
    // A token replaces the other members of a card.
    const is_omitted = isOptional(member) || path[0] === "token";
    if (is_omitted && !is_on_path && !is_amount) continue;
    object[name] = is_on_path
      ? soundObject(member, path.slice(1))
      : SOUND[name] ?? soundScalar(member);
  }
  return object;
}

function soundScalar(schema: z.ZodType): unknown {
  const inner = innermost(schema);
  if (inner instanceof z.ZodEnum) return inner.options[0];
  if (inner instanceof z.ZodNumber) return Math.max(inner.minValue ?? 0, 12);
  if (inner instanceof z.ZodObject) return "iban" in inner.shape ? { iban: SOUND.iban } : {};
  return "x";
}

function put(object: unknown, [step, ...rest]: readonly Step[], value: unknown): unknown {
  if (step === undefined) return value;
  const copy = (Array.isArray(object) ? [...object] : { ...object as object }) as Record<
    Step,
    unknown
  >;
  copy[step] = put(copy[step], rest, value);
  return copy;
}

function innermost(schema: z.ZodType): z.ZodType {
  return layersOf(schema).at(-1)!;
}

function nameOf(path: readonly Step[]): string {
  return path.map((step) => typeof step === "number" ? `[${step}]` : `.${step}`).join("").slice(1);
}
