/**
 * The client sends the requests of the catalogue, which has every operation of both functions, over
 * HTTP to the running service. The schemas check that each result has its type. Then: errors, an
 * inbox, a transcript, a rate limit and the clock, as a program uses them.
 */

import assert from "node:assert/strict";
import {
  ApiError,
  type Event,
  type ListParams,
  type PaymentsClient,
  verifyWebhook,
} from "../../packages/client/mod.ts";
import { ADDRESSES } from "../../tools/generate/openapi/operations.ts";
import { CATALOGUE } from "../support/catalogue/requests.ts";
import { fill, firstValues, saveId } from "../support/catalogue/run_catalogue.ts";
import { withServedService } from "../support/service/served_service.ts";
import { addEndpoint, openRecorder } from "../support/webhook/recording_receiver.ts";

const EUR = { currency: "EUR" } as const;

/** The arguments of a call. */
interface Given {
  id: string;
  // deno-lint-ignore no-explicit-any
  input: any;
  query: ListParams;
  options: { idempotencyKey?: string };
}

/** The call of each operation of the catalogue. */
const CALLS: Readonly<
  Record<string, (client: PaymentsClient, given: Given) => PromiseLike<unknown>>
> = {
  createPayment: (c, { input, options }) => c.payments.create(input, options),
  listPaymentTotals: (c) => c.payments.totals(),
  getPayment: (c, { id }) => c.payments.retrieve(id),
  listPayments: (c, { query }) => c.payments.list(query),
  capturePayment: (c, { id, input }) => c.payments.capture(id, input),
  cancelPayment: (c, { id }) => c.payments.cancel(id),
  refundPayment: (c, { id, input }) => c.payments.refund(id, input),
  deletePaymentBankDetails: (c, { id }) => c.payments.deleteBankDetails(id),
  listPaymentRefunds: (c, { id, query }) => c.payments.listRefunds(id, query),
  getRefund: (c, { id }) => c.refunds.retrieve(id),
  listRefunds: (c, { query }) => c.refunds.list(query),
  listDisputes: (c, { query }) => c.disputes.list(query),
  getDispute: (c, { id }) => c.disputes.retrieve(id),
  submitEvidence: (c, { id, input }) => c.disputes.submitEvidence(id, input),
  acceptDispute: (c, { id }) => c.disputes.accept(id),
  createTransfer: (c, { input }) => c.transfers.create(input),
  getTransfer: (c, { id }) => c.transfers.retrieve(id),
  listTransfers: (c, { query }) => c.transfers.list(query),
  cancelTransfer: (c, { id }) => c.transfers.cancel(id),
  deleteTransferBankDetails: (c, { id }) => c.transfers.deleteBankDetails(id),
  createCheckout: (c, { input }) => c.checkouts.create(input),
  listCheckouts: (c, { query }) => c.checkouts.list(query),
  getCheckout: (c, { id }) => c.checkouts.retrieve(id),
  cancelCheckout: (c, { id }) => c.checkouts.cancel(id),
  payCheckout: (c, { id, input }) => c.sandbox.payCheckout(id, input),
  listInstruments: (c, { query }) => c.instruments.list(query),
  getInstrument: (c, { id }) => c.instruments.retrieve(id),
  endInstrument: (c, { id }) => c.instruments.end(id),
  eraseCustomer: (c, { id }) => c.customers.erase(id),
  eraseCustomerByEmail: (c) => c.customers.eraseByEmail("nobody@example.com"),
  listLedgerEntries: (c, { query }) => c.ledgerEntries.list(query),
  getBalance: (c) => c.balance.retrieve(),
  createWebhookEndpoint: (c, { input }) => c.webhookEndpoints.create(input),
  getWebhookEndpoint: (c, { id }) => c.webhookEndpoints.retrieve(id),
  listWebhookEndpoints: (c, { query }) => c.webhookEndpoints.list(query),
  updateWebhookEndpoint: (c, { id, input }) => c.webhookEndpoints.update(id, input),
  deleteWebhookEndpoint: (c, { id }) => c.webhookEndpoints.delete(id),
  rotateWebhookSecret: (c, { id, input }) => c.webhookEndpoints.rotateSecret(id, input),
  readInbox: (c, { id, query }) => c.webhookEndpoints.inbox(id, query),
  recoverDeliveries: (c, { id, input }) => c.webhookEndpoints.recover(id, input),
  listWebhookDeliveries: (c, { query }) => c.webhookDeliveries.list(query),
  getWebhookDelivery: (c, { id }) => c.webhookDeliveries.retrieve(id),
  redeliverWebhook: (c, { id }) => c.webhookDeliveries.redeliver(id),
  listEvents: (c, { query }) => c.events.list(query),
  getEvent: (c, { id }) => c.events.retrieve(id),
  createApiKey: (c, { input }) => c.apiKeys.create(input),
  listApiKeys: (c, { query }) => c.apiKeys.list(query),
  getApiKey: (c, { id }) => c.apiKeys.retrieve(id),
  getOwnApiKey: (c) => c.apiKeys.own(),
  rotateApiKey: (c, { id, input }) => c.apiKeys.rotate(id, input),
  revokeApiKey: (c, { id }) => c.apiKeys.revoke(id),
  getIdempotencyKey: (c, { id }) => c.idempotencyKeys.retrieve(id),
  createSandboxPayment: (c, { input }) => c.sandbox.createPayment(input),
  advancePayment: (c, { id, input }) => c.sandbox.advance(id, input),
  authenticatePayment: (c, { id, input }) => c.sandbox.authenticate(id, input),
  advanceRefund: (c, { id, input }) => c.sandbox.advanceRefund(id, input),
  advanceTransfer: (c, { id, input }) => c.sandbox.advanceTransfer(id, input),
  triggerWebhook: (c, { input }) => c.sandbox.trigger(input),
  listRequests: (c, { query }) => c.sandbox.listRequests(query),
  getRequest: (c, { id }) => c.sandbox.retrieveRequest(id),
  createFault: (c, { input }) => c.sandbox.createFault(input),
  listFaults: (c, { query }) => c.sandbox.listFaults(query),
  getFault: (c, { id }) => c.sandbox.retrieveFault(id),
  deleteFault: (c, { id }) => c.sandbox.deleteFault(id),
  resetSandbox: (c) => c.sandbox.reset(),
  readChanges: (c) => c.sandbox.changes(),
  getClock: (c) => c.sandbox.clock(),
  listDue: (c) => c.sandbox.due(),
  setClock: (c, { input }) => c.sandbox.setClock(input),
  createSandbox: (c, { input }) => c.sandboxes.create(input),
  listSandboxes: (c, { query }) => c.sandboxes.list(query),
  getSandbox: (c, { id }) => c.sandboxes.retrieve(id),
  createSandboxKey: (c, { id, input }) => c.sandboxes.createKey(id, input),
  deleteSandbox: (c, { id }) => c.sandboxes.delete(id),
};

