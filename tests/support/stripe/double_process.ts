/**
 * The process of the double of Stripe: localstripe decides about payments, and this process adds
 * idempotency keys, durable books, events, signed notifications, limits of refunds, fees, disputes,
 * payouts and connected accounts. It shares no code with the service, and leaves the names of
 * parameters to stripe-mock (stripe_documents_test.ts). A second port plants faults and shows the
 * books.
 *
 * Arguments: the URL of localstripe, the journal's path and the two ports. It prints a line when
 * both ports listen.
 */

import { createServer, type ServerResponse } from "node:http";
import { Api, type HttpCall } from "./api.ts";
import { renew } from "./cards.ts";
import { Engine, EngineAway } from "./engine.ts";
import { Faults, SERVER_ERROR } from "./faults.ts";
import { Journal, KINDS } from "./journal.ts";
import { createPayout, moveBalance, settleRefund } from "./money.ts";
import { Notifier } from "./notifications.ts";
import { cancel } from "./payments.ts";
import { done, type Outcome, unexpectedState } from "./work.ts";

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

/** Responds to a call of the admin port. The members of the body depend on the action. */
async function administer({ url, text }: HttpCall, api: Api): Promise<Outcome> {
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
      return await api.change(given.owner, (work) => createPayout(work, given.currency));
    case "expire":
      return await api.change(given.payment_intent, (work) => {
        return cancel(work, given.payment_intent, { cancellation_reason: "automatic" });
      });
    case "renew":
      return await api.change(given.payment_method, (work) => {
        return renew(work, given.payment_method, given.exp_year);
      });
  }
  return { status: 404, body: {} };
}

const [engine_url = "", journal_path = "", port, admin_port] = Deno.args;
const journal = new Journal(journal_path);
const api = new Api(journal, new Engine(engine_url), new Faults(), new Notifier(journal));
api.base_url = `http://127.0.0.1:${port}`;
await listen(Number(port), (call, response) => api.serve(call, response));
await listen(Number(admin_port), async (call, response) => {
  const { status, body } = await administer(call, api);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
console.log("ready");
