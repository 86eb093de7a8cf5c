/**
 * Builds `components.schemas` from the zod objects of `shared/schema`, with their exported names,
 * and from the lists in responses. Schemas of requests describe the input of zod, all others the
 * output.
 */

import * as z from "zod";
import { listOf } from "../../../shared/schema/list_of.ts";
import { describeFields } from "./common_fields.ts";
import { OPERATIONS } from "./operations.ts";

/** A JSON Schema, or another object of the document. */
export type Json = { [name: string]: unknown };

const FOLDER = new URL("../../../shared/schema/", import.meta.url);
/** Bounds that zod writes for every safe integer. They are not rules of the API. */
const SAFE = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
/** The largest integer of 32 bits. Java generators use 32 bits without `format: int64`. */
const MAX_INT32 = 2_147_483_647;
/** Formats whose pattern says nothing more to a reader. */
const KNOWN_FORMATS: readonly unknown[] = ["date-time", "idn-email"];

const SENT = /(?<!^Error)(Body|Input|Query)$/;

/** The end of the names of lists. */
const LIST = /List$/;

const registry = z.registry<{ id: string }>();
const names = new Map<z.ZodType, string>();

/** Every schema of the folder, by the name of its export. */
export const EXPORTED = new Map<string, z.ZodType>();

for (const file of [...Deno.readDirSync(FOLDER)].map(({ name }) => name).sort()) {
  for (const [name, value] of Object.entries(await import(new URL(file, FOLDER).href))) {
    if (value instanceof z.ZodType) EXPORTED.set(name, value);
  }
}
for (const [name, schema] of EXPORTED) if (isComponent(name, schema)) add(name, schema);
for (const name of new Set(OPERATIONS.map(({ response }) => response))) {
  if (LIST.test(name)) add(name, listOf(schemaNamed(name.replace(LIST, ""))));
}

const [as_sent, as_received] = (["input", "output"] as const).map((io) =>
  z.toJSONSchema(registry, {
    io,
    uri: refTo,
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) =>
      tidy(zodSchema as unknown as z.ZodType, jsonSchema as Json, io),
  }).schemas as Record<string, Json>
) as [Record<string, Json>, Record<string, Json>];

export function componentSchemas(): Record<string, Json> {
  const shown = [...names.values()].filter((name) => !/(Query|^EmptyBody)$/.test(name)).sort();
  return Object.fromEntries(shown.map((name) => [name, schemaOf(name)]));
}

/** Refers to a schema of shared/schema, or to the one with a name, such as `PaymentList`. */
export function schemaRef(schema: z.ZodType | string): Json {
  const name = names.get(typeof schema === "string" ? schemaNamed(schema) : schema);
  if (name === undefined) throw new Error("a schema without a name: export it from shared/schema");
  return { $ref: refTo(name) };
}

/** Returns the schema of a response by its name. Throws if there is none. */
function schemaNamed(name: string): z.ZodType {
  const [schema] = [...names].find(([, known]) => known === name) ?? [];
  if (schema === undefined) throw new Error(`shared/schema exports no ${name}`);
  return schema;
}

export function queryProperties(query: z.ZodType): Record<string, Json> {
  return schemaOf(names.get(query)!).properties as Record<string, Json>;
}

function schemaOf(name: string): Json {
  const { $schema: _, $id: __, ...schema } = (SENT.test(name) ? as_sent : as_received)[name]!;
  describeFields(schema);
  return schema;
}

function add(name: string, schema: z.ZodType): void {
  registry.add(schema, { id: name });
  names.set(schema, name);
}

function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

/** Objects, unions and enums become components. Other schemas are written where they are used. */
function isComponent(name: string, schema: z.ZodType): boolean {
  return ["object", "enum", "union"].includes(schema.def.type) || name.endsWith("Input") ||
    OPERATIONS.some(({ response }) => response === name);
}

/** Removes details that do not help a reader. Adds discriminators and short forms. */
function tidy(schema: z.ZodType, json: Json, io: "input" | "output"): void {
  if (KNOWN_FORMATS.includes(json.format)) delete json.pattern;
  for (const bound of ["minimum", "maximum"]) {
    if (SAFE.includes(json[bound] as number)) delete json[bound];
  }
  // openapi-generator makes Java code from both that does not compile.
  if (json.type === "boolean") delete json.const;
  if (json.type === "null") {
    delete json.type;
    json.const = null;
  }
  if (json.type === "integer" && !fitsInt32(json)) json.format = "int64";
  // A request has no other members. Responses can get new ones at any time.
  if (io === "input" && json.properties) json.additionalProperties = false;
  if (io === "output" && json.additionalProperties === false) delete json.additionalProperties;
  const { propertyNames } = json as { propertyNames?: Json };
  if (propertyNames && Object.keys(propertyNames).length === 1) delete json.propertyNames;
  if (schema instanceof z.ZodDiscriminatedUnion) addDiscriminator(schema, json);
  if (schema instanceof z.ZodPipe && schema.def.out instanceof z.ZodObject) {
    acceptText(schema, json);
  }
}

/** Whether the bounds of an integer say that 32 bits are enough. */
function fitsInt32({ maximum, exclusiveMaximum = maximum }: Json): boolean {
  return typeof exclusiveMaximum === "number" && exclusiveMaximum <= MAX_INT32;
}

function addDiscriminator(schema: z.ZodDiscriminatedUnion, json: Json): void {
  const propertyName = schema.def.discriminator;
  const mapping: Record<string, string> = {};
  for (const option of schema.options as z.ZodObject[]) {
    for (const value of (option.shape[propertyName] as z.ZodEnum | z.ZodLiteral)._zod.values) {
      mapping[String(value)] = refTo(names.get(option)!);
    }
  }
  json.discriminator = { propertyName, mapping };
}

/** Describes an input that is an object, or a string with the value of its first member. */
function acceptText(schema: z.ZodPipe, json: Json): void {
  const { description, ...object } = json;
  const [first] = Object.keys((schema.def.out as z.ZodObject).shape);
  for (const name of Object.keys(json)) delete json[name];
  const text = (object.properties as Record<string, Json>)[first!];
  Object.assign(json, { description, anyOf: [object, { ...text }] });
}
