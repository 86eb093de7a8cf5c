/** The ids that the requests of a story need, from the responses to its earlier requests. */

import type { Action } from "./plan.ts";

/** The id of no refund. */
const NO_REFUND = "re_" + "0".repeat(26);

/** Collects the ids of a story. */
export class StoryIds {
  /** Id of the payment or transfer; null without one, so the story ends. */
  subject: string | null = "none";
  readonly #refunds: string[] = [];

  /** The id in the request of an action: that of a refund, or that of the payment or transfer. */
  idFor(action: Action): string {
    if (action.do !== "advance_refund") return this.subject ?? "none";
    return this.#refunds[Math.floor(action.which * this.#refunds.length)] ?? NO_REFUND;
  }

  /** Reads the ids in the response to an action. @param status 0 without a response */
  learn(action: Action, status: number, body: string): void {
    if (action.do === "create" || action.do === "transfer") {
      const shown = status === 0 ? {} : JSON.parse(body);
      this.subject = shown.error?.payment?.id ?? shown.id ?? null;
    }
    if (action.do === "refund" && status === 201) this.#refunds.push(JSON.parse(body).id);
  }
}
