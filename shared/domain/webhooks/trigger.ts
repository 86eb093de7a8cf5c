/**
 * Delivers an event on demand (contract §4): one synchronous attempt, signed with the real secret
 * of the endpoint, or a delivery in its inbox. It changes no payment and has no retry.
 */

import type { Clock } from "../../core/clock.ts";
import { ApiError, invalidParameter } from "../../core/errors.ts";
import type { DisputeStatus } from "../../schema/statuses.ts";
import type { Payment } from "../../schema/payment.ts";
import type { EventType } from "../../schema/event_type.ts";
import type { TriggerWebhookBody } from "../../schema/webhook_body.ts";
import type { Store } from "../../store/store.ts";
import type { SecretSource, WebhookStore } from "../../store/webhook_store.ts";
import { makeAttempt, type Send } from "./attempt.ts";
import { EndpointSecrets } from "./endpoint_secret.ts";
import { type TriggeredEvent, triggeredEvent } from "../changes/event.ts";
import { readPayment } from "../changes/read_resource.ts";
import { sampleDispute } from "../payments/dispute_payment.ts";
import { sampleRefund } from "../payments/refund_payment.ts";
import { type Reply, type ServiceRequest, withoutRateCount } from "../changes/service_request.ts";
import { FairQueue } from "../../jobs/fair_queue.ts";
import type { WebhookSettings } from "./webhook_endpoints.ts";

/** Duration of the lease on a triggered delivery: longer than its one attempt can take. */
const LEASE_MS = 60_000;

/**
 * Most triggered attempts under way, because each occupies a request and a connection for up to
 * 15 s. Of an environment: enough for a test suite that triggers in parallel. Of an account: two
 * sandboxes at the limit. In total: half of the dispatcher's limit.
 */
export const TRIGGER_LIMITS = { of_environment: 16, of_account: 32, in_all: 128 };

/** The part of a stored endpoint that the trigger needs. */
interface OwnedSecrets {
  secrets: SecretSource[];
  account: string;
  /** The environment's public id, which a reset keeps. */
  public_id: string;
}

/**
 * Returns the function that delivers an event on demand. It throws `ApiError`; `rate_limited` also
 * means that too many triggered attempts are under way. If the receiver fails, the response is
 * still 200 with the delivery.
 */
