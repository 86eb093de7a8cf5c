/**
 * The permissions of the session's key. Reads and actions ask here before they are made or offered,
 * so a key with few scopes sees no refusal of the API.
 */

import type { PaymentsClient, Scope } from "../../../packages/client/mod.ts";
import { session } from "./session.ts";
import { SECTIONS } from "./titles.ts";
import type { DescribedCall } from "../../../tools/generate/code_samples/snippets.ts";

type Resource = keyof PaymentsClient;
/** A method of the client, such as `payments.create`. */
export type CallName = {
  [One in Resource]: `${One}.${keyof PaymentsClient[One] & string}`;
}[Resource];
export type Need = CallName | Scope;

/** The scopes of the calls of a resource: of those that read, and of all others. */
const SCOPES: Readonly<Record<Resource, readonly [reads: Scope, changes: Scope]>> = {
  payments: ["payments:read", "payments:write"],
  refunds: ["payments:read", "refunds:write"],
  disputes: ["payments:read", "payments:write"],
  instruments: ["payments:read", "instruments:write"],
  checkouts: ["payments:read", "payments:write"],
  customers: ["customers:erase", "customers:erase"],
  transfers: ["transfers:read", "transfers:write"],
  ledgerEntries: ["ledger:read", "ledger:read"],
  balance: ["ledger:read", "ledger:read"],
  webhookEndpoints: ["webhooks:read", "webhooks:write"],
  webhookDeliveries: ["webhooks:read", "webhooks:write"],
  events: ["events:read", "events:read"],
  apiKeys: ["keys:write", "keys:write"],
  idempotencyKeys: ["payments:read", "payments:read"],
  sandbox: ["sandbox:write", "sandbox:write"],
  sandboxes: ["sandbox:write", "sandbox:write"],
};
const READS = /\.(?:retrieve|list|listRefunds|totals|inbox)$/;
/** Calls with another scope; null: any key may make it. */
const OTHERS: { readonly [Call in CallName]?: Scope | null } = {
  "payments.refund": "refunds:write",
  "apiKeys.own": null,
  "sandbox.changes": null,
  "sandbox.clock": null,
};

/** The key lacks the scope of a call, so the page has not made it. */
export class LacksScope extends Error {
  constructor(readonly scope: Scope) {
    super(`The key of this page lacks the scope ${scope}.`);
  }
}

/** Returns the scope of a call; null: any key may make it. */
export function scopeOf(call: CallName): Scope | null {
  const [reads, changes] = SCOPES[call.split(".")[0] as Resource];
  return call in OTHERS ? OTHERS[call]! : READS.test(call) ? reads : changes;
}

/** Returns why the key may not have this; null: it may. */
function refusalOf(need: Need): LacksScope | null {
  const scope = need.includes(".") ? scopeOf(need as CallName) : need as Scope;
  const scopes = session.value?.scopes ?? null;
  return scope === null || scopes === null || scopes.includes(scope) ? null : new LacksScope(scope);
}

export function may(need: Need): boolean {
  return refusalOf(need) === null;
}

/** Returns why the key may not make a call; null: it may. A request of the log has no name. */
export function refusalOfCall({ resource, method }: DescribedCall): LacksScope | null {
  return resource in SCOPES ? refusalOf(`${resource}.${method}` as CallName) : null;
}

export function creatableSections(): string[] {
  return Object.keys(SECTIONS).filter(mayCreate);
}

/** Whether a page makes items of a section, and the key may make one. */
export function mayCreate(section: string): boolean {
  const [, , , , call] = SECTIONS[section]!;
  return call !== undefined && may(call);
}
