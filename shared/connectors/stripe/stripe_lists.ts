/**
 * Lists of Stripe: a page, and the first match. Lists are newest first. Unlike Stripe's
 * search, they show an object as soon as it exists.
 */

import type { ProviderAccount } from "../../domain/providers/connector.ts";
import {
  callStripe,
  GARBAGE,
  isUnknown,
  type StripeFields,
  type StripeUnknown,
} from "./stripe_call.ts";
import { StripePage } from "./stripe_objects.ts";

/** Most objects of a page: the most that Stripe gives. */
const PAGE_LENGTH = 100;

/** An object of a list. Its members are not checked yet. */
type Listed = Record<string, unknown>;

interface ListPage {
  objects: Listed[];
  /** The id that continues the list with older objects; null at its end. */
  after: string | null;
  /** The length with which the page fits. The next pages begin with it. */
  length: number;
}

/** Returns the filter of the objects from one time to another, in Unix seconds. */
export function createdBetween(from: number, to: number): StripeFields {
  return [["created[gte]", String(from)], ["created[lt]", String(to)]];
}

/**
 * Reads the page of a list that follows the object `after`. A page with too many bytes is read
 * again with half of its objects, at worst one by one. Never throws.
 */
export async function readPage(
  account: ProviderAccount,
  path: string,
  fields: StripeFields,
  after: string | null,
  signal: AbortSignal,
  longest = PAGE_LENGTH,
): Promise<ListPage | StripeUnknown> {
  let length = longest;
  const ask = () => {
    const paging: [string, string][] = [["limit", String(length)]];
    if (after !== null) paging.push(["starting_after", after]);
    const request = { method: "GET", path, fields: [...fields, ...paging] } as const;
    return callStripe(account, request, signal);
  };
  let response = await ask();
  while (isUnknown(response) && response.too_long && length > 1) {
    length = Math.floor(length / 2);
    response = await ask();
  }
  if (isUnknown(response)) return response;
  const page = StripePage.safeParse(response.body);
  if (response.status !== 200 || !page.success) return GARBAGE;
  const { data, has_more } = page.data;
  const last = data.at(-1)?.id;
  if (!has_more) return { objects: data, after: null, length };
  // A page that cannot be continued, or that repeats itself, would hide the rest.
  if (typeof last !== "string" || last === after) return GARBAGE;
  return { objects: data, after: last, length };
}

/** Returns the first object of a list that matches; null if none does. Never throws. */
export async function findListed(
  account: ProviderAccount,
  path: string,
  fields: StripeFields,
  matches: (object: Listed) => boolean,
  signal: AbortSignal,
): Promise<Listed | null | StripeUnknown> {
  let after: string | null = null;
  let length: number | undefined;
  do {
    const page: ListPage | StripeUnknown = await readPage(
      account,
      path,
      fields,
      after,
      signal,
      length,
    );
    if (isUnknown(page)) return page;
    const found = page.objects.find(matches);
    if (found !== undefined) return found;
    ({ after, length } = page);
  } while (after !== null);
  return null;
}
