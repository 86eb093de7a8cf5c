/** A sandbox with a resource of each kind, and with payments that wait for each kind of action. */

import type { ConsoleCase } from "./console_case.ts";

const EUR = { amount: 5_000, currency: "EUR" };
const VISA = { card: { token: "pm_card_visa" } };
const SANDBOX = "/api-v1-sandbox";
/** The bank finds that the account belongs to another name. */
const NO_MATCH = { iban: "DE89 3704 0044 0532 0130 00", holder_name: "No match Ltd" };

/** Makes them. Returns an id of each kind by prefix, the payments that wait, and an endpoint. */
export async function makeOneOfEach({ make, send }: ConsoleCase) {
  const pay = (body: object) => make("payments", { ...EUR, ...body });
  const first = async (path: string) => (await send("GET", path)).data[0];
  const unreachable = await make("webhook_endpoints", { url: "http://127.0.0.1:47999/hook" });
  const whe_ = await make("webhook_endpoints", { delivery: "inbox" });
  const pay_ = await pay({ outcome: "success" });
  const entry = await first(`ledger_entries?payment_id=${pay_}`);
  const disputed = await pay({ outcome: "chargeback" });
  const refunding = await pay({ ...VISA, settlement: "manual" });
  await make(`payments/${refunding}/refund`, { amount: 1_000 });
  const late = await pay({ method_kind: "sepa" });
  await make(`payments/${late}/cancel`);
  const waiting = [
    await pay({ card: { token: "pm_card_authenticationRequired" } }),
    await pay({ ...VISA, capture: "manual" }),
    ...[disputed, refunding, late],
    await pay({ currency: "USDC", amount: 5_000_000, capability: "stablecoin_payment" }),
  ];
  const { instrument_id: ins_ } = await send("POST", "payments", {
    ...{ ...EUR, ...VISA, save: "off_session" },
    customer: { id: "user-7", email: "ada@example.com" },
  });
  await pay({ instrument: ins_, off_session: true });
  const ids: Record<string, string> = {
    ...{ pay_, ins_, whe_, le_: entry.id, txn_: entry.transaction_id, pm_: "pm_card_visa" },
    chk_: await make("checkouts", { amount: 700, currency: "EUR" }),
    re_: await make(`payments/${pay_}/refund`, { amount: 100 }),
    dp_: (await first(`disputes?payment_id=${disputed}`)).id,
    tr_: await make("transfers", { ...EUR, amount: 100, destination: NO_MATCH }),
    evt_: (await first("events")).id,
    whd_: (await first(`webhook_deliveries?endpoint_id=${whe_}`)).id,
    key_: (await first("api_keys")).id,
    req_: (await first(`${SANDBOX}/requests`)).id,
    // Of an event that never happens here, so that it stays.
    flt_: await make(`${SANDBOX}/faults`, {
      ...{ on: "delivery", fault: "duplicate", where: { event_type: "transfer.cancelled" } },
    }),
    env_: await make(`${SANDBOX}/sandboxes`, { name: "PR 34" }),
    chg_: (await send("GET", `${SANDBOX}/changes`)).next_cursor,
    inb_: (await send("GET", `webhook_endpoints/${whe_}/inbox`)).next_cursor,
  };
  return { ids, waiting, unreachable };
}
