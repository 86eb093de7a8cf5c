/**
 * Refuses a request with a name that its operation does not know: to ignore `crad`, `cents` or
 * `capture_method` would change what happens to money (contract §2, ADR 0014). The first unknown
 * name decides, so further ones cost nothing.
 */

import type * as z from "zod";
import { type ApiError, invalidParameter } from "../core/errors.ts";
import { containsCutNumber, containsSecret, LEFT_OUT } from "../core/masked_secrets.ts";
import { memberOf, namesOf, takesMembersOf } from "../schema/requirement.ts";

const MAX_SHOWN = 100;
/** Characters in which a secret is looked for: one that begins among the shown ones ends there. */
const MAX_SEARCHED = 2 * MAX_SHOWN;
/** Most names that a message lists. */
const MAX_LISTED = 8;
/** Characters of a name that can be a misspelling of ours, which are much shorter. */
const MAX_COMPARED = 40;

const NOTHING = "this service has nothing like it: remove it";
const LATER = 'send "capture": "manual" to take the money later, or remove it';
const TOKEN = 'send "card": {"token": "pm_…"}, or remove it';
const SAVED = 'send "instrument": "ins_…" for a saved one, "card": {"token"} else, or remove it';
const SAVE = 'send "save": "off_session" or "on_session" to save it, or remove it';
const CUSTOMER = 'send it as "customer.id", in "customer": {"id": …}, or remove it';
const ABSENT = 'send "off_session": true with an "instrument" if the payer is absent, or remove it';

/**
 * Names of other APIs that are no misspelling of ours: our name, their names without case and
 * separators, and the advice if it is not our name. A row counts in objects that have our name, and
 * one with an empty name in all. Sources: the references of Stripe, Adyen (Checkout) and Mollie.
 */
export const OTHER_NAMES: readonly [ours: string, theirs: string, advice?: string][] = [
  ["", "idempotencykey xidempotencykey", 'send it as the header "Idempotency-Key"'],
  ["capture", "confirm confirmationmethod", "creating a payment confirms it: remove it"],
  ["capture", "capturemethod capturemode capturedelay capturedelayhours", LATER],
  ["card", "paymentmethod paymentmethoddata source", TOKEN],
  ["instrument", "paymentmethodid storedpaymentmethodid", SAVED],
  ["save", "setupfutureusage storepaymentmethod savepaymentmethod enablerecurring", SAVE],
  ["off_session", "shopperinteraction recurringprocessingmodel sequencetype", ABSENT],
  ["customer", "shopperreference customerid", CUSTOMER],
  ["method_kind", "paymentmethodtypes method"],
  ["return_url", "redirecturl successurl shopperreturnurl"],
  ["return_url", "webhookurl notificationurl", "send the URL to POST /v1/webhook_endpoints"],
  ["amount", "cents sum total value price"],
  ["amount", "applicationfee applicationfeeamount refundapplicationfee transferdata", NOTHING],
  ["amount", "reversetransfer onbehalfof finalcapture splits routing reverserouting", NOTHING],
  ["cvc", "securitycode"],
  ["exp_month", "expirymonth expirationmonth"],
  ["exp_year", "expiryyear expirationyear"],
  ["network", "chain blockchain chainid"],
  ["asset", "coin token currency"],
  ["events", "topics subscriptions"],
  ["scopes", "permissions"],
  ["starting_after", "cursor nextcursor after offset page"],
  ["starting_after", "endingbefore order sort", "lists go from new to old: remove it"],
  ["limit", "pagesize perpage size count"],
  ["created_after", "since from createdgt createdgte"],
  ["created_before", "until to createdlt createdlte"],
];

/**
 * Throws `invalid_parameter` for the first name of a body that its schema does not have, at any
 * depth. The names in a record such as `metadata` are the merchant's own.
 */
export function refuseUnknownNames(schema: z.ZodType, sent: object, path = ""): void {
  // The schema refuses a value of another kind.
  if (!takesMembersOf(schema, sent)) return;
  for (const name of Object.keys(sent)) {
    const member = memberOf(schema, name);
    if (member === undefined) throw unknownName(schema, name, path);
    const value = (sent as Record<string, unknown>)[name];
    if (typeof value !== "object" || value === null) continue;
    refuseUnknownNames(member, value, joined(path, Array.isArray(sent) ? Number(name) : name));
  }
}

