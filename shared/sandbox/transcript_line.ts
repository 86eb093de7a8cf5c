/**
 * A line of a transcript: a request of a seeded sandbox and its response as JSON, without secrets
 * and without what differs from one installation or run to the next (ADR 0030, contract §5). Of a
 * request it has the values of the members that the operation knows, because nobody can tell what
 * an unknown member contains.
 */

import type { Context } from "hono";
import type * as z from "zod";
import { containsCardNumber } from "../core/card_number.ts";
import { containsIban } from "../core/iban.ts";
import type { ApiKey } from "../schema/api_key.ts";
import { memberOf } from "../schema/requirement.ts";
import type { Env } from "../http/request_state.ts";

/** Stands for what a line leaves out. */
const LEFT_OUT = "…";
/** Ids of API keys and their texts. They do not follow from the seed. */
const KEY_IDS = /\bkey_[0-9a-z]{26}\b/g;
const KEY_TEXTS = /\b[a-z][a-z0-9]{0,15}_(test|live)_[0-9A-Za-z]{49}\b/g;
/** Secrets of endpoints. A key without `webhooks:write` can read the transcript too. */
const ENDPOINT_SECRETS = /\bwhsec_[0-9A-Za-z+/=_-]+/g;
/** Headers of a delivery that contain the real time. */
const TIMED_HEADERS: ReadonlySet<string> = new Set([
  "Payment-Signature",
  "Webhook-Timestamp",
  "Webhook-Signature",
]);
/** Members of a request whose text is left out. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set(["card", "number", "iban"]);
/** The names that payment services give to the security code of a card. */
const SECURITY_CODE =
  /^(card[_-]?)?(cvc|cvv|cvn|csc|cid|cav|security[_-]?code|verification[_-]?(code|value|number))\d?$/i;
/** A text that can be a part of a card number: digits, spaces and punctuation. */
const PART_OF_NUMBER = /^[\p{Nd}\s\p{P}]{1,64}$/u;
/** Each part has a digit, and the longest card number has 19 (ISO/IEC 7812). */
const PARTS_MAX = 19;
/** The path of the functions on Supabase, which is the part of a path that a deployment decides. */
const MOUNT = /^\/functions\/v1(?=\/)/;

type Members = Record<string, unknown>;

/** Returns the line of the request with a number. */
export async function transcriptLine(c: Context<Env>, n: number): Promise<string> {
  const { route, request_id, body } = c.get("state");
  const { method, url } = c.req.raw;
  const { pathname, search } = new URL(url);
  const { base_url, console_url } = c.get("deps");
  const text = withoutHosts(await c.res.clone().text(), [base_url, console_url]);
  const line = JSON.stringify({
    n,
    request: {
      method,
      // The id of a key is random, and its digits can look like a card number.
      path: shownText(pathname.replace(MOUNT, "").replace(KEY_IDS, "key_…")) +
        shownQuery(search, route?.query),
      idempotency_key: shownText(c.req.header("Idempotency-Key") ?? null),
      body: withoutSplitNumbers(shownMember(body, route?.body)),
    },
    answer: {
      status: c.res.status,
      request_id,
      replayed: c.res.headers.has("Idempotent-Replayed"),
      body: shownResponse(text),
    },
  });
  return line.replace(KEY_IDS, "key_…").replace(KEY_TEXTS, LEFT_OUT)
    .replace(ENDPOINT_SECRETS, LEFT_OUT);
}

/** Leaves out a text that contains a card number or an IBAN, and returns other values. */
function shownText<T>(value: T): T | string {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string") return value;
  return containsCardNumber(text) || containsBankAccount(text) ? LEFT_OUT : value;
}

function containsBankAccount(text: string): boolean {
  if (containsIban(text)) return true;
  if (!text.includes("%")) return false;
  try {
    return containsIban(decodeURIComponent(text));
  } catch {
    return false;
  }
}

/** Returns the shown parts of a member of a request. Without a schema the member is unknown. */
function shownMember(value: unknown, schema: z.ZodType | undefined, name = ""): unknown {
  if (value === null) return null;
  if (schema === undefined || SECURITY_CODE.test(name)) return LEFT_OUT;
  if (typeof value !== "object") return SECRET_MEMBERS.has(name) ? LEFT_OUT : shownText(value);
  if (Array.isArray(value)) {
    return value.map((item, at) => shownMember(item, memberOf(schema, at), name));
  }
  return Object.fromEntries(
    Object.entries(value).map(([inner, member]) => [
      shownText(inner),
      shownMember(member, memberOf(schema, inner), inner),
    ]),
  );
}

/** Returns a query as it was sent, without the values that are left out. */
function shownQuery(search: string, schema: z.ZodType | undefined): string {
  if (search === "") return "";
  const pairs = search.slice(1).split("&");
  const sent = pairs.map((pair): [string, string] => [...new URLSearchParams(pair)][0] ?? ["", ""]);
  const shown = withoutSplitNumbers(
    sent.map(([name, value]) => shownMember(value, schema && memberOf(schema, name), name)),
  ) as unknown[];
  return `?${
    pairs.map((pair, at) => {
      if (shown[at] === sent[at]![1]) return shownText(pair);
      return `${shownText(sent[at]![0])}=${LEFT_OUT}`;
    }).join("&")
  }`;
}

/** Returns the body of a response, which contains no card number. */
function shownResponse(text: string): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return text;
  }
  return withoutSplitNumbers(shownPart(body));
}

function shownPart(part: unknown, name = ""): unknown {
  if (typeof part === "string") {
    const is_left_out = TIMED_HEADERS.has(name) || SECURITY_CODE.test(name) ||
      containsBankAccount(part);
    return is_left_out ? LEFT_OUT : part;
  }
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map((item) => shownPart(item));
  return Object.fromEntries(
    Object.entries(isKey(part) ? shownKey(part) : part).map(([inner, member]) => [
      containsBankAccount(inner) ? LEFT_OUT : inner,
      shownPart(member, inner),
    ]),
  );
}

/**
 * Leaves out texts that form a card number together: the items of a list, or the members of an
 * object and of the objects in it. The objects of a list stay apart. Changes the value, and returns
 * it.
 */
function withoutSplitNumbers<T>(value: T, parts: { holder: Members; name: string }[] = []): T {
  if (typeof value !== "object" || value === null) return value;
  const holder = value as Members;
  for (const [name, member] of Object.entries(holder)) {
    if (typeof member !== "string") {
      withoutSplitNumbers(member, Array.isArray(value) ? [] : parts);
    } else if (PART_OF_NUMBER.test(member)) {
      parts.push({ holder, name });
      if (parts.length > PARTS_MAX) parts.shift();
      if (!containsCardNumber(parts.map((part) => part.holder[part.name]).join(" "))) continue;
      for (const part of parts.splice(0)) part.holder[part.name] = LEFT_OUT;
    }
  }
  return value;
}

/** Replaces the scheme, host and port of the service's addresses. */
function withoutHosts(text: string, urls: readonly (string | null)[]): string {
  return urls.reduce<string>(
    (rest, url) => url === null ? rest : rest.replaceAll(new URL(url).origin, LEFT_OUT),
    text,
  );
}

function isKey(part: unknown): part is ApiKey {
  return typeof part === "object" && part !== null && "object" in part && part.object === "api_key";
}

/** Returns the members of a key that are the same in every run. */
function shownKey({ object, name, scopes, livemode }: ApiKey) {
  return { object, name, scopes, livemode };
}
