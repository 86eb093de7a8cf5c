/**
 * The permissions of the session's key. Reads and actions ask here before they are made or offered,
 * so a key with few scopes sees no refusal of the API.
 */

import type { Scope } from "../../../packages/client/mod.ts";
import { CALL_SCOPES } from "./call_scopes.ts";
import { session } from "./session.ts";
import type { DescribedCall } from "../../../tools/generate/code_samples/snippets.ts";

/** A method of the client, such as `payments.create`. */
type CallName = keyof typeof CALL_SCOPES;
export type Need = CallName | Scope;

const CREATES: Readonly<Record<string, CallName>> = {
  payments: "payments.create",
  checkouts: "checkouts.create",
  transfers: "transfers.create",
  webhooks: "webhookEndpoints.create",
  faults: "sandbox.createFault",
};

/** The key lacks the scope of a call, so the page has not made it. */
export class LacksScope extends Error {
  constructor(readonly scope: Scope) {
    super(`The key of this page lacks the scope ${scope}.`);
  }
}

/** Returns why the key may not have this; null: it may. */
function refusalOf(need: Need): LacksScope | null {
  const scope: Scope | null = need in CALL_SCOPES ? CALL_SCOPES[need as CallName] : need as Scope;
  const scopes = session.value?.scopes ?? null;
  return scope === null || scopes === null || scopes.includes(scope) ? null : new LacksScope(scope);
}

export function may(need: Need): boolean {
  return refusalOf(need) === null;
}

/** Returns why the key may not make a call; null: it may. A request of the log has no name. */
export function refusalOfCall({ resource, method }: DescribedCall): LacksScope | null {
  const name = `${resource}.${method}`;
  return name in CALL_SCOPES ? refusalOf(name as CallName) : null;
}

export function creatableSections(): string[] {
  return Object.keys(CREATES).filter(mayCreate);
}

/** Whether the key may make an item of a section. */
export function mayCreate(section: string): boolean {
  return may(CREATES[section]!);
}