/** Adds a step to the path of a field, as an error shows it: `card.number`, `events[0]`. */
export function joined(path: string, step: PropertyKey): string {
  if (typeof step === "number") return `${path}[${step}]`;
  const name = shownName(String(step));
  return path === "" ? name : `${path}.${name}`;
}

/**
 * Returns a name of the client for an error: at most 100 characters, without control characters.
 * `…` stands for a name that contains a secret, for three digits or more (a security code, or a
 * part of a card number), and for an empty name.
 */
function shownName(name: string): string {
  const searched = name.slice(0, MAX_SEARCHED);
  const is_secret = containsSecret(searched) || containsCutNumber(searched);
  if (is_secret || /^(\d{3,})?$/.test(name)) return LEFT_OUT;
  return name.slice(0, MAX_SHOWN).replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, "?");
}

export function unknownName(schema: z.ZodType, name: string, path: string): ApiError {
  const param = joined(path, name);
  const advice = adviceFor(schema, name.slice(0, MAX_COMPARED), (ours) => joined(path, ours));
  return invalidParameter(param, `"${param}" is not a parameter: ${advice}`);
}

function adviceFor(schema: z.ZodType, name: string, inPath: (ours: string) => string): string {
  const known = namesOf(schema);
  const sent = bare(name);
  const same = known.find((ours) => bare(ours) === sent);
  const [other, , advice] =
    OTHER_NAMES.find(([ours, theirs]) =>
      (ours === "" || known.includes(ours)) && theirs.split(" ").includes(sent)
    ) ?? [];
  if (same === undefined && advice !== undefined) return advice;
  const nested = same ?? other ? undefined : nestedName(schema, sent);
  if (nested !== undefined) {
    const [outer, inner] = nested;
    return `send "${inPath(outer)}": {"${inner}": …}, or remove it`;
  }
  const near = same ?? other ?? nearestName(name, known);
  if (near !== undefined) return `did you mean "${inPath(near)}"? Send that, or remove it`;
  if (known.length === 0) return "there are none here, so remove it";
  if (known.length > MAX_LISTED) return "remove it";
  return `remove it. The names here are ${known.map((ours) => `"${ours}"`).join(", ")}`;
}

/** Finds the name in one of the members: `customer[email]` is `"customer": {"email": …}`. */
function nestedName(schema: z.ZodType, sent: string): [outer: string, inner: string] | undefined {
  for (const outer of namesOf(schema)) {
    for (const inner of namesOf(memberOf(schema, outer)!)) {
      const is_same = sent === bare(outer + inner) || sent === bare(inner) && inner !== "id";
      if (is_same) return [outer, inner];
    }
  }
}

/**
 * Returns the known name that the sent one is most like: with the fewest wrong, missing, added or
 * swapped letters, at most a third of them, or else the longest that is a part of the other.
 */
export function nearestName(sent: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let fewest = Infinity;
  for (const ours of known) {
    const [a, b] = [bare(sent), bare(ours)];
    const edits = editsBetween(a, b);
    if (edits < fewest && edits <= Math.max(1, Math.floor(Math.min(a.length, b.length) / 3))) {
      [nearest, fewest] = [ours, edits];
    }
  }
  if (nearest !== undefined) return nearest;
  const words = inWords(sent);
  return known.filter((ours) => words.includes(inWords(ours)) || inWords(ours).includes(words))
    .sort((a, b) => b.length - a.length)[0];
}

/** Counts the single letters to change, add, remove or swap between two texts. */
function editsBetween(a: string, b: string): number {
  let before_last: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const is_same = a[i - 1] === b[j - 1];
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (is_same ? 0 : 1));
      const is_swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (is_swap) row[j] = Math.min(row[j]!, before_last[j - 2]! + 1);
    }
    [before_last, last] = [last, row];
  }
  return last[b.length]!;
}

/** Returns a name without case and separators: `returnUrl` and `Return-URL` are `returnurl`. */
function bare(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** Returns the words of a name between underscores: `amountToRefund` is `_amount_to_refund_`. */
function inWords(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
  return `_${words.replace(/[^a-z0-9]+/g, "_")}_`;
}
