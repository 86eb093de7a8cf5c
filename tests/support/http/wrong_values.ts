/**
 * Builds requests with exactly one wrong value from the zod schemas: a request for each field and
 * each kind of wrong value.
 */

import * as z from "zod";
import { isOptional, memberOf } from "../../../shared/schema/requirement.ts";

/** A wrong value and its place. */
export interface WrongValue {
  /** The field: `card.exp_month`, `events[0]`. */
  path: string;
  /** The value as a reader sees it: `"xxx…" (501 characters)`. */
  shown: string;
  /** The body, or the query parameters, with the wrong value. */
  value: Record<string, unknown>;
}

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

/** Returns a body for each field and each kind of wrong value. */
export function wrongBodies(body: z.ZodType): WrongValue[] {
  return fieldsOf(body, []).flatMap(({ path, schema }) =>
    wrongs(schema).map(({ value, shown }) => ({
      path: nameOf(path),
      shown,
      value: put(soundObject(body, path), path, value) as Record<string, unknown>,
    }))
  );
}

/** Returns a query for each parameter and each kind of wrong text. */
export function wrongQueries(query: z.ZodType): WrongValue[] {
  return fieldsOf(query, []).flatMap(({ path }) => {
    const values = ["", "nonsense!", "x".repeat(300)];
    if (/created/.test(nameOf(path))) values.push("2026-01-31", "9999-12-31T23:59:59-01:00");
    if (nameOf(path) === "limit") values.push("0", "101");
    // Every text of these is valid, except an empty or too long one.
    const wrong = ["reference", "customer_id", "idempotency_key", "search"].includes(nameOf(path))
      ? ["", "x".repeat(300)]
      : values;
    return wrong.map((value) => ({
      path: nameOf(path),
      shown: show(value),
      value: { [nameOf(path)]: value },
    }));
  });
}

/** Stands for the literal in the text of a body. */
const MARK = "MARK";

/** Returns each field of a body, which `withLiteral` makes a text with a literal of JSON in it. */
export function fieldsWithLiterals(body: z.ZodType) {
  return fieldsOf(body, []).map(({ path, schema }) => ({
    name: nameOf(path),
    schema,
    withLiteral(base: object, literal: string): string {
      const sound = merged(soundObject(body, path), base);
      return JSON.stringify(put(sound, path, MARK)).replace(`"${MARK}"`, literal);
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
  return isText(innermost(schema)) && accepts(schema, SOUND.since) &&
    !accepts(schema, "2030-02-31T00:00:00Z");
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

const MISSING = Symbol("missing");

/** Returns values that the schema refuses. */
function wrongs(schema: z.ZodType): { value: unknown; shown: string }[] {
  const inner = innermost(schema);
  const values: unknown[] = [];
  if (!isOptional(schema)) values.push(MISSING);
  if (!accepts(schema, null)) values.push(null);
  values.push(true, ...wrongOf(inner));
  return values.filter((value) => value === MISSING || !accepts(schema, value) || isText(inner))
    .map((value) => ({ value, shown: value === MISSING ? "missing" : show(value) }));
}

function wrongOf(inner: z.ZodType): unknown[] {
  if (isText(inner)) {
    const { minLength, maxLength } = inner;
    const has_form = inner instanceof z.ZodStringFormat || inner.def.checks?.some(hasForm);
    return [
      5,
      ...(minLength ? [""] : []),
      ...(has_form || maxLength === null ? ["nonsense!"] : []),
      ...(maxLength === null ? [] : ["x".repeat(maxLength + 1)]),
    ];
  }
  if (inner instanceof z.ZodNumber) {
    return ["12", "nonsense!", 12.5, inner.minValue! - 1, inner.maxValue! + 1, -1, 0];
  }
  if (inner instanceof z.ZodEnum) return [5, "nonsense!"];
  if (inner instanceof z.ZodArray) return ["nonsense!", {}, [], Array(50).fill("payment.created")];
  if (inner instanceof z.ZodRecord) {
    const many = Object.fromEntries(Array.from({ length: 51 }, (_, n) => [`n${n}`, "x"]));
    return [
      "nonsense!",
      [],
      { order: 5 },
      { order: null },
      { "": "x" },
      { ["x".repeat(41)]: "x" },
      {
        order: "x".repeat(501),
      },
      many,
    ];
  }
  return [5, []];
}

function hasForm(check: unknown): boolean {
  const { def } = (check as z.core.$ZodCheck)._zod;
  return def.check === "string_format";
}

/** Whether the field is a text. Rules of the domain check the texts that the schema accepts. */
function isText(inner: z.ZodType): inner is z.ZodString | z.ZodStringFormat {
  return inner instanceof z.ZodString || inner instanceof z.ZodStringFormat;
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
  if (rest.length === 0 && value === MISSING) delete copy[step];
  else copy[step] = put(copy[step], rest, value);
  return copy;
}

function innermost(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPipe) {
    return innermost(
      (schema.def.in instanceof z.ZodTransform ? schema.def.out : schema.def.in) as z.ZodType,
    );
  }
  return "innerType" in schema.def ? innermost(schema.def.innerType as z.ZodType) : schema;
}

function nameOf(path: readonly Step[]): string {
  return path.map((step) => typeof step === "number" ? `[${step}]` : `.${step}`).join("").slice(1);
}

/** Formats a value on one line and cuts long texts and lists. */
function show(value: unknown): string {
  if (typeof value === "string" && value.length > 40) {
    return `"${value.slice(0, 3)}…" (${value.length} characters)`;
  }
  const json = JSON.stringify(value);
  if (Array.isArray(value) && value.length > 3) return `a list of ${value.length}`;
  if (json.length < 60) return json;
  const names = Object.keys(value as object);
  if (names.length > 3) return `{…} (${names.length} members)`;
  return names[0]!.length > 40
    ? `{"${names[0]!.slice(0, 3)}…": …} (a name of ${names[0]!.length} characters)`
    : `{"${names[0]}": …} (a value of ${json.length - names[0]!.length - 7} characters)`;
}
