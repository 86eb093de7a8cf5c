/** The objects that `trigger` makes in the sandbox for an event without a given payment. */

import type {
  EventType,
  Payment,
  PaymentFields,
  PaymentsClient,
  PaymentStatus,
} from "../client/mod.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";

/** A filter of lists for the events of an object. */
export type TriggerObject =
  | { payment_id: string; transfer_id?: undefined }
  | { transfer_id: string; payment_id?: undefined };

/** The steps to an object that has the event. */
interface Recipe {
  /** The instrument and the further fields of a payment. */
  payment: Partial<PaymentFields>;
  /** The change of the payment that has the event. */
  change?: (payment: Payment, client: PaymentsClient) => Promise<unknown>;
}

const CURRENCY = "EUR";
const AMOUNT = 1999;
/** A part of the amount. */
const PART = 500;
const CARD = { card: { token: "pm_card_visa" } };
const AUTHORIZED_CARD = { ...CARD, capture: "manual" } as const;
const DISPUTED_CARD = { card: { token: "pm_card_createDispute" } };
const GOOD_IBAN = "DE89370400440532013000";
/** A payee whose name the sandbox's bank verifies. */
const CHECKED = { iban: GOOD_IBAN, holder_name: "Match Ltd" };
const RETURNED_IBAN = "DE00000000000000000099";

const refund: Recipe["change"] = ({ id }, { payments }) => payments.refund(id);
const refundPart: Recipe["change"] = ({ id }, { payments }) =>
  payments.refund(id, { amount: PART });

/** To the status of another event an advance leads. Transfers have steps of their own. */
const RECIPES: Readonly<Partial<Record<EventType, Recipe>>> = {
  "payment.created": { payment: CARD },
  // No payment by card of a sandbox has this event, so it shows one that is pending.
  "payment.pending": { payment: {} },
  "payment.requires_action": { payment: { card: { token: "pm_card_authenticationRequired" } } },
  "payment.authorized": { payment: AUTHORIZED_CARD },
  "payment.completed": { payment: CARD },
  "payment.declined": { payment: { card: { token: "pm_card_chargeDeclined" } } },
  "payment.failed": { payment: { iban: RETURNED_IBAN } },
  "payment.cancelled": {
    payment: AUTHORIZED_CARD,
    change: ({ id }, { payments }) => payments.cancel(id),
  },
  "payment.partially_refunded": { payment: CARD, change: refundPart },
  "payment.refunded": { payment: CARD, change: refund },
  "payment.chargeback": { payment: DISPUTED_CARD },
  "refund.created": { payment: CARD, change: refundPart },
  "refund.updated": {
    payment: { iban: GOOD_IBAN },
    change: ({ id }, { payments }) => payments.refund(id, { destination: CHECKED }),
  },
  "refund.completed": { payment: CARD, change: refundPart },
  "refund.failed": {
    payment: { ...CARD, settlement: "manual" },
    change: async ({ id }, { payments, sandbox }) =>
      await sandbox.advanceRefund((await payments.refund(id)).id, { to: "failed" }),
  },
  "dispute.created": { payment: DISPUTED_CARD },
  "dispute.updated": { payment: DISPUTED_CARD, change: evidence("The parcel was delivered") },
  "dispute.won": { payment: DISPUTED_CARD, change: evidence("winning_evidence") },
  "dispute.lost": { payment: DISPUTED_CARD, change: evidence("losing_evidence") },
  // These two show the endpoint. The trigger takes any payment.
  "webhook_endpoint.disabled": { payment: {} },
  ping: { payment: {} },
};

/** The event types for which objects can be made. No trigger shows an instrument. */
export const TRIGGER_TYPES: readonly string[] = EVENT_TYPES.filter((type) =>
  !type.startsWith("instrument.")
);

/**
 * Makes an object that has an event of this type.
 * @param type one of `TRIGGER_TYPES`
 * @throws {PaymentsError} if a request fails
 */
export async function makeTriggerObject(
  client: PaymentsClient,
  type: EventType,
): Promise<TriggerObject> {
  if (isTransferType(type)) return { transfer_id: await makeTransfer(client, type) };
  const { payment: fields, change } = RECIPES[type] ?? {
    payment: {},
    change: ({ id }) => client.sandbox.advance(id, { to: type.split(".")[1] as PaymentStatus }),
  };
  const payment = await pay(client, fields);
  await change?.(payment, client);
  return { payment_id: payment.id };
}

type TransferType = Extract<EventType, `transfer.${string}`>;

function isTransferType(type: EventType): type is TransferType {
  return type.startsWith("transfer.");
}

function pay(client: PaymentsClient, fields: Partial<PaymentFields>): Promise<Payment> {
  return client.sandbox.createPayment({ amount: AMOUNT, currency: CURRENCY, ...fields });
}

function evidence(text: string): NonNullable<Recipe["change"]> {
  return async ({ id }, { disputes }) => {
    const { data: [dispute] } = await disputes.list({ payment_id: id, limit: 1 });
    await disputes.submitEvidence(dispute!.id, { text });
  };
}

/** A transfer needs an available balance, so it follows a payment. Returns its id. */
async function makeTransfer(client: PaymentsClient, type: TransferType): Promise<string> {
  await pay(client, CARD);
  const { id } = await client.transfers.create({
    amount: AMOUNT,
    currency: CURRENCY,
    destination: type === "transfer.failed" ? { iban: RETURNED_IBAN } : CHECKED,
    ...(type === "transfer.cancelled" && { settlement: "manual" }),
  });
  if (type === "transfer.cancelled") await client.transfers.cancel(id);
  return id;
}