Deno.test("the client has every operation", () => {
  // The client uses the main address of an alias, and reads a transcript as text.
  const operations = ADDRESSES
    .filter(({ alias_of, id }) => alias_of === null && id !== "readTranscript")
    .map(({ id }) => id);
  assert.deepEqual(Object.keys(CALLS).sort(), operations.sort());
});

Deno.test("the client sends every request of the catalogue and returns its response", (t) =>
  withServedService(async ({ client, exchanges, base_url }) => {
    const hooks = openRecorder();
    const saved = firstValues(hooks.url("/"));
    try {
      for (const request of CATALOGUE.filter(({ operation }) => operation in CALLS)) {
        await t.step(`${request.operation} ${request.name}`, async () => {
          const { method, path, id, body } = fill(request, saved);
          exchanges.length = 0;
          const result = await CALLS[request.operation]!(client, {
            id: id!,
            input: body,
            query: Object.fromEntries(new URLSearchParams(request.query)),
            options: request.key === undefined ? {} : { idempotencyKey: request.key },
          }).then((value) => value, (error) => error);
          const [{ request: sent, response }] = exchanges as [typeof exchanges[number]];
          assert.deepEqual(
            [sent.method, sent.url, JSON.parse(sent.body ?? "{}")],
            [method, base_url + path, body ?? {}],
          );
          const received = JSON.parse(response!.body);
          if (response!.status === 402) {
            assert.ok(result instanceof ApiError && result.payment !== undefined);
            assert.deepEqual(result.body, received.error);
            assert.deepEqual(await client.payments.retrieve(result.payment.id), result.payment);
            return;
          }
          if (result instanceof Error) throw result;
          assert.deepEqual(result, received);
          const { operation } = ADDRESSES.find(({ id }) => id === request.operation)!;
          assert.deepEqual(operation.response.parse(result), result);
          saveId(request, result, saved);
        });
      }
    } finally {
      await hooks.close();
    }
  }, { request_log: true }));

