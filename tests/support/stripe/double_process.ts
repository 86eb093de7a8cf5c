/**
 * The process of the double of Stripe: localstripe decides about payments, and this process adds
 * idempotency keys, durable books, events, signed notifications, limits of refunds, fees, disputes,
 * payouts and connected accounts. It shares no code with the service, and leaves the names of
 * parameters to stripe-mock (stripe_documents_test.ts). A second port plants faults and shows the
 * books.
 */

import { createServer, type ServerResponse } from "node:http";
import { onLines, settingsOf, tell } from "../common/process.ts";
import { Api, type HttpCall } from "./api.ts";
import { renew } from "./cards.ts";
import type { StripeActions } from "./double.ts";
import { Engine, EngineAway } from "./engine.ts";
import { Faults, SERVER_ERROR } from "./faults.ts";
import { Journal, KINDS } from "./journal.ts";
import { createPayout, moveBalance, settleRefund } from "./money.ts";
import { Notifier } from "./notifications.ts";
import { cancel } from "./payments.ts";
import { done, type Outcome, unexpectedState, type Work } from "./work.ts";

/** Serves one port. With node:http a server can close a connection without a response. */
function listen(
  port: number,
  handle: (call: HttpCall, response: ServerResponse) => Promise<void>,
): Promise<void> {
  const server = createServer(async (request, response) => {
    try {
      const parts: Uint8Array<ArrayBuffer>[] = [];
      for await (const part of request) parts.push(part);
      const text = await new Blob(parts).text();
      const url = new URL(request.url!, "http://127.0.0.1");
      await handle({ method: request.method!, url, headers: request.headers, text }, response);
    } catch (error) {
      // While localstripe is not running, the double is a server in trouble. A killed client is
      // gone.
      const is_gone = (error as { code?: string }).code === "ECONNRESET";
      if (!(error instanceof EngineAway) && !is_gone) {
        console.error(`500 for ${request.method} ${request.url}:`, error);
      }
      if (!response.headersSent) response.writeHead(500, { "content-type": "application/json" });
      response.end(SERVER_ERROR);
    }
  });
  return new Promise((resolve) => void server.listen(port, "127.0.0.1", resolve));
}

type Act<Given> = (work: Work, given: Given) => Outcome | Promise<Outcome>;

/** Each action, with the member that names the object or the owner that it changes. */
const ACTIONS: {
  [A in keyof StripeActions]: [target: keyof StripeActions[A], Act<StripeActions[A]>];
} = {
  disputes: ["payment_intent", (work, { payment_intent, amount, reason }) => {
    const intent = work.find("payment_intent", payment_intent);
    const charge = work.find("charge", intent?.latest_charge);
    if (!charge?.amount_captured) return unexpectedState(intent);
    return done(work.dispute(charge, amount, reason));
  }],
  close_dispute: ["dispute", (work, { dispute, status }) => work.closeDispute(dispute, status)],
  settle_refund: ["refund", (work, { refund, status }) => settleRefund(work, refund, status)],
  movements: ["owner", moveBalance],
  payouts: ["owner", createPayout],
  expire: [
    "payment_intent",
    (work, { payment_intent: id }) => cancel(work, id, { cancellation_reason: "automatic" }),
  ],
  renew: ["payment_method", renew],
};

/** Responds to a call of the admin port. */
async function administer({ url, text }: HttpCall, api: Api): Promise<Outcome> {
  const given = text ? JSON.parse(text) : {};
  const ok = { status: 200, body: {} };
  const action = url.pathname.slice(1);
  switch (action) {
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
  }
  const [target, act] = ACTIONS[action as keyof StripeActions] as [string, Act<unknown>];
  return await api.change(given[target], (work) => act(work, given));
}

const { engine_url, journal: path, port, admin_port } = settingsOf<
  { engine_url: string; journal: string; port: number; admin_port: number }
>();
const journal = new Journal(path);
const api = new Api(journal, new Engine(engine_url), new Faults(), new Notifier(journal));
api.base_url = `http://127.0.0.1:${port}`;
await listen(port, (call, response) => api.serve(call, response));
await listen(admin_port, async (call, response) => {
  const { status, body } = await administer(call, api);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
tell({});
onLines(() => {});
