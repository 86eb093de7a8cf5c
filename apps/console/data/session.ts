/**
 * The session: a test key and the base URL that it is sent to. The key is only in the memory of the
 * page, so a reload ends the session, unless the user keeps it in the tab (`stored_session.ts`;
 * security §2, browser).
 */

import { batch, signal } from "@preact/signals";
import type { ApiKey, DisposableSandbox } from "../../../packages/client/mod.ts";

export interface PageKey {
  api_key: string;
  /** Its scopes, which never change. Null: all. */
  scopes: ApiKey["scopes"];
}

export interface Session extends PageKey {
  base_url: string;
  /** The disposable sandbox of the key, and the session before; absent for another sandbox. */
  disposable?: { sandbox: DisposableSandbox; parent: Session };
}

/** The session, or null without a key. */
export const session = signal<Session | null>(null);
/** The keys that this page has made of disposable sandboxes, by the ids of the sandboxes. */
export const known_sandboxes = signal<ReadonlyMap<string, PageKey>>(new Map());
/** Whether the session is kept in the tab, so that a reload continues it. */
export const is_stored = signal(false);
/** The error of the API that ended the last session, or null. */
export const session_end = signal<unknown>(null);

/** The result of the check of a key's text. */
export type KeyVerdict = "test" | "live" | "malformed";

/** Prefix, mode, 43 characters of secret and 6 of checksum (contract §5). */
const TEST_KEY = /^[a-z][a-z0-9]{0,15}_test_[0-9A-Za-z]{49}$/;

/** Checks the text of a key before anything is sent, because a live key must not leave the page. */
export function judgeKey(text: string): KeyVerdict {
  if (TEST_KEY.test(text)) return "test";
  return /_live_/i.test(text) ? "live" : "malformed";
}

/** Ends the session and forgets the key. `reason` is the error of the API if that ended it. */
export function endSession(reason: unknown = null): void {
  session_end.value = reason;
  session.value = null;
  known_sandboxes.value = new Map();
  is_stored.value = false;
}

export function switchSandbox(sandbox: DisposableSandbox, key: PageKey): void {
  const parent = session.value!;
  batch(() => {
    known_sandboxes.value = new Map(known_sandboxes.value).set(sandbox.id, key);
    session.value = { ...key, base_url: parent.base_url, disposable: { sandbox, parent } };
  });
}

export function replaceSecret(secret: string): void {
  const next = { ...session.value!, api_key: secret };
  batch(() => {
    if (next.disposable) {
      known_sandboxes.value = new Map(known_sandboxes.value).set(next.disposable.sandbox.id, next);
    }
    session.value = next;
  });
}

/** Returns the id of the disposable sandbox of the session; empty for another sandbox. */
export function sandboxId(): string {
  return session.value?.disposable?.sandbox.id ?? "";
}

/** Returns to the sandbox that made the present one. Returns false if none did. */
export function leaveSandbox(): boolean {
  const { disposable } = session.value!;
  if (!disposable) return false;
  session.value = disposable.parent;
  return true;
}

/** Forgets the key of the present sandbox, because it has ended. */
export function forgetKey(): void {
  const known = new Map(known_sandboxes.value);
  known.delete(sandboxId());
  known_sandboxes.value = known;
}

/** Returns the key for display: `sk_test_…Ab12`. */
export function maskedKey(api_key: string): string {
  return `${api_key.slice(0, api_key.indexOf("_test_") + 6)}…${api_key.slice(-4)}`;
}
