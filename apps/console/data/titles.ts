/**
 * The sections of the console, and the names of their pages: in the navigation, in the title of the
 * window, and in links to them.
 */

import type { CallName } from "./permissions.ts";
import type { Route } from "./route.ts";

/** A section, with the beginning of the ids of its items, and the page and the call that make one. */
type Section = readonly [
  list: string,
  item?: string,
  prefix?: string,
  create?: string,
  call?: CallName,
];

/** The sections, by the first step of a route. Without a step it is the home page. */
export const SECTIONS: Readonly<Record<string, Section>> = {
  home: ["Home"],
  search: ["Search"],
  payments: ["Payments", "Payment", "pay", "Create a payment", "payments.create"],
  checkouts: ["Checkouts", "Checkout", "chk", "Create a checkout", "checkouts.create"],
  compare: ["Compare payments"],
  instruments: ["Instruments", "Instrument", "ins"],
  transfers: ["Transfers", "Transfer", "tr", "Create a transfer", "transfers.create"],
  refunds: ["Refunds", "Refund", "re"],
  disputes: ["Disputes", "Dispute", "dp"],
  balance: ["Balance"],
  events: ["Events", "Event", "evt"],
  webhooks: ["Webhooks", "Endpoint", "whe", "Add an endpoint", "webhookEndpoints.create"],
  deliveries: ["Deliveries", "Delivery", "whd"],
  requests: ["Requests", "Request", "req"],
  ledger: ["Ledger entries", "Ledger entry", "le"],
  keys: ["API keys", "API key", "key"],
  sandboxes: ["Disposable sandboxes", "Sandbox", "env"],
  idempotency_keys: ["Idempotency key"],
  faults: ["Faults", "Fault", "flt", "Declare a fault", "sandbox.createFault"],
};

/** Characters of an id in a title: its random end. */
const ID_CHARACTERS = 6;

export function sectionName(section: string): string {
  return SECTIONS[section]?.[0] ?? section;
}

export function itemName(section: string): string {
  return SECTIONS[section]?.[1] ?? sectionName(section);
}

/** Returns the words for one item of a section and several: `ledger entry`, `ledger entries`. */
export function wordsOf(section: string): { one: string; noun: string } {
  const one = itemName(section).replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
  return { one, noun: `${one}s`.replace(/ys$/, one.endsWith("ey") ? "ys" : "ies") };
}

/** @param article the words in place of `a`: `Create the first payment` */
export function createName(section: string, article?: string): string {
  const name = SECTIONS[section]?.[3] ?? sectionName(section);
  return article === undefined ? name : name.replace(/ an? /, ` ${article}`);
}

/** Returns the name of a page, such as `Payment …k3v9q2`. */
export function pageName({ steps: [section = "home", id], query }: Route): string {
  if (!(section in SECTIONS)) return "Page not found";
  if (section === "search" && query["q"]) return `Search for ${query["q"]}`;
  if (id === undefined) return sectionName(section);
  return id === "new" ? createName(section) : `${itemName(section)} …${id.slice(-ID_CHARACTERS)}`;
}
