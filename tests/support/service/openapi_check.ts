/**
 * Checks every response that a test gets, and every request that the service accepts, against
 * docs/openapi.json. The check of responses is stricter than clients must be: a member, header,
 * status or error code that the document does not describe is a failure.
 */

import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { ERROR_CATALOGUE, type ErrorCode } from "../../../shared/core/errors.ts";

/** A request and its response. */
interface CheckedExchange {
  method: string;
  /** The path with its query. */
  path: string;
  /** The text of the body, if there is one. */
  sent: string | undefined;
  status: number;
  headers: Headers;
  /** The response's body, parsed; undefined when it is not JSON. */
  body: unknown;
}

// deno-lint-ignore no-explicit-any
type Json = any;

/** Words of the validator and of programmers, which no message has outside of quotes. */
const JARGON =
  /\b(expected|received|invalid_type|invalid input|int|regex|nan|undefined|union|string|boolean|enum|schema|zod|parse|payload|invalid)\b/i;
/** The maximum length of a message without the name of a field. */
const LONGEST = 230;
/** The methods that operations have. The document does not describe other methods. */
const METHODS: readonly string[] = ["GET", "POST", "PUT", "DELETE"];
/** Headers that HTTP and the fetch standard describe. */
const STANDARD_HEADER = /^(allow|content-(type|length|encoding)|vary|access-control-.*)$/;
/** Headers of responses to requests that no operation of the document takes. */
const ELSEWHERE = [
  "request-id",
  "cache-control",
  "x-content-type-options",
  "www-authenticate",
  "ratelimit-policy",
  "ratelimit",
  "retry-after",
];

let loaded: { document: Json; ajv: Ajv2020; templates: [RegExp, string][] } | undefined;
const validators = new Map<string, ValidateFunction>();

/** Throws an `AssertionError` that names the difference from the document. */
export function checkExchange(exchange: CheckedExchange): void {
  const { method, path, status, headers, body } = exchange;
  if (!METHODS.includes(method)) return;
  const { document, templates } = loaded ??= load();
  const at = `${method} ${path} returned ${status}`;
  if (status >= 400) checkMessage(at, (body as Json).error);
  const pathname = path.split("?")[0]!;
  const template = templates.find(([pattern]) => pattern.test(pathname))?.[1];
  const operation = template && document.paths[template][method.toLowerCase()];
  if (!operation) {
    checkBody(at, "#/components/schemas/ErrorBody", body);
    return checkHeaders(at, headers, ELSEWHERE, []);
  }
  const pointer = `#/paths/${escape(template)}/${method.toLowerCase()}`;
  const named = operation.responses[status];
  assert.ok(named, `${at}, which docs/openapi.json does not describe: ${JSON.stringify(body)}`);
  const response = resolve(named);
  const at_response = named.$ref ?? `${pointer}/responses/${status}`;
  const described = Object.keys(response.headers);
  const required = described.filter((name) => resolve(response.headers[name]).required);
  const [media_type] = Object.keys(response.content ?? {});
  checkHeaders(at, headers, described.map((name) => name.toLowerCase()), required, media_type);
  for (const name of described.filter((name) => headers.has(name))) {
    const ref = response.headers[name].$ref ?? `${at_response}/headers/${name}`;
    check(`${at}: header ${name}`, `${ref}/schema`, headers.get(name));
  }
  if (!response.content || media_type !== "application/json") return;
  const { examples } = response.content["application/json"];
  checkBody(at, `${at_response}/content/application~1json/schema`, body);
  if (status >= 400) {
    const { code, type } = (body as Json).error as { code: ErrorCode; type: string };
    assert.ok(Object.hasOwn(examples, code), `${at} ${code}: not described there`);
    assert.deepEqual({ status, type }, ERROR_CATALOGUE[code]);
  } else {
    checkRequest(exchange, operation, pointer);
  }
}

