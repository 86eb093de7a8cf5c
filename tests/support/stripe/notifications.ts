/**
 * Notifications: sends each event to one URL, signed as Stripe signs, until the receiver accepts
 * it. After a restart the double sends the events that nobody has accepted.
 */

import { createHmac } from "node:crypto";
import type { Journal, StripeObject } from "./journal.ts";

/** How notifications are sent. The settings survive a restart. */
export interface NotificationSettings {
  /** Null sends nothing. */
  url: string | null;
  /** One signature for each, as during a rotation. */
  secrets: string[];
  /** How often each event is sent, apart from retries. */
  copies: number;
  /** Collects events for so long and sends them in reverse order; 0 sends each at once. */
  reverse_ms: number;
  delay_ms: number;
  /** Number of attempts that are not sent but count as failed. */
  lose: number;
}

const DEFAULTS: NotificationSettings = {
  url: null,
  secrets: [],
  copies: 1,
  reverse_ms: 0,
  delay_ms: 0,
  lose: 0,
};
/** The first delay of a retry; it doubles with each, so the last one comes after 100 seconds. */
const RETRY_MS = 100;
const MAX_ATTEMPTS = 11;
const DEADLINE_MS = 10_000;

/** Returns the header `Stripe-Signature` of a notification. */
export function signatureHeader(body: string, secrets: readonly string[], at_ms: number): string {
  const t = Math.floor(at_ms / 1000);
  const signatures = secrets.map((secret) =>
    `,v1=${createHmac("sha256", secret).update(`${t}.${body}`).digest("hex")}`
  );
  return `t=${t}${signatures.join("")}`;
}

/** The sender of the double. */
export class Notifier {
  #settings: NotificationSettings;
  #collected: StripeObject[] = [];

  constructor(readonly journal: Journal) {
    this.#settings = { ...DEFAULTS, ...journal.notifications };
    this.send(journal.list(null, "event"));
  }

  /** Changes settings, for later events. */
  configure(settings: Partial<NotificationSettings>): void {
    this.#settings = { ...this.#settings, ...settings };
    this.journal.commit({ notifications: this.#settings });
  }

  /** Sends the events that no receiver has accepted yet. */
  send(events: readonly StripeObject[]): void {
    const { url, reverse_ms } = this.#settings;
    if (url === null) return;
    for (const event of events) {
      if (this.journal.notified.has(event.id)) continue;
      if (reverse_ms === 0) this.#start(event);
      else if (this.#collected.push(event) === 1) {
        setTimeout(() => this.#sendReversed(), reverse_ms);
      }
    }
  }

  /** Sends each event after the first attempt of the one before, so that they arrive reversed. */
  async #sendReversed(): Promise<void> {
    for (const event of this.#collected.splice(0).reverse()) await this.#start(event);
  }

  async #start(event: StripeObject): Promise<void> {
    const { copies, delay_ms } = this.#settings;
    if (delay_ms > 0) await new Promise((resolve) => setTimeout(resolve, delay_ms));
    await Promise.all(Array.from({ length: copies }, () => this.#attempt(event, 1)));
  }

  async #attempt(event: StripeObject, attempt: number): Promise<void> {
    if (await this.#post(event)) {
      this.journal.commit({ notified: event.id });
    } else if (attempt < MAX_ATTEMPTS) {
      const delay_ms = RETRY_MS * 2 ** (attempt - 1);
      setTimeout(() => this.#attempt(event, attempt + 1), delay_ms);
    }
  }

  async #post(event: StripeObject): Promise<boolean> {
    const { url, secrets } = this.#settings;
    if (this.#settings.lose > 0) {
      this.#settings.lose--;
      return false;
    }
    const body = JSON.stringify(event, null, 2);
    const headers = {
      "content-type": "application/json; charset=utf-8",
      "stripe-signature": signatureHeader(body, secrets, Date.now()),
    };
    try {
      const signal = AbortSignal.timeout(DEADLINE_MS);
      const response = await fetch(url!, { method: "POST", headers, body, signal });
      await response.body?.cancel();
      return response.ok;
    } catch {
      return false;
    }
  }
}
