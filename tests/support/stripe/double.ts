/**
 * Starts the double of Stripe: localstripe and double_process.ts as two processes on free loopback
 * ports.
 */

import { join } from "node:path";
import { freePort } from "../common/free_port.ts";
import { launch } from "../common/process.ts";
import type { Fault } from "./faults.ts";
import type { KINDS, StripeObject } from "./journal.ts";
import { has_localstripe, PYTHON, startLocalstripe } from "./localstripe.ts";
import type { NotificationSettings } from "./notifications.ts";

/** Everything that happened at the double, the oldest first. */
export type StripeBooks = Record<typeof KINDS[number], StripeObject[]>;

/** Actions of payers, banks and Stripe. An action that is not possible throws. */
export interface StripeActions {
  /** Opens a dispute; by default over all that is not refunded. */
  disputes: { payment_intent: string; amount?: number; reason?: string };
  close_dispute: { dispute: string; status: "won" | "lost" | "prevented" };
  /** Books a movement of the account that belongs to no object. */
  movements: { owner: string; type: string; amount: number; fee?: number };
  /** Settles a refund of a payment with `pm_card_pendingRefund`, or makes any refund fail. */
  settle_refund: { refund: string; status: "succeeded" | "failed" };
  /** Pays out the whole balance of a currency. The payout stays on its way. */
  payouts: { owner: string; currency: string };
  /** Ends an authorization, as Stripe does after seven days. */
  expire: { payment_intent: string };
  /** The network gives a saved card another expiry. */
  renew: { payment_method: string; exp_year: number };
}

/**
 * A running double. An owner is a secret key such as `sk_live_1`, or a connected account under it:
 * `sk_live_1/acct_1`. Each owner sees its own objects alone.
 */
export type StripeDouble = Awaited<ReturnType<typeof startStripeDouble>>;

/** Whether tests with the double are skipped. In CI a missing localstripe is a failure. */
export const no_stripe_double = !has_localstripe && Deno.env.get("CI") === undefined;
if (no_stripe_double) {
  console.warn(`Tests with localstripe are not run unless CI is set: ${PYTHON} does not have it`);
}

/** Starts a double with empty books. Throws if localstripe is missing. */
export async function startStripeDouble() {
  if (!has_localstripe) throw new Error("localstripe is not installed");
  const folder = await Deno.makeTempDir({ prefix: "payments-stripe-" });
  const [port, admin_port, engine_port] = [freePort(), freePort(), freePort()];
  const start = () =>
    launch(import.meta.resolve("./double_process.ts"), {
      ...{ engine_url: `http://127.0.0.1:${engine_port}`, port, admin_port },
      journal: join(folder, "journal.jsonl"),
    });
  const admin = async (action: string, given?: unknown) => {
    const body = given === undefined ? null : JSON.stringify(given);
    const response = await fetch(`http://127.0.0.1:${admin_port}/${action}`, {
      method: "POST",
      body,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${action}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  let engine = await startLocalstripe(engine_port);
  let double = await start();
  return {
    base_url: `http://127.0.0.1:${port}`,
    plant: (...faults: Fault[]): Promise<void> => admin("faults", faults),
    /** Returns the names of the faults that still wait for calls. */
    waitingFaults: (): Promise<string[]> => admin("waiting_faults"),
    clearFaults: (): Promise<void> => admin("clear_faults"),
    notify: (settings: Partial<NotificationSettings>): Promise<void> =>
      admin("notifications", settings),
    /** Does an action, and returns the object that it made or changed. */
    act: <A extends keyof StripeActions>(
      action: A,
      given: StripeActions[A],
    ): Promise<StripeObject> => admin(action, given),
    /** Returns the books of an owner, or of all. */
    books: (owner?: string): Promise<StripeBooks> =>
      admin(`books${owner ? `?owner=${encodeURIComponent(owner)}` : ""}`),
    /** Kills the process of the double and starts it again on the same port and journal. */
    async restart() {
      await double.kill();
      double = await start();
    },
    /** Kills localstripe, which forgets everything, and starts it again. */
    async restartEngine() {
      await engine.close();
      engine = await startLocalstripe(engine_port);
    },
    async close() {
      await Promise.all([double.kill(), engine.close()]);
      await Deno.remove(folder, { recursive: true });
    },
  };
}
