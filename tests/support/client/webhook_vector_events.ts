/**
 * The events of the vectors, with every member that the service sends. They are written by hand
 * from contract §2 to §4, in the order in which the service writes the members.
 */

const SUFFIX = "00000000000000000000000001";
const MADE_AT = "2026-01-01T00:00:00.000Z";
const LATER = "2026-01-01T00:00:05.250Z";

/** A payment of 25.00 EUR by card. */
const PAYMENT = {
  id: `pay_${SUFFIX}`,
  object: "payment",
  status: "completed",
  amount: 2500,
  amount_minor: 2500,
  currency: "EUR",
  amount_refunded: 0,
  amount_refunding: 0,
  amount_captured: 2500,
  amount_disputed: 0,
  amount_received: null,
  capability: "card_payment",
  method_kind: "card",
  method: {
    type: "card",
    card: { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 },
  },
  customer: { email: "grace@example.com", name: "Grace Hopper" },
  payer: { email: "grace@example.com", name: "Grace Hopper" },
  description: "Größe M",
  reference: "1043",
  metadata: { order: "1043" },
  next_action: null,
  return_url: "https://shop.example/return?order=1043",
  capture: "automatic",
  capture_before: null,
  settlement: "instant",
  failure_code: null,
  failure_message: null,
  advice: null,
  return_code: null,
  livemode: false,
  sequence: 2,
  created_at: MADE_AT,
  updated_at: MADE_AT,
  completed_at: MADE_AT,
  cancelled_at: null,
};

/** A refund of 10.00 EUR. */
const REFUND = {
  id: `re_${SUFFIX}`,
  object: "refund",
  payment_id: PAYMENT.id,
  payment_status: "completed",
  amount: 1000,
  amount_minor: 1000,
  currency: "EUR",
  status: "pending",
  failure_code: null as string | null,
  failure_message: null as string | null,
  return_code: null,
  reason: "requested_by_customer",
  metadata: {},
  destination: null,
  speed: null,
  payee_check: null,
  livemode: false,
  created_at: LATER,
  updated_at: LATER,
};

/** A dispute of 25.00 EUR. */
const DISPUTE = {
  id: `dp_${SUFFIX}`,
  object: "dispute",
  payment_id: PAYMENT.id,
  amount_minor: 2500,
  currency: "EUR",
  reason: "fraudulent",
  status: "needs_response",
  evidence: null as { text: string; submitted_at: string | null } | null,
  evidence_due_by: "2026-01-08T00:00:05.250Z",
  created_at: LATER,
  closed_at: null as string | null,
};
const EVIDENCE = { text: "Geliefert am 2. März – Größe M", submitted_at: LATER };

const NOT_TAKEN = { amount_captured: 0, completed_at: null };

/** The events by the names of their vectors. */
export const VECTOR_EVENTS: Readonly<Record<string, string>> = {
  "payment.requires_action with the payer's next action": eventOf({
    type: "payment.requires_action",
    object: {
      ...PAYMENT,
      ...NOT_TAKEN,
      status: "requires_action",
      next_action: {
        type: "authenticate",
        url: "http://127.0.0.1:54321/console/#/challenge/" + "0123456789abcdef".repeat(3),
      },
    },
  }),
  "payment.authorized of a manual capture": eventOf({
    type: "payment.authorized",
    object: {
      ...PAYMENT,
      ...NOT_TAKEN,
      status: "authorized",
      capture: "manual",
      capture_before: "2026-01-08T00:00:00.000Z",
    },
  }),
  "payment.completed after the capture of a part": eventOf({
    type: "payment.completed",
    sequence: 3,
    object: { ...PAYMENT, capture: "manual", amount_captured: 2000, sequence: 3 },
  }),
  "refund.created": eventOf({ type: "refund.created", sequence: 3, object: REFUND }),
  "refund.completed": eventOf({
    type: "refund.completed",
    sequence: 4,
    object: { ...REFUND, payment_status: "partially_refunded", status: "completed" },
  }),
  "refund.failed": eventOf({
    type: "refund.failed",
    sequence: 4,
    object: {
      ...REFUND,
      status: "failed",
      failure_code: "processing_failed",
      failure_message: "The refund failed while it was processed",
    },
  }),
  "dispute.created": eventOf({ type: "dispute.created", sequence: 3, object: DISPUTE }),
  "dispute.updated with evidence": eventOf({
    type: "dispute.updated",
    sequence: 5,
    object: { ...DISPUTE, status: "under_review", evidence: EVIDENCE },
  }),
  "dispute.won": eventOf({
    type: "dispute.won",
    sequence: 6,
    object: { ...DISPUTE, status: "won", evidence: EVIDENCE, closed_at: LATER },
  }),
  "dispute.lost": eventOf({
    type: "dispute.lost",
    sequence: 6,
    object: { ...DISPUTE, status: "lost", closed_at: LATER },
  }),
  "payment.partially_refunded while another refund is pending": eventOf({
    type: "payment.partially_refunded",
    sequence: 6,
    object: {
      ...PAYMENT,
      status: "partially_refunded",
      amount_refunded: 1000,
      amount_refunding: 500,
      sequence: 6,
    },
  }),
  "an event of a live payment, made by no request": eventOf({
    type: "payment.completed",
    sequence: 3,
    livemode: true,
    object: { ...PAYMENT, livemode: true, settlement: null, sequence: 3 },
    request: { id: null, idempotency_key: null },
  }),
};

/** Writes an event as the service does. */
function eventOf({ type, object, ...more }: {
  type: string;
  object: object;
  sequence?: number;
  livemode?: boolean;
  request?: { id: string | null; idempotency_key: string | null };
}): string {
  const { sequence = 2, livemode = false } = more;
  const { request = { id: `req_${SUFFIX}`, idempotency_key: "order-1043" } } = more;
  return JSON.stringify({
    id: `evt_${SUFFIX}`,
    object: "event",
    type,
    api_version: "v1",
    created_at: LATER,
    livemode,
    sequence,
    data: { object },
    request,
  });
}
