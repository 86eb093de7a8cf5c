/**
 * Requirements of the schemas in words, as the end of a sentence that begins with `must be`. This
 * module derives them from the schemas, so a message and its rule always agree. A schema whose rule
 * does not follow from its bounds, such as a format, gets its own words with `mustBe`.
 */

import * as z from "zod";

/** Most values of an enum that a message lists. */
const MAX_LISTED = 12;

const OWN_WORDS = z.registry<{ must_be: string }>();

/** Attaches words such as `text of three digits` to a schema, and returns the schema. */
export function mustBe<Schema extends z.ZodType>(schema: Schema, words: string): Schema {
  OWN_WORDS.add(schema, { must_be: words });
  return schema;
}

const REPLACEABLE = new WeakSet<z.ZodType>();

/**
 * Marks an optional member that a request can omit only if it has another member instead, such as
 * a token in place of a card number. Returns the schema.
 */
export function replaceable<Schema extends z.ZodType>(schema: Schema): Schema {
  REPLACEABLE.add(schema);
  return schema;
}

/** Describes the values that a schema accepts, such as `a whole number from 1 to 12`. */
export function requirementOf(schema: z.ZodType): string {
  for (const layer of layersOf(schema)) {
    const own = OWN_WORDS.get(layer);
    if (own) return own.must_be;
  }
  const inner = layersOf(schema).at(-1)!;
  if (inner instanceof z.ZodEnum) return oneOf(inner.options);
  if (inner instanceof z.ZodString) return `text${boundsOf(inner.minLength, inner.maxLength)}`;
  if (inner instanceof z.ZodNumber) return numberBetween(inner.minValue, inner.maxValue);
  if (inner instanceof z.ZodBoolean) return "true or false";
  if (inner instanceof z.ZodArray) return "a list";
  if (inner instanceof z.ZodObject) return objectWith(inner);
  throw new Error(`a schema of type ${inner.def.type} without words: use mustBe`);
}

/** Reports whether a request can omit the value without another one instead. */
export function isOptional(schema: z.ZodType): boolean {
  const layers = layersOf(schema);
  return !layers.some((layer) => REPLACEABLE.has(layer)) &&
    layers.some((layer) => layer instanceof z.ZodOptional || layer instanceof z.ZodDefault);
}

/** The schemas of a value's members: one for each name, or one for all. */
interface Members {
  named: Readonly<Record<string, z.ZodType>>;
  names: readonly string[];
  every: z.ZodType | undefined;
  /** The kind of value whose members these are; null: the schema takes neither. */
  parent: "object" | "list" | null;
}

/** A cache, because each request needs the members and zod's `instanceof` checks are slow. */
const MEMBERS = new WeakMap<z.ZodType, Members>();

/** Returns the schema of a member or item, or undefined if the schema has none of this name. */
export function memberOf(schema: z.ZodType, name: PropertyKey): z.ZodType | undefined {
  const { named, every } = membersOf(schema);
  return every ?? (Object.hasOwn(named, name) ? named[name as string] : undefined);
}

export function namesOf(schema: z.ZodType): readonly string[] {
  return membersOf(schema).names;
}

/** Reports whether a schema has members for those of a value: of an object, or of a list. */
export function takesMembersOf(schema: z.ZodType, value: object): boolean {
  return membersOf(schema).parent === (Array.isArray(value) ? "list" : "object");
}

function membersOf(schema: z.ZodType): Members {
  let members = MEMBERS.get(schema);
  if (members === undefined) MEMBERS.set(schema, members = readMembers(schema));
  return members;
}

function readMembers(schema: z.ZodType): Members {
  const inner = layersOf(schema).at(-1)!;
  const every = inner instanceof z.ZodArray
    ? inner.element
    : inner instanceof z.ZodRecord
    ? inner.valueType
    : undefined;
  const named = (inner instanceof z.ZodObject ? inner.shape : {}) as Members["named"];
  const parent = inner instanceof z.ZodArray
    ? "list"
    : inner instanceof z.ZodObject || every !== undefined
    ? "object"
    : null;
  return { named, names: Object.keys(named), every: every as z.ZodType | undefined, parent };
}

/** Lists the values of an enum for a sentence: `"a", "b" or "c"`. */
function oneOf(values: readonly (string | number)[]): string {
  if (values.length > MAX_LISTED) throw new Error("too many values to list: use mustBe");
  const quoted = values.map((value) => JSON.stringify(value));
  return quoted.length < 2
    ? quoted.join()
    : `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

/** The schema and the schemas inside its wrappers (optional, default, nullable, transform). */
export function layersOf(schema: z.ZodType): z.ZodType[] {
  const layers = [schema];
  for (let inner = innerOf(schema); inner; inner = innerOf(inner)) layers.push(inner);
  return layers;
}

/** The schema inside a wrapper; undefined if it wraps none. */
export function innerOf(schema: z.ZodType): z.ZodType | undefined {
  const { def } = schema;
  if (schema instanceof z.ZodPipe) {
    // A preprocessed value has its rule in the schema after the transform.
    return (schema.def.in instanceof z.ZodTransform ? schema.def.out : schema.def.in) as z.ZodType;
  }
  return "innerType" in def ? def.innerType as z.ZodType : undefined;
}

function boundsOf(min: number | null, max: number | null): string {
  if (min !== null && max !== null) return ` of ${min} to ${max} characters`;
  if (max !== null) return ` of at most ${max} characters`;
  return min === null ? "" : ` of at least ${min} characters`;
}

function numberBetween(min: number | null, max: number | null): string {
  return min === null || max === null ? "a whole number" : `a whole number from ${min} to ${max}`;
}

function objectWith({ shape }: z.ZodObject): string {
  const required = Object.keys(shape).filter((name) => !isOptional(shape[name] as z.ZodType));
  if (required.length === 0) return "an object";
  const names = required.map((name) => `"${name}"`);
  const list = names.length === 1
    ? names[0]
    : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
  return `an object with ${list}`;
}
