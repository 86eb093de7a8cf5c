/** The pages of resources, by their ids. */

import { href } from "./route.ts";
import { SECTIONS } from "./titles.ts";

/** Beginnings of texts of the API that are no ids of resources, and where the texts belong. */
const NO_RESOURCES: Readonly<Record<string, string>> = {
  pm: "It is the token of a card. The page of a new payment takes it.",
  chg: "It is a cursor of GET /changes. A page sends it to learn whether anything has changed.",
  inb: "It is a cursor of an inbox. A program sends it to acknowledge deliveries.",
};
/** Splits a text into its ids, at the odd places, and the parts between them. */
export const IDS = /\b([a-z]{2,4}_[0-9a-z]{26})\b/;

/** Returns a text with shortened ids: `pay_…k3v9`. */
export function shortened(text: string): string {
  return text.replace(/([a-z]+_)[0-9a-z]{22}([0-9a-z]{4})/g, "$1…$2");
}

export function isId(text: string): boolean {
  return IDS.exec(text)?.[0] === text;
}

/** Returns why no page shows this text of the API; null: an id with a page, or another text. */
export function whyNoPage(text: string): string | null {
  const prefix = /^([a-z]{2,4})_/.exec(text)?.[1] ?? "";
  if (Object.hasOwn(NO_RESOURCES, prefix)) return NO_RESOURCES[prefix]!;
  return isId(text) && hrefOf(text) === null ? "The API has no resource with this prefix." : null;
}

/** Returns the link to the page that shows a resource; null: no page shows this kind. */
export function hrefOf(id: string): string | null {
  const prefix = id.split("_")[0]!;
  // The entries of a ledger transaction are a list.
  if (prefix === "txn") return href(["ledger"], { transaction_id: id });
  const [section] = Object.entries(SECTIONS).find(([, [, , ids]]) => ids === prefix) ?? [];
  return section === undefined ? null : href([section, id]);
}
