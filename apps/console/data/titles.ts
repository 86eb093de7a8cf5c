/** The names of the pages: in the navigation, in the title of the window, and in links to them. */

import type { Route } from "./route.ts";

interface Names {
  list: string;
  item?: string;
  create?: string;
}

/** The names, by the first step of a route. Without a step it is the home page. */
const NAMES: Readonly<Record<string, Names>> = {
  home: { list: "Home" },
  search: { list: "Search" },
  payments: { list: "Payments", item: "Payment", create: "Create a payment" },
  checkouts: { list: "Checkouts", item: "Checkout", create: "Create a checkout" },
  compare: { list: "Compare payments" },
  instruments: { list: "Instruments", item: "Instrument" },
  transfers: { list: "Transfers", item: "Transfer", create: "Create a transfer" },
  refunds: { list: "Refunds", item: "Refund" },
  disputes: { list: "Disputes", item: "Dispute" },
  balance: { list: "Balance" },
  events: { list: "Events", item: "Event" },
  webhooks: { list: "Webhooks", item: "Endpoint", create: "Add an endpoint" },
  deliveries: { list: "Deliveries", item: "Delivery" },
  requests: { list: "Requests", item: "Request" },
  ledger: { list: "Ledger entries", item: "Ledger entry" },
  keys: { list: "API keys", item: "API key" },
  sandboxes: { list: "Disposable sandboxes", item: "Sandbox" },
  idempotency_keys: { list: "Idempotency key" },
  faults: { list: "Faults", item: "Fault", create: "Declare a fault" },
};

/** Characters of an id in a title: its random end. */
const ID_CHARACTERS = 6;

export function sectionName(section: string): string {
  return NAMES[section]?.list ?? section;
}

export function itemName(section: string): string {
  return NAMES[section]?.item ?? sectionName(section);
}

/** Returns the words for one item of a section and several: `ledger entry`, `ledger entries`. */
export function wordsOf(section: string): { one: string; noun: string } {
  const one = itemName(section).replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
  return { one, noun: `${one}s`.replace(/ys$/, one.endsWith("ey") ? "ys" : "ies") };
}

/** @param article the words in place of `a`: `Create the first payment` */
export function createName(section: string, article?: string): string {
  const name = NAMES[section]?.create ?? sectionName(section);
  return article === undefined ? name : name.replace(/ an? /, ` ${article}`);
}

/** Whether a page makes items of a section. */
export function hasCreatePage(section: string): boolean {
  return NAMES[section]?.create !== undefined;
}

/** Returns the name of a page, such as `Payment …k3v9q2`. */
export function pageName({ steps: [section = "home", id], query }: Route): string {
  const names = NAMES[section];
  if (!names) return "Page not found";
  if (section === "search" && query["q"]) return `Search for ${query["q"]}`;
  if (id === undefined) return names.list;
  return id === "new" ? createName(section) : `${itemName(section)} …${id.slice(-ID_CHARACTERS)}`;
}