export function createTrigger(options: {
  store: Store;
  webhook_store: WebhookStore;
  settings: WebhookSettings;
  send: Send;
  clock: Clock;
}) {
  const { store, webhook_store, settings, send, clock } = options;
  const endpoint_secrets = new EndpointSecrets(settings.master_secret);
  const attempts = new FairQueue({
    slots: TRIGGER_LIMITS.in_all,
    levels: [TRIGGER_LIMITS.of_account, TRIGGER_LIMITS.of_environment],
    waiting: 0,
    refusal: "Too many triggered deliveries are under way: try again when one has ended",
  });
  return async function trigger(request: ServiceRequest, body: TriggerWebhookBody): Promise<Reply> {
    const { access, context, idempotency } = request;
    const loaded = await store.load(access, "webhook_endpoints", body.endpoint_id, idempotency)
      .catch(missing('No webhook endpoint has the id in "endpoint_id"'));
    if (loaded.outcome === "replay") return { response: loaded.response, replayed: true };
    const counted = withoutRateCount(access);
    const { url }: { url: string | null } = JSON.parse(loaded.body);
    const { secrets, account, public_id }: OwnedSecrets = JSON.parse(loaded.detail!);
    const paid = await store.load(counted, "payments", body.payment_id)
      .catch(missing('No payment has the id in "payment_id"'));
    if (paid.outcome !== "found") throw new Error("a load without a key cannot be a replay");
    const payment = readPayment(paid.body);

    const event = triggeredEvent({
      type: body.event,
      subject_id: payment.id,
      sequence: payment.sequence,
      object: objectOf(body.event, payment, paid.body, loaded.body, request),
    }, context);
    if (url === null) return await putIntoInbox(request, body.endpoint_id, event);
    const endpoint = { endpoint_id: body.endpoint_id, url, secrets };
    return await attempts.run(
      [account, public_id],
      () => attemptOnce(request, endpoint, event),
    );
  };

  /** Stores the delivery for an endpoint that has an inbox. */
  async function putIntoInbox(
    { access, idempotency }: ServiceRequest,
    endpoint_id: string,
    event: TriggeredEvent,
  ): Promise<Reply> {
    const triggered = deliveryOf(event, endpoint_id);
    const reply = await webhook_store.beginTrigger(
      withoutRateCount(access),
      { ...triggered, leased_until_ms: null },
      idempotency,
    );
    return reply!;
  }

  /** Stores the delivery, makes its one attempt and stores the result. */
  async function attemptOnce(
    { access, context, idempotency }: ServiceRequest,
    endpoint: { endpoint_id: string; url: string; secrets: SecretSource[] },
    event: TriggeredEvent,
  ): Promise<Reply> {
    const { endpoint_id, url, secrets } = endpoint;
    const counted = withoutRateCount(access);
    const triggered = deliveryOf(event, endpoint_id);
    const kept = await webhook_store.beginTrigger(counted, {
      ...triggered,
      leased_until_ms: context.at_ms + LEASE_MS,
    }, idempotency);
    if (kept) return kept;
    const { at_ms } = context;
    const real_ms = clock();
    const attempt = await makeAttempt(
      {
        event_id: event.id,
        body: event.body,
        url,
        number: 1,
        secrets: endpoint_secrets.signing(endpoint_id, JSON.stringify(secrets), { at_ms, real_ms }),
        allow_private: settings.allow_private && !context.livemode,
        livemode: context.livemode,
        signed_ms: real_ms,
        traceparent: event.traceparent,
      },
      at_ms,
      send,
    );
    const response = await webhook_store.endTrigger(
      counted,
      {
        delivery_id: triggered.delivery_id,
        delivered: attempt.delivered,
        record: JSON.stringify(attempt.record),
        log_entry: attempt.log_entry,
      },
      idempotency,
    );
    return { response, replayed: false };
  }
}

/** Makes the row of a triggered delivery, which is the only one of its event. */
function deliveryOf({ id, delivery_id, ...event }: TriggeredEvent, endpoint_id: string) {
  return { endpoint_id, event_id: id, ...event, delivery_id: `${delivery_id}0` };
}

const SAMPLE_REFUNDS: ReadonlyMap<EventType, Parameters<typeof sampleRefund>[1]> = new Map([
  ["refund.created", { status: "pending" }],
  ["refund.updated", { status: "pending", payee_check: "no_match" }],
  ["refund.completed", { status: "completed" }],
  ["refund.failed", { status: "failed" }],
]);

const SAMPLE_DISPUTES: ReadonlyMap<EventType, DisputeStatus> = new Map([
  ["dispute.created", "needs_response"],
  ["dispute.updated", "under_review"],
  ["dispute.won", "won"],
  ["dispute.lost", "lost"],
]);

/** Makes an error handler that gives a 404 these words. Other errors pass unchanged. */
function missing(words: string): (error: unknown) => never {
  return (error) => {
    throw error instanceof ApiError && error.code === "not_found"
      ? new ApiError("not_found", words)
      : error;
  };
}

/** Returns the resource of the event: payment, endpoint, or a sample of a refund or dispute. */
function objectOf(
  type: EventType,
  payment: Payment,
  payment_body: string,
  endpoint_body: string,
  { context }: ServiceRequest,
): string {
  if (type.startsWith("payment.")) return payment_body;
  if (type === "ping" || type.startsWith("webhook_endpoint.")) return endpoint_body;
  if (type.startsWith("refund.")) {
    return JSON.stringify(sampleRefund(payment, SAMPLE_REFUNDS.get(type)!, context));
  }
  const disputed = SAMPLE_DISPUTES.get(type);
  if (disputed) return JSON.stringify(sampleDispute(payment, disputed, context));
  throw invalidParameter(
    "event",
    "Events of transfers and instruments cannot be triggered: choose one of a payment, a refund, a " +
      "dispute or an endpoint",
  );
}
