/** The double of Stripe under kills of both processes: one charge a payment, to the cent. */

import assert from "node:assert/strict";
import { until } from "../support/common/until.ts";
import { type DoubleCase, doubleTest } from "../support/stripe/double_case.ts";
import type { StripeObject } from "../support/stripe/journal.ts";

const PAYMENTS = 120;
const KILLS = 9;
/** Every third kill ends localstripe; the others end the double's process. */
const ENGINE_EVERY = 3;
const CONCURRENCY = 8;

/** Kinds of payments by their number, with the balance that each leaves before fees. */
const KINDS = [
  { net: 1099, form: {} },
  { net: 500, form: { capture_method: "manual" } },
  { net: 799, form: {} },
  { net: 0, form: { payment_method: "pm_card_chargeDeclined" } },
] as const;

doubleTest(`${PAYMENTS} payments under ${KILLS} kills are charged once`, async (given) => {
  const { double, post, create, books } = given;
  let [started, done, retries, kills] = [0, 0, 0, 0];
  let restarted: Promise<void> = Promise.resolve();

  /** Repeats a call under its key until the double responds. */
  async function settle(call: () => ReturnType<DoubleCase["post"]>): Promise<StripeObject> {
    for (;;) {
      const response = await call().catch(() => null);
      if (response && response.status !== 409 && response.status < 500) return response.body;
      retries++;
      await restarted;
    }
  }

  async function pay(): Promise<void> {
    for (let n = started++; n < PAYMENTS; n = started++) {
      const { form } = KINDS[n % KINDS.length]!;
      const named = { "metadata[payment]": `pay_${n}`, ...form };
      const { id } = await settle(() => create(named, `pc_${n}`));
      const next = [
        null,
        [`payment_intents/${id}/capture`, { amount_to_capture: "500" }],
        ["refunds", { payment_intent: id, amount: "300", "metadata[refund]": `re_${n}` }],
        null,
      ][n % KINDS.length] as [string, Record<string, string>] | null;
      if (next) assert.equal((await settle(() => post(...next, `next_${n}`))).error, undefined);
      done++;
    }
  }

  async function kill(): Promise<void> {
    while (kills < KILLS) {
      const after = Math.floor(PAYMENTS * (kills + 1) / (KILLS + 1));
      await until(`${after} payments are done`, () => done >= after);
      restarted = ++kills % ENGINE_EVERY === 0 ? double.restartEngine() : double.restart();
      await restarted;
    }
  }

  await Promise.all([kill(), ...Array.from({ length: CONCURRENCY }, pay)]);
  assert.ok(retries >= KILLS, "every kill breaks a call");
  const { charge, refund, balance_transaction } = await books();
  const numbers = Array.from({ length: PAYMENTS }, (_, n) => n);
  assert.deepEqual(
    charge.map(({ metadata }) => metadata.payment).sort(),
    [
      ...numbers.map((n) => `pay_${n}`),
    ].sort(),
  );
  assert.deepEqual(
    refund.map(({ metadata }) => metadata.refund).sort(),
    numbers.filter((n) => n % KINDS.length === 2).map((n) => `re_${n}`).sort(),
  );
  const sum = balance_transaction.reduce((total, { amount }) => total + amount, 0);
  assert.equal(sum, numbers.reduce((total, n) => total + KINDS[n % KINDS.length]!.net, 0));
});
