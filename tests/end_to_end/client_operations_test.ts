/**
 * The client calls every operation of both functions, over HTTP against the running service. The
 * schema checks that each response has its type. The test fails if an operation of the tables is
 * missing.
 */

import assert from "node:assert/strict";
import { ApiError, type Event, verifyWebhook } from "../../packages/client/mod.ts";
import { PAYMENTS_FUNCTION_ROUTES } from "../../shared/functions/payments_function.ts";
import { SANDBOX_ROUTES } from "../../shared/sandbox/sandbox_routes.ts";
import { ApiKey } from "../../shared/schema/api_key.ts";
import { Dispute } from "../../shared/schema/dispute.ts";
import { Clock, ClockAdvance } from "../../shared/schema/clock.ts";
import { Fault } from "../../shared/schema/fault.ts";
import { Event as EventSchema } from "../../shared/schema/event.ts";
import { Inbox, Recovery } from "../../shared/schema/inbox.ts";
import { Balance, LedgerEntry } from "../../shared/schema/ledger.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { DisposableSandbox } from "../../shared/schema/sandbox.ts";
import { IdempotencyKey, LoggedRequest } from "../../shared/schema/request.ts";
import { Transfer } from "../../shared/schema/transfer.ts";
import { WebhookDelivery, WebhookEndpoint } from "../../shared/schema/webhook.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { settle } from "../support/webhook/recording_receiver.ts";
import { APPROVED_CARD } from "../support/service/service.ts";
import { withServedService } from "../support/service/served_service.ts";

const EUR = { currency: "EUR" } as const;
const UNKNOWN_CARD = { ...APPROVED_CARD, number: "4000 0000 0000 9995" };

/** Asserts that a value has every member of its schema, with its type, and no other member. */
function assertShape<T>(schema: { parse(value: unknown): unknown }, value: T): T {
  assert.deepEqual(schema.parse(value), value);
  return value;
}

