/**
 * Sandbox payments that the payer sends, by bank transfer and to an address (contract §2): where
 * the money goes, and the advances that stand for the bank, the chain and the payer.
 */

import assert from "node:assert/strict";
import { EVM_NETWORKS, isMainChain } from "../../shared/connectors/evm/evm_networks.ts";
import { STABLECOINS } from "../../shared/core/currency.ts";
import { ApiError } from "../../shared/core/errors.ts";
import { isValidAddress } from "../../shared/core/wallet_address.ts";
import { CreatePaymentBody } from "../../shared/schema/payment_body.ts";
import { type Payment } from "../../shared/schema/payment.ts";
import { type PaymentStatus } from "../../shared/schema/statuses.ts";
import { decideAdvance } from "../../shared/sandbox/advance.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import { book } from "../support/domain/applied_event.ts";
import { decided, NOW_MS, requestContext, URLS } from "../support/domain/decided_change.ts";

const context = requestContext();
const HOUR_MS = 3_600_000;

function created(method_kind: string, members: Record<string, unknown> = {}): Payment {
  const currency = method_kind === "stablecoin" ? "USDC" : "EUR";
  const body = CreatePaymentBody.parse({ amount: 1000, currency, method_kind, ...members });
  const change = decided(paymentOf(body, true, context));
  return JSON.parse(change.payment!.body);
}

/** The end of some advances, and the sums of the accounts beside `processor`. */
function advanced(payment: Payment, moves: string): { end: string; ledger: string[] } {
  const sums: Record<string, number> = {};
  let end = "";
  for (const move of moves.split(", ")) {
    const [to, amount] = move.split(" ");
    try {
      const change = decideAdvance(payment, to as PaymentStatus, URLS, context, {
        amount_received: amount === undefined ? undefined : Number(amount),
      });
      if (change?.payment) payment = JSON.parse(change.payment.body);
      book(sums, change?.ledger ?? []);
      const { status, amount_received, failure_code } = payment;
      end = `${status} ${amount_received} ${failure_code ?? ""}`.trim();
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      const { param, allowed } = error.details;
      end = `${error.code}: ${param ?? (allowed as string[]).join(" ")}`;
    }
  }
  const left = Object.entries(sums).filter(([account, sum]) =>
    account !== "processor" && sum !== 0
  );
  return { end, ledger: left.map((one) => one.join(" ")).sort() };
}

const TAKEN = "available 1000";
const OPEN = "invalid_state: completed failed cancelled";
/** [the advances of a payment of 1000, each with the amount that the payer sends; end; ledger] */
const BY_BANK: [moves: string, end: string, ledger: string[]][] = [
  ["completed", "completed 1000", [TAKEN]],
  ["completed 1000", "completed 1000", [TAKEN]],
  ["completed 1001", "completed 1001", [TAKEN, "unapplied 1"]],
  // The money decides, as at a bank.
  ["completed 999", "pending 999", ["unapplied 999"]],
  ["pending 1000", "completed 1000", [TAKEN]],
  ["pending 999", "pending 999", ["unapplied 999"]],
  ["pending", "pending 0", []],
  ["failed", "failed 0 expired", []],
  ["failed 999", "failed 999 underpaid", ["unapplied 999"]],
  ["failed 1000", "invalid_parameter: amount_received", []],
  ["failed, failed 8", "failed 8 expired", ["unapplied 8"]],
  ["cancelled", "cancelled 0", []],
  ["cancelled, cancelled 8", "cancelled 8", ["unapplied 8"]],
  ["cancelled, completed 8", "invalid_state: ", []],
  ["completed, failed 8", "invalid_parameter: amount_received", [TAKEN]],
  ["processing 1", OPEN, []],
  ["declined", OPEN, []],
  ["pending 1, processing", OPEN, ["unapplied 1"]],
];
/** The same of a payment to an address. */
const BY_CHAIN: typeof BY_BANK = [
  ["processing", "processing 1000", []],
  ["processing 400, processing 600, completed", "completed 1000", [TAKEN]],
  ["processing 400, completed", "completed 1000", [TAKEN]],
  ["completed", "completed 1000", [TAKEN]],
  ["completed 1007", "completed 1007", [TAKEN, "unapplied 7"]],
  ["completed 999", "invalid_parameter: amount_received", []],
  ["processing 1000, failed", "invalid_state: pending completed", []],
  ["processing 1, declined", "invalid_state: pending completed failed", []],
  ["processing 9, pending", "pending 0", []],
  ["processing 9, pending 1", "invalid_parameter: amount_received", []],
  ["pending 1", "invalid_parameter: amount_received", []],
  ["processing 9, failed", "failed 9 underpaid", ["unapplied 9"]],
  ["failed 9", "failed 9 underpaid", ["unapplied 9"]],
  ["failed 1000", "invalid_parameter: amount_received", []],
  ["failed", "failed 0 expired", []],
  ["failed, failed 8", "failed 0 expired", ["unapplied 8"]],
  ["completed, completed 6", "completed 1000", [TAKEN, "unapplied 6"]],
  ["cancelled", "cancelled 0", []],
  ["declined", "invalid_state: processing completed failed cancelled", []],
];
for (
  const [kind, cases] of [["sepa", BY_BANK], ["swift", BY_BANK], ["stablecoin", BY_CHAIN]] as const
) {
  for (const [moves, end, ledger] of cases) {
    Deno.test(`advances of a payment by ${kind}: ${moves} → ${end}`, () => {
      assert.deepEqual(advanced(created(kind), moves), { end, ledger });
    });
  }
}

Deno.test("a payment by bank transfer has a code for apps up to the limit of such codes", () => {
  const codeOf = (members: Record<string, unknown>) => {
    const { next_action } = created("swift", members);
    assert.ok(next_action?.type === "bank_transfer");
    return next_action.epc_qr;
  };
  assert.notEqual(codeOf({ amount: 99_999_999_999 }), null);
  assert.equal(codeOf({ amount: 100_000_000_000 }), null);
  assert.equal(codeOf({ currency: "USD" }), null);
});

for (const currency of STABLECOINS) {
  Deno.test(`a payment by ${currency} has an address for an hour, and takes no real money`, () => {
    const { status, amount_received, next_action } = created("stablecoin", { currency });
    assert.deepEqual([status, amount_received], ["pending", 0]);
    assert.ok(next_action?.type === "send_stablecoin");
    const { network, asset, contract, address, expires_at, uri } = next_action;
    assert.deepEqual([network, asset], ["ethereum", currency]);
    assert.ok(isValidAddress("ethereum", address) && isValidAddress("ethereum", contract));
    assert.equal(Date.parse(expires_at), NOW_MS + HOUR_MS);
    const [, token, chain_id, rest] = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\/(.*)$/.exec(uri)!;
    assert.deepEqual([token, rest], [contract, `transfer?address=${address}&uint256=1000`]);
    assert.ok(!isMainChain(Number(chain_id)));
    assert.ok(!JSON.stringify(EVM_NETWORKS).includes(contract));
  });
}