/** Checks that the document allows a request that the service accepted. */
function checkRequest({ method, path, sent }: CheckedExchange, operation: Json, pointer: string) {
  const at = `${method} ${path} is accepted`;
  if (sent && operation.requestBody) {
    const ref = `${pointer}/requestBody/content/application~1json/schema`;
    check(`${at} with ${sent}`, ref, JSON.parse(sent), false);
  }
  if (operation.requestBody?.required) assert.ok(sent, `${at} without a body`);
  const query = new URLSearchParams(path.split("?")[1] ?? "");
  for (const [i, named] of (operation.parameters ?? []).entries()) {
    const parameter = resolve(named);
    const value = parameter.in === "query" ? query.get(parameter.name) : null;
    if (value === null) continue;
    const typed = parameter.schema.type === "integer" ? Number(value) : value;
    check(
      `${at}: ${parameter.name}`,
      `${named.$ref ?? `${pointer}/parameters/${i}`}/schema`,
      typed,
    );
  }
}

/** Messages are for people. One that begins with a field has the field at fault. */
function checkMessage(at: string, { code, message, param }: Json): void {
  assert.match(message, /^[A-Z\d"].+[^.]$/, at);
  assert.doesNotMatch(message.replaceAll(/"[^"]*"/g, ""), JARGON, at);
  assert.ok(message.length <= LONGEST + (param?.length ?? 0), `${at}: ${message}`);
  if (code !== "invalid_parameter" || !message.startsWith('"')) return;
  assert.ok(message.includes(`"${param}`), `${at}: ${message} names another field than ${param}`);
}

function checkHeaders(
  at: string,
  headers: Headers,
  described: readonly string[],
  required: readonly string[],
  media_type = "application/json",
): void {
  for (const name of headers.keys()) {
    const is_known = STANDARD_HEADER.test(name) || described.includes(name);
    assert.ok(is_known, `${at} with the header ${name}, which docs/openapi.json does not describe`);
  }
  for (const name of required) assert.ok(headers.has(name), `${at} without the header ${name}`);
  assert.equal(headers.get("Content-Type") ?? media_type, media_type, at);
}

function checkBody(at: string, ref: string, body: unknown): void {
  check(`${at} with a body`, ref, body);
}

function check(at: string, ref: string, value: unknown, is_response = true): void {
  const { ajv } = loaded!;
  const id = `${is_response ? "responses" : "requests"}${ref}`;
  let validate = validators.get(id);
  if (!validate) validators.set(id, validate = ajv.compile({ $ref: id }));
  if (validate(value)) return;
  const reasons = ajv.errorsText(validate.errors, { dataVar: "value" });
  assert.fail(`${at} that is not what docs/openapi.json describes (${ref}): ${reasons}
${JSON.stringify(value)}
If the code is right, "deno task generate" brings the document up to date.`);
}

function load() {
  const file = new URL("../../../docs/openapi.json", import.meta.url);
  const document = JSON.parse(Deno.readTextFileSync(file));
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateSchema: false,
    code: { optimize: false },
  });
  addFormats.default(ajv);
  ajv.addFormat("idn-email", /^[^@\s]+@[^@\s]+$/);
  ajv.addSchema(structuredClone(document), "requests");
  const responses = structuredClone(document);
  closeObjects(responses.components.schemas);
  ajv.addSchema(responses, "responses");
  const templates = Object.keys(document.paths)
    // Paths with a parameter come last, because a literal segment is the better match.
    .sort((a, b) => Number(a.includes("{")) - Number(b.includes("{")))
    .map((path): [RegExp, string] => [
      new RegExp(`^${path.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`),
      path,
    ]);
  return { document, ajv, templates };
}

/** Refuses members that the document does not describe. Clients must accept them. */
function closeObjects(schema: Json): void {
  if (typeof schema !== "object" || schema === null) return;
  if (schema.type === "object" && schema.properties && !("additionalProperties" in schema)) {
    schema.additionalProperties = false;
  }
  for (const value of Object.values(schema)) closeObjects(value);
}

function resolve(object: Json): Json {
  if (!object.$ref) return object;
  const steps = object.$ref.slice(2).split("/");
  return steps.reduce((inner: Json, step: string) => inner[step], loaded!.document);
}

function escape(path: string): string {
  return path.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("{", "%7B")
    .replaceAll("}", "%7D");
}
