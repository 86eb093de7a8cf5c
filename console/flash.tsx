/** The result of the last action, shown on the page that it led to. */

import { signal } from "@preact/signals";
import type { ApiError } from "../client/mod.ts";
import { Notice } from "./notice.tsx";
import { place, route } from "./route.ts";

interface FlashText {
  kind: "good" | "bad";
  text: string;
  code?: string;
}

/** What is to be said, and where: elsewhere it is old. */
const flash = signal<(FlashText & { place: string }) | null>(null);

/** Says on the page of the current place how an action ended. */
export function say(text: string, kind: FlashText["kind"] = "good", code?: string): void {
  flash.value = { kind, text, place: place(route.value), ...(code !== undefined && { code }) };
}

/** Says how a decline ended, whose payment is stored. */
export function sayDecline({ message, code }: ApiError): void {
  say(`${message}. The payment is stored.`, "bad", code);
}

/** Takes back what was said. */
export function hush(): void {
  flash.value = null;
}

/** Forgets what was said of another place. */
export function hushElsewhere(): void {
  if (flash.value?.place !== place(route.value)) hush();
}

/** The message, if there is one for this place. */
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
