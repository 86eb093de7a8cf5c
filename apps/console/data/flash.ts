/** The message about the last action, on the page that the action has opened. */

import { signal } from "@preact/signals";
import type { ApiError } from "../../../packages/client/mod.ts";
import { place, route } from "./route.ts";

interface FlashText {
  kind: "good" | "bad";
  text: string;
  code?: string;
  /** The idempotency key of the request, and what happened to it. */
  retry?: { key: string; text: string };
}

/** The message and its page. On other pages it is not shown. */
export const flash = signal<(FlashText & { place: string }) | null>(null);

/** Shows a message on the current page. */
export function showFlash(text: string, kind: FlashText["kind"] = "good", code?: string): void {
  flash.value = { kind, text, place: place(route.value), ...(code !== undefined && { code }) };
}

export function showDecline({ message, code }: ApiError): void {
  showFlash(`${message}. The payment is stored.`, "bad", code);
}

/** Adds to the message of the current page what happened to the idempotency key of the request. */
export function addRetry(key: string, text: string): void {
  const here = place(route.value);
  const last = flash.value?.place === here ? flash.value : { kind: "good" as const, text: "" };
  flash.value = { ...last, place: here, retry: { key, text } };
}

export function clearFlash(): void {
  flash.value = null;
}

/** Removes the message if it belongs to another page. */
export function clearFlashOfOtherPage(): void {
  if (flash.value?.place !== place(route.value)) clearFlash();
}
