/**
 * Keeps the session in the session storage of the tab, if the user wants it, so that a reload does
 * not ask for the key again. The browser deletes the storage with the tab. Other origins cannot
 * read it, and of other tabs only one that this page opens gets a copy. The key is removed when the
 * session ends. The reference of the same local start gets the key from page to page (security §2,
 * browser).
 */

import { batch, effect } from "@preact/signals";
import { apiBaseUrl, isLocalStart } from "./api_base_url.ts";
import { linked_key } from "./route.ts";
import {
  endSession,
  is_stored,
  judgeKey,
  known_sandboxes,
  type PageKey,
  type Session,
  session,
} from "./session.ts";

const ITEM = "payments-console-session";

/** The form in which the session is stored, and given to another tab. */
interface Stored {
  session: Session;
  known_sandboxes: [id: string, key: PageKey][];
}

/** Continues the session that the tab has kept, and keeps the later ones. Called once. */
export function storeSessions(): void {
  const stored = readStored();
  if (stored !== null) {
    batch(() => {
      continueSession(stored);
      is_stored.value = true;
    });
  }
  effect(() => write(is_stored.value ? presentSession() : null));
  // A link with a key ends the session before, so that its key opens the sandbox.
  effect(() => {
    if (linked_key.value !== null && session.peek() !== null) endSession();
  });
}

/** Returns the session as it can be continued elsewhere; null: there is none. */
export function presentSession(): Stored | null {
  const present = session.value;
  return present && { session: present, known_sandboxes: [...known_sandboxes.value] };
}

/** Continues a session that was stored, or that another tab has given. */
export function continueSession(stored: Stored): void {
  batch(() => {
    session.value = stored.session;
    known_sandboxes.value = new Map(stored.known_sandboxes);
  });
}

export function isUsable(stored: Stored | null): stored is Stored {
  // Another build of the page on the same origin can belong to another API.
  return stored?.session.base_url === apiBaseUrl() &&
    judgeKey(stored.session.api_key) === "test" && stored.session.scopes !== undefined;
}

/** Returns the stored session, or null if there is none for this API. */
function readStored(): Stored | null {
  try {
    const stored: Stored | null = JSON.parse(sessionStorage.getItem(ITEM) ?? "null");
    return isUsable(stored) ? stored : null;
  } catch {
    return null;
  }
}

function write(stored: Stored | null): void {
  try {
    if (stored === null) return sessionStorage.removeItem(ITEM);
    sessionStorage.setItem(ITEM, JSON.stringify(stored));
  } catch {
    // A browser can forbid the storage. Then a reload asks for the key again.
  }
}

/** The channel on which the reference asks (`tools/site/reference_site/page.js`). */
const CHANNEL = "payments-console-key";

/** Responds to the reference. Called once. */
export function shareKey(): void {
  if (!isLocalStart()) return;
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }) => {
    if (data === "key?" && session.value !== null) {
      channel.postMessage({ key: session.value.api_key });
    }
  });
}
