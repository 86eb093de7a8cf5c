/**
 * Gives the key of the session to the API reference of the same local start, when it opens. The key
 * goes from page to page in the browser, and is in no address (security §2, browser). A console on
 * another host gives it to nobody, because other people's pages can have the same origin.
 */

import { isLocalStart } from "./api_base_url.ts";
import { session } from "./session.ts";

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