Deno.test("the client as a program uses it", (t) =>
  withServedService(async ({ client, clientWith }) => {
    const errorOf = async (call: PromiseLike<unknown>): Promise<ApiError> => {
      const error = await call.then(() => assert.fail("it was accepted"), (error) => error);
      assert.ok(error instanceof ApiError, error);
      return error;
    };

    await t.step("errors tell the code, the field and the moves that are allowed", async () => {
      const { id } = await client.sandbox.createPayment({ amount: 1, ...EUR, outcome: "refunded" });
      const refused = await errorOf(client.payments.cancel(id));
      assert.ok(refused.is("invalid_state"));
      assert.deepEqual([refused.body.current_status, refused.body.allowed], ["refunded", []]);
      const bad = await errorOf(client.payments.create({ amount: 0, ...EUR }));
      assert.ok(bad.is("invalid_parameter"));
      assert.equal(bad.param, "amount");
      assert.match(bad.requestId, /^req_/);
    });

    await t.step("an inbox", async () => {
      const { id, secret } = await client.webhookEndpoints.create({ delivery: "inbox" });
      const paid = await client.payments.create({ amount: 8, ...EUR, outcome: "success" });
      const types: string[] = [];
      for await (const { body, headers } of client.webhookEndpoints.inbox(id, { limit: 1 })) {
        const event = await verifyWebhook<Event>(body, headers["Payment-Signature"], secret);
        types.push(event.type);
        if (event.type === "payment.completed") {
          assert.deepEqual(event.data.object, paid);
          break;
        }
      }
      assert.deepEqual(types, ["payment.created", "payment.completed"]);
      // The end of the loop has not acknowledged the last delivery.
      const page = await client.webhookEndpoints.inbox(id);
      assert.equal(page.data.length, 1);
      await client.webhookEndpoints.inbox(id, { after: page.next_cursor });
      const since = new Date(Date.now() - 60_000).toISOString();
      const recovery = await client.webhookEndpoints.recover(id, { since, status: "all" });
      assert.equal(recovery.count, 2);
      const abort = new AbortController();
      setTimeout(() => abort.abort("enough"), 200);
      const { next_cursor: after } = await client.webhookEndpoints.inbox(id);
      const left: string[] = [];
      const reads = async () => {
        // Another client, because an aborted exchange has no response.
        const waiting = clientWith({}).webhookEndpoints.inbox(id, { after }, {
          signal: abort.signal,
        });
        for await (const delivery of waiting) left.push(delivery.id);
      };
      assert.equal(await reads().catch((reason) => reason), "enough");
      assert.deepEqual(left, []);
    });

    await t.step("a seeded sandbox has a transcript", async () => {
      const made = await client.sandboxes.create({ seed: "a run", expires_in: 600 });
      const inside = clientWith({ apiKey: made.test_key });
      const { id } = await inside.payments.create({ amount: 1, ...EUR });
      const lines = (await inside.sandbox.transcript()).trimEnd().split("\n");
      assert.deepEqual(lines.map((line) => JSON.parse(line).answer.body.id), [id]);
      await client.sandboxes.delete(made.id);
      assert.ok((await errorOf(inside.payments.list())).is("unauthorized"));
    });
  }));

Deno.test("the client waits at a rate limit as told, and succeeds", () =>
  withServedService(async ({ service, clientWith }) => {
    const waits: number[] = [];
    const client = clientWith({
      maxRetries: 20,
      runtime: {
        // The service's clock advances while the client waits.
        sleep(delay_ms) {
          waits.push(delay_ms);
          now += delay_ms;
          return service.setClock(now);
        },
      },
    });
    let now = Date.now();
    await service.setClock(now);
    for (let i = 0; i < 10; i++) await client.payments.create({ amount: 1, ...EUR });
    const [row] = await service.sql`select count(*)::int as payments from pay.payments`;
    assert.equal(row!.payments, 10);
    assert.ok(waits.length > 0);
    for (const wait of waits) assert.ok(wait >= 1_000, `${waits}`);
  }, { rate_limit: 1 }));

Deno.test("setClock is complete when others have moved the clock past its target", () =>
  withServedService(async ({ service, client, clientWith }) => {
    const slow = Promise.withResolvers<number>();
    const receiver = openRecorder(() => slow.promise);
    try {
      await addEndpoint(service, receiver.url("/hook"), { events: ["payment.created"] });
      const { now } = await client.sandbox.setClock({ mode: "frozen" });
      await service.pay();
      let requests = 0;
      const late = clientWith({
        async fetch(url, init) {
          // After the first response, which is not complete, others end the advance and go on.
          if (++requests === 2) {
            slow.resolve(200);
            await client.sandbox.setClock({ advance: 60 });
          }
          return await fetch(url, init);
        },
      });
      const clock = await late.sandbox.setClock({ advance: 10 });
      assert.deepEqual([clock.has_more, clock.target], [false, null]);
      assert.equal(Date.parse(clock.now), Date.parse(now) + 70_000);
      assert.equal(requests, 3);
      await assert.rejects(late.sandbox.setClock({ to: now }), { param: "to" });
    } finally {
      await receiver.close();
    }
  }));
