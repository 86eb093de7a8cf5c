/**
 * A server in place of Stripe: it creates a payment after a delay, and returns an empty page for
 * every list. It keeps no state: its own time is subtracted from the time of a live create. `PUT
 * /delay_ms` sets the delay. `GET /under_way` returns how many creates are under way.
 */

import { onLines, tell } from "../../tests/chaos/process.ts";

/** Minor units. Stripe tells its fee with the payment, and the product books it. */
const FEE = 45;
const EMPTY_PAGE = { object: "list", data: [], has_more: false };

if (import.meta.main) {
  let [delay_ms, under_way, count] = [0, 0, 0];
  const create = async (form: URLSearchParams) => {
    under_way++;
    if (delay_ms > 0) await new Promise((resolve) => setTimeout(resolve, delay_ms));
    under_way--;
    return Response.json(paymentIntent(form, `bench${++count}`));
  };
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => tell({ port }),
  }, async (request) => {
    const { pathname } = new URL(request.url);
    const text = await request.text();
    if (request.method === "POST") return await create(new URLSearchParams(text));
    if (request.method === "PUT") {
      delay_ms = Number(text);
      return new Response();
    }
    return Response.json(pathname === "/under_way" ? under_way : EMPTY_PAGE);
  });
  // Ends this process when the benchmark ends.
  onLines(() => {});
}

/** The payment that a form creates, as Stripe shows it after a success. */
function paymentIntent(form: URLSearchParams, name: string) {
  const amount = Number(form.get("amount"));
  const currency = form.get("currency");
  const created = Math.floor(Date.now() / 1000);
  const metadata: Record<string, string> = {};
  for (const [field, value] of form) {
    const key = /^metadata\[(\w+)\]$/.exec(field)?.[1];
    if (key !== undefined) metadata[key] = value;
  }
  const common = { created, currency, livemode: true };
  return {
    id: `pi_${name}`,
    object: "payment_intent",
    ...common,
    amount,
    amount_capturable: 0,
    amount_received: amount,
    capture_method: form.get("capture_method"),
    latest_charge: {
      id: `ch_${name}`,
      object: "charge",
      ...common,
      metadata,
      payment_intent: `pi_${name}`,
      payment_method_details: {
        card: { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 },
      },
      balance_transaction: {
        id: `txn_${name}`,
        object: "balance_transaction",
        type: "charge",
        ...common,
        amount,
        fee: FEE,
        net: amount - FEE,
        source: `ch_${name}`,
      },
    },
    metadata,
    status: "succeeded",
  };
}
