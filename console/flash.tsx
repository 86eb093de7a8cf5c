/** The message about the last action, on the page that the action has opened. */

import { signal } from "@preact/signals";
import type { ApiError } from "../client/mod.ts";
import { Notice } from "./notice.tsx";
import { place, route } from "./route.ts";

interface FlashText {
  kind: "good" | "bad";
  text: string;
  code?: string;
}

/** The message and its page. On other pages it is not shown. */
const flash = signal<(FlashText & { place: string }) | null>(null);

/** Shows a message on the current page. */
export function showFlash(text: string, kind: FlashText["kind"] = "good", code?: string): void {
  flash.value = { kind, text, place: place(route.value), ...(code !== undefined && { code }) };
}

/** Shows the message about a declined payment, which the API has stored. */
export function showDecline({ message, code }: ApiError): void {
  showFlash(`${message}. The payment is stored.`, "bad", code);
}

/** Removes the message. */
export function clearFlash(): void {
  flash.value = null;
}

/** Removes the message if it belongs to another page. */
export function clearFlashOfOtherPage(): void {
  if (flash.value?.place !== place(route.value)) clearFlash();
}

/** The message of the current page, if there is one. */
export function Flash() {
  const said = flash.value?.place === place(route.value) ? flash.value : null;
  return (
    <div aria-live="polite">
      {said && (
        <Notice kind={said.kind}>
          <p>
            {said.text}
            {said.code && <code>{said.code}</code>}
          </p>
        </Notice>
      )}
    </div>
  );
}
