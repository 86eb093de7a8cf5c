/**
 * Payments by bank transfer with a bank that books what the payer sends.
 */

import assert from "node:assert/strict";
import { type Payment, PaymentsClient } from "../../../packages/client/mod.ts";
import { creditorReference } from "../../../shared/core/creditor_reference.ts";
import { epcQr } from "../../../shared/core/epc_qr.ts";
import { isValidIban } from "../../../shared/core/iban.ts";

/** The service and the bank. */
export interface TransferWorld {
  base_url: string;
  api_key: string;
  /** Makes the bank book a transfer of the payer with the reference of the payment. */
  book(payment: Payment, amount_minor: number): Promise<void>;
  /** Lets the time of all open payments end. */
  expire(): Promise<void>;
}

const AMOUNT = 1000;
const DAYS_14_MS = 14 * 24 * 3_600_000;

/** One step of a payment: the bank books an amount, or the merchant cancels. */
type Step = number | "cancel";

/**
 * The steps before and after the time is over, then the status, `amount_received`, the failure
 * code, and the captured and the unapplied money.
 */
type Case = [
  name: string,
  before: Step[],
  after: Step[],
  end: [status: string, received: number, failure: string | null],
  money: [available: number, unapplied: number],
];

const CASES: Case[] = [
  ["exact", [1000], [], ["completed", 1000, null], [1000, 0]],
  ["in parts", [400, 1, 599], [], ["completed", 1000, null], [1000, 0]],
  ["too much", [1007], [], ["completed", 1007, null], [1000, 7]],
  ["too much in parts", [999, 8], [], ["completed", 1007, null], [1000, 7]],
  ["twice", [1000, 1000], [], ["completed", 2000, null], [1000, 1000]],
  ["too little", [999], [], ["failed", 999, "underpaid"], [0, 999]],
  ["nothing", [], [], ["failed", 0, "expired"], [0, 0]],
  ["late", [], [1000], ["failed", 1000, "expired"], [0, 1000]],
  ["the rest is late", [400], [600], ["failed", 1000, "underpaid"], [0, 1000]],
  ["cancelled", ["cancel"], [], ["cancelled", 0, null], [0, 0]],
  ["a part, then cancelled", [400, "cancel"], [], ["cancelled", 400, null], [0, 400]],
  ["after a cancel", ["cancel", 1000], [], ["cancelled", 1000, null], [0, 1000]],
];

/** Runs the cases by `method_kind`, in a currency. */
export async function payByTransfer(
  t: Deno.TestContext,
  { base_url, api_key, book, expire }: TransferWorld,
  { method_kind, currency }: { method_kind: "sepa" | "swift"; currency: string },
): Promise<void> {
  const client = new PaymentsClient({ apiKey: api_key, baseUrl: base_url });
  const created = await Promise.all(
    CASES.map(() => client.payments.create({ amount: AMOUNT, currency, method_kind })),
  );

  await t.step(`${method_kind} in ${currency}: the payer gets bank details`, () => {
    for (const { id, status, amount_received, method, next_action, created_at } of created) {
      assert.deepEqual([status, amount_received, method], ["pending", 0, null]);
      assert.ok(next_action?.type === "bank_transfer");
      const { iban, bic, holder_name, expires_at, epc_qr, ...wanted } = next_action;
      assert.ok(isValidIban(iban));
      assert.match(bic, /^[A-Z]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/);
      const reference = creditorReference(id);
      assert.deepEqual(wanted, {
        type: "bank_transfer",
        reference,
        amount_minor: AMOUNT,
        currency,
      });
      assert.equal(Date.parse(expires_at) - Date.parse(created_at), DAYS_14_MS);
      assert.equal(
        epc_qr,
        epcQr({ iban, bic, holder_name, reference, amount_minor: AMOUNT, currency }),
      );
      assert.equal(epc_qr === null, currency !== "EUR");
    }
  });

  const take = async (payment: Payment, steps: Step[]) => {
    for (const step of steps) {
      if (step === "cancel") await client.payments.cancel(payment.id);
      else await book(payment, step);
    }
  };
  for (const [i, [, before]] of CASES.entries()) await take(created[i]!, before);
  await expire();
  for (const [i, [, , after]] of CASES.entries()) await take(created[i]!, after);

  for (const [i, [name, , , end, money]] of CASES.entries()) {
    await t.step(`${method_kind} in ${currency}: ${name}`, async () => {
      const payment_id = created[i]!.id;
      const payment = await client.payments.retrieve(payment_id);
      const { status, amount_received, failure_code, next_action } = payment;
      assert.deepEqual([status, amount_received, failure_code, next_action], [...end, null]);
      const sums: Record<string, number> = { available: 0, unapplied: 0, processor: 0 };
      for await (const entry of client.ledgerEntries.list({ payment_id })) {
        const sign = entry.direction === "credit" ? 1 : -1;
        sums[entry.account]! += sign * entry.amount_minor;
      }
      assert.deepEqual([sums.available, sums.unapplied], money);
      const events = await Array.fromAsync(client.events.list({ payment_id }));
      const newest = events.find(({ sequence }) => sequence === payment.sequence);
      assert.deepEqual(newest?.data.object, payment, "the newest event shows the payment");
    });
  }
}