Deno.test("the client calls every operation", (t) =>
  withServedService(async ({ client, exchanges, service, base_url, clientWith }) => {
    const hooks = openRecorder();
    try {
      await t.step("disputes: list, retrieve, send evidence, accept", async () => {
        const made = await client.payments.create({
          amount: 700,
          currency: "EUR",
          card: { token: "pm_card_createDispute" },
        });
        const [dispute] = await Array.fromAsync(client.disputes.list({ payment_id: made.id }));
        assert.deepEqual(
          assertShape(Dispute, await client.disputes.retrieve(dispute!.id)),
          dispute,
        );
        const sent = await client.disputes.submitEvidence(dispute!.id, { text: "A receipt" });
        assert.equal(assertShape(Dispute, sent).status, "under_review");
        assert.equal((await client.disputes.accept(dispute!.id)).status, "lost");
      });
      await t.step("payments", async () => {
        const input = { amount: 1000, ...EUR, card: APPROVED_CARD, reference: "order-1" };
        const paid = assertShape(Payment, await client.payments.create(input));
        assert.equal(paid.status, "completed");
        assert.deepEqual(assertShape(Payment, await client.payments.retrieve(paid.id)), paid);
        const page = await client.payments.list({ reference: "order-1", status: "completed" });
        assert.deepEqual(page.data, [paid]);
        const refund = assertShape(
          Refund,
          await client.payments.refund(paid.id, { amount: 400, reason: "duplicate" }),
        );
        assert.equal(refund.payment_status, "partially_refunded");
        const rest = await client.payments.refund(paid.id);
        assert.equal(rest.amount, 600);
        assert.deepEqual((await client.payments.listRefunds(paid.id)).data, [rest, refund]);
        assert.deepEqual(assertShape(Refund, await client.refunds.retrieve(refund.id)), refund);
        const refunds = await Array.fromAsync(
          client.refunds.list({ payment_id: paid.id, limit: 1 }),
        );
        assert.deepEqual(refunds, [rest, refund]);
        const held = await client.payments.create({
          amount: 1000,
          ...EUR,
          card: { token: "pm_card_visa" },
          capture: "manual",
        });
        const captured = await client.payments.capture(held.id, { amount: 600 });
        assert.equal(assertShape(Payment, captured).amount_captured, 600);
        const pending = await client.payments.create({ amount_minor: 5, ...EUR });
        assert.equal((await client.payments.cancel(pending.id)).status, "cancelled");
        assert.deepEqual(await client.payments.deleteBankDetails(pending.id), {
          id: pending.id,
          object: "bank_details",
          deleted: true,
        });
      });

      await t.step("a decline is an error with the stored payment", async () => {
        const declined = client.payments.create({ amount: 1000, ...EUR, card: UNKNOWN_CARD });
        const error = await declined.then(() => assert.fail("it was approved"), (error) => error);
        assert.ok(error instanceof ApiError && error.is("insufficient_funds"));
        assertShape(Payment, error.payment);
        assert.deepEqual(await client.payments.retrieve(error.payment.id), error.payment);
        assert.match(error.requestId, /^req_/);
      });

      await t.step("a refused move is an error that names the allowed ones", async () => {
        const { id } = await client.sandbox.createPayment({
          amount: 1,
          ...EUR,
          outcome: "refunded",
        });
        const error = await client.payments.cancel(id).catch((error) => error);
        assert.ok(error instanceof ApiError && error.is("invalid_state"));
        assert.deepEqual([error.body.current_status, error.body.allowed], ["refunded", []]);
        const bad = await client.payments.create({ amount: 0, ...EUR }).catch((error) => error);
        assert.ok(bad instanceof ApiError && bad.is("invalid_parameter"));
        assert.equal(bad.param, "amount");
      });

      await t.step("sandbox", async () => {
        const made = await client.sandbox.createPayment({ amount: 9, ...EUR, outcome: "pending" });
        assertShape(Payment, made);
        const moved = await client.sandbox.advance(made.id, { to: "completed" });
        assert.equal(assertShape(Payment, moved).status, "completed");
        const card = { ...APPROVED_CARD, number: "4000 0025 0000 3155" };
        const asking = await client.payments.create({ amount: 9, ...EUR, card });
        assert.equal(asking.next_action!.type, "authenticate");
        const told = await client.sandbox.authenticate(asking.id);
        assert.equal(assertShape(Payment, told).status, "completed");
        const slow = await client.payments.create({
          amount: 9,
          ...EUR,
          card: APPROVED_CARD,
          settlement: "manual",
        });
        const waiting = await client.payments.refund(slow.id);
        assert.equal(waiting.status, "pending");
        const failed = await client.sandbox.advanceRefund(waiting.id, { to: "failed" });
        assert.equal(assertShape(Refund, failed).status, "failed");
      });

      await t.step("transfers, ledger and balance", async () => {
        await client.payments.create({ amount: 5000, ...EUR, outcome: "success" });
        const input = {
          amount: 100,
          ...EUR,
          destination: { iban: "DE89 3704 0044 0532 0130 00" },
          settlement: "manual",
        } as const;
        const sent = assertShape(Transfer, await client.transfers.create(input));
        assert.equal(sent.status, "pending");
        const done = await client.sandbox.advanceTransfer(sent.id, { to: "completed" });
        assert.equal(assertShape(Transfer, done).status, "completed");
        assert.deepEqual(await client.transfers.retrieve(sent.id), done);
        const taken_back = await client.transfers.create(input);
        assert.equal((await client.transfers.cancel(taken_back.id)).status, "cancelled");
        assert.ok((await client.transfers.deleteBankDetails(taken_back.id)).deleted);
        assert.equal((await client.transfers.list({ status: "completed" })).data.length, 1);
        for await (const entry of client.ledgerEntries.list({ transfer_id: sent.id })) {
          assert.equal(assertShape(LedgerEntry, entry).transfer_id, sent.id);
        }
        const { balances } = assertShape(Balance, await client.balance.retrieve());
        const external = balances.find(({ account }) => account === "external");
        assert.equal(external!.amount_minor, 100);
        const much = client.transfers.create({ ...input, amount: 999_999 });
        const error = await much.catch((error) => error);
        assert.ok(error instanceof ApiError && error.is("balance_insufficient"));
      });

      await t.step("webhooks", async () => {
        const made = await client.webhookEndpoints.create({ url: hooks.url("/"), events: ["*"] });
        assertShape(WebhookEndpoint, made);
        const { secret, ...endpoint } = made;
        assert.deepEqual(await client.webhookEndpoints.retrieve(endpoint.id), endpoint);
        assert.deepEqual((await client.webhookEndpoints.list()).data, [endpoint]);
        const paid = await client.payments.create({ amount: 7, ...EUR, outcome: "success" });
        await settle(service);
        const { bytes, headers } = hooks.arrivals.at(-1)!;
        const header = headers.get("Payment-Signature");
        const arrived = await verifyWebhook<Event>(bytes, header, secret);
        assert.ok(arrived.type === "payment.completed");
        assert.deepEqual(arrived.data.object, paid);
        assert.deepEqual(
          assertShape(EventSchema, await client.events.retrieve(arrived.id)),
          arrived,
        );
        const events = await client.events.list({ type: "payment.completed", payment_id: paid.id });
        assert.deepEqual(events.data, [arrived]);
        const page = await client.webhookDeliveries.list({ event_id: arrived.id });
        const [delivery] = page.data;
        const { exchanges, ...read } = await client.webhookDeliveries.retrieve(delivery!.id);
        assert.deepEqual([read, exchanges!.length], [delivery, 1]);
        assert.equal(assertShape(WebhookDelivery, delivery)!.status, "delivered");
        const again = await client.webhookDeliveries.redeliver(delivery!.id);
        assert.equal(assertShape(WebhookDelivery, again).event_id, arrived.id);
        await settle(service);
        const triggered = await client.sandbox.trigger({
          endpoint_id: endpoint.id,
          event: "ping",
          payment_id: paid.id,
        });
        assert.equal(assertShape(WebhookDelivery, triggered).attempts[0]!.response_status, 200);
        const turned = await client.webhookEndpoints.rotateSecret(endpoint.id, { expires_in: 60 });
        assert.notEqual(turned.secret, secret);
        const off = await client.webhookEndpoints.update(endpoint.id, {
          status: "disabled",
          description: null,
        });
        assert.equal(assertShape(WebhookEndpoint, off).disabled_reason, "manual");
        const gone = await client.webhookEndpoints.delete(endpoint.id);
        assert.deepEqual(gone, { id: endpoint.id, object: "webhook_endpoint", deleted: true });
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
        const page = assertShape(Inbox, await client.webhookEndpoints.inbox(id));
        assert.equal(page.data.length, 1);
        await client.webhookEndpoints.inbox(id, { after: page.next_cursor });
        const since = new Date(Date.now() - 60_000).toISOString();
        const recovery = await client.webhookEndpoints.recover(id, { since, status: "all" });
        assert.equal(assertShape(Recovery, recovery).count, 2);
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

      await t.step("API keys", async () => {
        const scopes = ["payments:read"] as const;
        const made = await client.apiKeys.create({ name: "reader", scopes: [...scopes] });
        const { secret, ...key } = assertShape(ApiKey, made);
        const reader = clientWith({ apiKey: secret });
        await reader.payments.list();
        const error = await reader.payments.create({ amount: 1, ...EUR }).catch((error) => error);
        assert.ok(error instanceof ApiError && error.is("permission_denied"));
        assert.equal(error.body.required_scope, "payments:write");
        assert.equal((await client.apiKeys.retrieve(key.id)).name, "reader");
        assert.ok((await client.apiKeys.list()).data.some(({ id }) => id === key.id));
        const turned = await client.apiKeys.rotate(key.id, { expires_in: 0 });
        assert.notEqual(assertShape(ApiKey, turned).secret, secret);
        assert.ok((await client.apiKeys.revoke(key.id)).revoked_at);
        const refused = await clientWith({ apiKey: turned.secret }).payments.list()
          .catch((error) => error);
        assert.ok(refused instanceof ApiError && refused.is("unauthorized"));
      });

      await t.step("disposable sandboxes", async () => {
        const made = assertShape(
          DisposableSandbox,
          await client.sandboxes.create({ name: "PR 17", expires_in: 600 }),
        );
        const { test_key, ...shown } = made;
        const inside = clientWith({ apiKey: test_key });
        await inside.payments.create({ amount: 1, ...EUR });
        assert.equal((await inside.payments.list()).data.length, 1);
        assert.deepEqual(await client.sandboxes.retrieve(made.id), shown);
        assert.deepEqual((await client.sandboxes.list()).data, [shown]);
        const gone = assertShape(DisposableSandbox, await client.sandboxes.delete(made.id));
        assert.deepEqual(await client.sandboxes.delete(made.id), gone);
        const refused = await inside.payments.list().catch((error) => error);
        assert.ok(refused instanceof ApiError && refused.is("unauthorized"));
      });

      await t.step("requests", async () => {
        const idempotencyKey = "order 1001/é".replaceAll(/[^!-~]/g, "_");
        // The log has the bodies of the first 20 requests of each second.
        await new Promise((resolve) => setTimeout(resolve, 1_000 - Date.now() % 1_000));
        const made = await client.payments.create({ amount: 5, ...EUR }, { idempotencyKey });
        await client.payments.create({ amount: 5, ...EUR }, { idempotencyKey });
        const shown = await client.idempotencyKeys.retrieve(idempotencyKey);
        assertShape(IdempotencyKey, shown);
        assert.deepEqual([shown.status, shown.replays, shown.body], [201, 1, made]);
        const { data } = await client.sandbox.listRequests({ idempotency_key: idempotencyKey });
        assert.ok(Array.isArray(data));
        for (const request of data) assertShape(LoggedRequest, request);
        const logged = assertShape(
          LoggedRequest,
          await client.sandbox.retrieveRequest(data.at(-1)!.id),
        );
        assert.deepEqual(logged.request_body, { amount: 5, ...EUR });
        assert.deepEqual(logged.response_body, made);
      });
      await t.step("seeded sandboxes", async () => {
        const made = assertShape(
          DisposableSandbox,
          await client.sandboxes.create({ seed: "a run", expires_in: 600 }),
        );
        const inside = clientWith({
          apiKey: made.test_key,
          onExchange: (exchange) => exchanges.push(exchange),
        });
        const { id } = await inside.payments.create({ amount: 1, ...EUR });
        const lines = (await inside.sandbox.transcript()).trimEnd().split("\n");
        assert.deepEqual(lines.map((line) => JSON.parse(line).answer.body.id), [id]);
        await client.sandboxes.delete(made.id);
      });

      await t.step("the clock", async () => {
        assert.equal(assertShape(Clock, await client.sandbox.clock()).mode, "real");
        const waiting = await client.payments.create({
          amount: 1000,
          ...EUR,
          card: { token: "pm_card_authenticationRequired" },
        });
        const moved = await client.sandbox.setClock({ advance: 86_400, mode: "frozen" });
        assertShape(ClockAdvance, moved);
        assert.deepEqual([moved.mode, moved.has_more], ["frozen", false]);
        assert.equal(moved.did.expired_payments, 1);
        assert.equal((await client.payments.retrieve(waiting.id)).failure_code, "expired");
      });

      await t.step("faults", async () => {
        const fault = await client.sandbox.createFault({
          on: "request",
          fault: "server_error_after",
          where: { method: "POST", path: "/v1/payments" },
        });
        assertShape(Fault, fault);
        assert.deepEqual((await client.sandbox.listFaults()).data, [fault]);
        // The client sends the request again with the same key, and gets the stored response.
        const paid = await client.payments.create({ amount: 7, ...EUR, card: APPROVED_CARD });
        assert.equal(paid.status, "completed");
        assert.equal((await client.sandbox.retrieveFault(fault.id)).left, 0);
        const { deleted } = await client.sandbox.deleteFault(fault.id);
        assert.equal(deleted, true);
      });

      await t.step("reset", async () => {
        const { object, deleted } = await client.sandbox.reset();
        assert.equal(object, "sandbox_reset");
        const left = await client.payments.list();
        assert.deepEqual([deleted.payments > 0, left.data.length], [true, 0]);
      });

      await t.step("every operation of the tables has succeeded once", () => {
        const used = exchanges.filter(({ response }) => response!.status < 300)
          .map(({ request: { method, url } }) => `${method} ${new URL(url).pathname}`);
        const left_out = [...PAYMENTS_FUNCTION_ROUTES, ...SANDBOX_ROUTES]
          .map(({ method, home, paths, own_path }) =>
            `${method} ${own_path ?? `/${home}${paths[0]}`}`
          )
          .filter((operation) => {
            const mount = new URL(base_url).pathname;
            const [method, path] = operation.split(" ");
            const form = new RegExp(
              `^${method} ${mount}${path!.replace(/:(id|key)/, "[^/]+")}$`,
            );
            return !used.some((request) => form.test(request));
          });
        assert.deepEqual(left_out, []);
      });
    } finally {
      await hooks.close();
    }
  }, { request_log: true }));

Deno.test("the client gets the same result for the same idempotency key", () =>
  withServedService(async ({ client, exchanges }) => {
    const input = { amount: 1000, ...EUR, card: APPROVED_CARD };
    const options = { idempotencyKey: "order-7" };
    const paid = await client.payments.create(input, options);
    assert.deepEqual(await client.payments.create(input, options), paid);
    assert.equal(exchanges[1]!.response!.headers["idempotent-replayed"], "true");
    const other = client.payments.create({ ...input, amount: 2000 }, options);
    const error = await other.catch((error) => error);
    assert.ok(error instanceof ApiError && error.is("idempotency_conflict"));
    assert.equal(error.idempotencyKey, "order-7");
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
