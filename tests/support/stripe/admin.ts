/** The admin port: it plants faults, plays payers and banks, and shows the books. */

import type { Api, HttpCall } from "./api.ts";
import { createPayout, moveBalance, settlePayout, settleRefund } from "./money.ts";
import { cancel, confirmAgain } from "./payments.ts";
import { done, type Outcome, unexpectedState } from "./work.ts";

const KINDS = [
  "payment_intent",
  "charge",
  "refund",
  "dispute",
  "payout",
  "balance_transaction",
  "event",
];

/** Responds to a call of the admin port. The members of the body depend on the action. */
export async function administer({ url, text }: HttpCall, api: Api): Promise<Outcome> {
  const given = text ? JSON.parse(text) : {};
  const ok = { status: 200, body: {} };
  switch (url.pathname.slice(1)) {
    case "books": {
      const owner = url.searchParams.get("owner");
      const all = KINDS.map((kind) => [kind, api.journal.list(owner, kind)]);
      return { status: 200, body: Object.fromEntries(all) };
    }
    case "faults":
      return api.faults.plant(given), ok;
    case "waiting_faults":
      return { status: 200, body: api.faults.waiting() };
    case "clear_faults":
      return api.faults.clear(), ok;
    case "notifications":
      return api.notifier.configure(given), ok;
    case "disputes":
      return await api.change(given.payment_intent, (work) => {
        const intent = work.find("payment_intent", given.payment_intent);
        const charge = work.find("charge", intent?.latest_charge);
        if (!charge?.amount_captured) return unexpectedState(intent);
        return done(work.dispute(charge, given.amount, given.reason));
      });
    case "close_dispute":
      return await api.change(given.dispute, (work) => {
        return work.closeDispute(given.dispute, given.status);
      });
    case "settle_refund":
      return await api.change(given.refund, (work) => {
        return settleRefund(work, given.refund, given.status);
      });
    case "movements":
      return await api.change(given.owner, (work) => moveBalance(work, given));
    case "payouts":
      return await api.change(given.owner, (work) => {
        return createPayout(work, given.currency, given.is_paid);
      });
    case "settle_payout":
      return await api.change(given.payout, (work) => {
        return settlePayout(work, given.payout, given.status);
      });
    case "expire":
      return await api.change(given.payment_intent, (work) => {
        return cancel(work, given.payment_intent, { cancellation_reason: "automatic" });
      });
    case "confirm_again":
      return await api.change(given.payment_intent, (work) => {
        return confirmAgain(work, given.payment_intent, given.payment_method);
      });
  }
  return { status: 404, body: {} };
}
