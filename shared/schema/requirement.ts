/**
 * Requirements of the schemas in words, as the end of a sentence that begins with `must be`. They
 * are derived from the schemas, so a message cannot differ from the rule. A schema whose rule is
 * not clear from its bounds, such as a format, has words of its own.
 */

import * as z from "zod";

/** A message lists the values of an enum up to this number. */
const MAX_LISTED = 12;

const OWN_WORDS = z.registry<{ must_be: string }>();

/** Gives a schema words of its own: `text of three digits`. */
export function mustBe<Schema extends z.ZodType>(schema: Schema, words: string): Schema {
  OWN_WORDS.add(schema, { must_be: words });
  return schema;
}

/** Describes the values that the schema accepts: `a whole number from 1 to 12`. */
export function requirementOf(schema: z.ZodType): string {
  for (const layer of layersOf(schema)) {
    const own = OWN_WORDS.get(layer);
    if (own) return own.must_be;
  }
  const inner = layersOf(schema).at(-1)!;
  if (inner instanceof z.ZodEnum) return oneOf(inner.options);
  if (inner instanceof z.ZodString) return `text${boundsOf(inner.minLength, inner.maxLength)}`;
  if (inner instanceof z.ZodNumber) return numberBetween(inner.minValue, inner.maxValue);
  if (inner instanceof z.ZodArray) return "a list";
  if (inner instanceof z.ZodObject) return objectWith(inner);
  throw new Error(`a schema of type ${inner.def.type} without words: use mustBe`);
}

/** Whether a request can leave the value out. */
export function isOptional(schema: z.ZodType): boolean {
  return layersOf(schema).some((layer) =>
    layer instanceof z.ZodOptional || layer instanceof z.ZodDefault
  );
}

/** The schemas of the members of a value: by name, or the same for all. */
interface Members {
  named: Readonly<Record<string, z.ZodType>>;
  every: z.ZodType | undefined;
}

/** Each request asks for the members of its schemas, and zod's own checks of classes are slow. */
const MEMBERS = new WeakMap<z.ZodType, Members>();

/** The schema of a member or item; undefined if the schema does not know it. */
export function memberOf(schema: z.ZodType, name: PropertyKey): z.ZodType | undefined {
  let members = MEMBERS.get(schema);
  if (members === undefined) MEMBERS.set(schema, members = membersOf(schema));
  const { named, every } = members;
  return every ?? (Object.hasOwn(named, name) ? named[name as string] : undefined);
}

function membersOf(schema: z.ZodType): Members {
  const inner = layersOf(schema).at(-1)!;
  const every = inner instanceof z.ZodArray
    ? inner.element
    : inner instanceof z.ZodRecord
    ? inner.valueType
    : undefined;
  const named = inner instanceof z.ZodObject ? inner.shape : {};
  return { named: named as Members["named"], every: every as z.ZodType | undefined };
}

/** The values of an enum as a sentence has them: `"a", "b" or "c"`. */
function oneOf(values: readonly (string | number)[]): string {
  if (values.length > MAX_LISTED) throw new Error("too many values to list: use mustBe");
  const quoted = values.map((value) => JSON.stringify(value));
  return quoted.length < 2
    ? quoted.join()
    : `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

/** The schema and what it wraps, outermost first: optional, default, nullable, transformed. */
function layersOf(schema: z.ZodType): z.ZodType[] {
  const layers = [schema];
  for (let inner = innerOf(schema); inner; inner = innerOf(inner)) layers.push(inner);
  return layers;
}

function innerOf(schema: z.ZodType): z.ZodType | undefined {
  const { def } = schema;
  if (schema instanceof z.ZodPipe) {
    // A preprocessed value is described by the schema behind the transform.
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
