/**
 * Opens links with Ctrl, Shift or the middle button in a new tab, which continues the session. The
 * key is only in the memory of the page, so the new tab asks the page that opened it. No other tab
 * gets an answer, and each gets one (security §2, browser).
 */

import { linked_key } from "./route.ts";
import { session } from "./session.ts";
import { continueSession, isUsable, presentSession } from "./stored_session.ts";

const QUESTION = "payments-console-session?";

/** The tabs that this page has opened and that have not asked yet. */
const opened = new WeakSet<MessageEventSource>();

/** Watches clicks and answers new tabs. If a page has opened this one, asks it. Called once. */
export function shareWithNewTabs(): void {
  addEventListener("click", openLink);
  addEventListener("auxclick", openLink);
  addEventListener("message", ({ source, origin, data }) => {
    if (data !== QUESTION || origin !== location.origin || source === null) return;
    if (opened.delete(source) && session.value !== null) {
      source.postMessage(presentSession(), { targetOrigin: origin });
    }
  });
  if (opener !== null && session.value === null && linked_key.value === null) askOpener(opener);
}

function openLink(event: MouseEvent): void {
  const is_wanted = event.button === 1 ||
    (event.button === 0 && (event.ctrlKey || event.metaKey || event.shiftKey));
  const link = (event.target as Element).closest<HTMLAnchorElement>('a[href^="#/"]');
  if (!is_wanted || link === null || session.value === null) return;
  const tab = open(link.href);
  // If the browser forbids it, it opens the link itself, and the tab asks for the key.
  if (tab === null) return;
  event.preventDefault();
  opened.add(tab);
}

function askOpener(asked: Window): void {
  const take = ({ source, origin, data }: MessageEvent) => {
    if (source !== asked || origin !== location.origin) return;
    removeEventListener("message", take);
    // From here on neither page can reach the other.
    opener = null;
    if (session.value === null && isUsable(data)) continueSession(data);
  };
  addEventListener("message", take);
  // The browser delivers it to a page of this origin only.
  asked.postMessage(QUESTION, location.origin);
}
