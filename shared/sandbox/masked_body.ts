/**
 * Bodies of requests and responses without card numbers, security codes, bank accounts and secrets,
 * for the transcript and the log of a sandbox. Of a request they have the values of the members
 * that the operation knows, because nobody can tell what an unknown member contains.
 */

import type * as z from "zod";
import { containsCardNumber } from "../core/card_number.ts";
import {
  containsBankAccount,
  containsCutNumber,
  containsSecret,
  LEFT_OUT,
} from "../core/masked_secrets.ts";
import type { ApiKey } from "../schema/api_key.ts";
import { SECRET_MEMBERS } from "../schema/personal_data.ts";
import { memberOf, takesMembersOf } from "../schema/requirement.ts";

/** Headers of a delivery that contain the real time. */
const TIMED_HEADERS: ReadonlySet<string> = new Set([
  "Payment-Signature",
  "Webhook-Timestamp",
  "Webhook-Signature",
]);
/** Members of a request whose text is left out. A card can be sent as text by mistake. */
const LEFT_OUT_MEMBERS: ReadonlySet<string> = new Set(["card", ...SECRET_MEMBERS]);
/** Parameters of a query that are a person or free text, which an erasure could not find. */
const TEXT_PARAMETERS: ReadonlySet<string> = new Set(["customer", "email", "search"]);
/** The names that payment services give to the security code of a card. */
const SECURITY_CODE =
  /^(card[_-]?)?(cvc|cvv|cvn|csc|cid|cav|security[_-]?code|verification[_-]?(code|value|number))\d?$/i;
/** A text that can be a part of a card number: digits, spaces and punctuation. */
const PART_OF_NUMBER = /^[\p{Nd}\s\p{P}]{1,64}$/u;
/** Card numbers in messages, with or without spaces. */
const CARD_NUMBERS = /\b\d{4}(?: ?\d{4,6}){2,4}\b/g;
/** Each part has a digit, and the longest card number has 19 (ISO/IEC 7812). */
const PARTS_MAX = 19;

type Members = Record<string, unknown>;

/**
 * Bytes of a body that is shown, as in the database (`requests_bodies_bounded`), and characters of
 * a text in which secrets are searched for.
 */
export const MAX_BYTES = 16_384;
const MAX_PARAMETERS = 64;

/** Returns the body of a request. Without a schema all of it is left out. */
export function maskedRequest(body: unknown, schema: z.ZodType | undefined): unknown {
  return withoutSplitNumbers(shownMember(body, schema));
}

/** Leaves out the card numbers of a response, which messages of errors recommend. */
export function withoutCardNumbers(part: unknown): unknown {
  if (typeof part === "string") {
    return containsCardNumber(part) ? part.replace(CARD_NUMBERS, LEFT_OUT) : part;
  }
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map(withoutCardNumbers);
  return Object.fromEntries(
    Object.entries(part).map(([name, member]) => [name, withoutCardNumbers(member)]),
  );
}

/** Leaves out a text that contains a secret, or is long, and returns other values. */
export function maskedText<T>(value: T): T | string {
  const text = typeof value === "number" ? String(value) : value;
  if (typeof text !== "string") return value;
  const is_left_out = text.length > MAX_BYTES || containsSecret(text) ||
    containsCutNumber(text);
  return is_left_out ? LEFT_OUT : value;
}

/** Returns the shown parts of a member of a request. Without a schema the member is unknown. */
function shownMember(value: unknown, schema: z.ZodType | undefined, name = ""): unknown {
  if (value === null) return null;
  if (schema === undefined || SECURITY_CODE.test(name)) return LEFT_OUT;
  // So a person has plain members only, as an erasure finds them.
  if (typeof value === "object" && !takesMembersOf(schema, value)) return LEFT_OUT;
  if (typeof value !== "object") return LEFT_OUT_MEMBERS.has(name) ? LEFT_OUT : maskedText(value);
  if (Array.isArray(value)) {
    return value.map((item, at) => shownMember(item, memberOf(schema, at), name));
  }
  return Object.fromEntries(
    Object.entries(value).map(([inner, member]) => [
      maskedText(inner),
      shownMember(member, memberOf(schema, inner), inner),
    ]),
  );
}

/** Returns a query as it was sent, without the values that are left out. */
export function maskedQuery(search: string, schema: z.ZodType | undefined): string {
  if (search === "") return "";
  const pairs = search.slice(1).split("&");
  if (pairs.length > MAX_PARAMETERS) return `?${LEFT_OUT}`;
  const sent = pairs.map((pair): [string, string] => [...new URLSearchParams(pair)][0] ?? ["", ""]);
  const shown = withoutSplitNumbers(
    sent.map(([name, value]) =>
      TEXT_PARAMETERS.has(name)
        ? LEFT_OUT
        : shownMember(value, schema && memberOf(schema, name), name)
    ),
  ) as unknown[];
  return `?${
    pairs.map((pair, at) => {
      if (shown[at] === sent[at]![1]) return maskedText(pair);
      return `${maskedText(sent[at]![0])}=${LEFT_OUT}`;
    }).join("&")
  }`;
}

/** Returns the body of a response, which contains no card number. A text that is no JSON stays. */
export function maskedResponse(text: string): unknown {
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
      containsBankAccount(part) || name !== "message" && containsCutNumber(part);
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

function isKey(part: unknown): part is ApiKey {
  return typeof part === "object" && part !== null && "object" in part && part.object === "api_key";
}

/** Returns the members of a key that are the same in every run. */
function shownKey({ object, name, scopes, livemode }: ApiKey) {
  return { object, name, scopes, livemode };
}
