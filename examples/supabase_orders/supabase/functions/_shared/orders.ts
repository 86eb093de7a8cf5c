/** The table `public.orders`, and its changes. Each is one statement. */

import postgres from "postgres";
import type { Event, Payment } from "@payments-api/client";

/** Supabase sets the variable. The connection belongs to the module, so requests share it. */
const sql = postgres(Deno.env.get("SUPABASE_DB_URL")!, { max: 1, prepare: false });

/** The status of an order after each event of its payment. */
const STATUS_AFTER: Record<string, string> = {
  "payment.created": "open",
  "payment.requires_action": "waiting",
  "payment.processing": "processing",
  "payment.authorized": "authorized",
  "payment.completed": "paid",
  "payment.partially_refunded": "paid",
  "payment.refunded": "refunded",
  "payment.declined": "declined",
  "payment.failed": "failed",
  "payment.cancelled": "cancelled",
  "payment.chargeback": "disputed",
};
/** The form of the ids of orders. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A new order. The amount is in the minor unit of the currency. */
export interface NewOrder {
  id: string;
  user_id: string;
  product: string;
  amount: number;
  currency: string;
}

/** An order, with the payment of the present attempt as soon as it is known. */
export interface OpenOrder extends NewOrder {
  /** A declined payment is followed by one more attempt. */
  attempt: number;
  payment_id: string | null;
}

/**
 * Opens an order, and returns it. A second call with the same id returns the first order. Returns
 * null if that order belongs to another payer.
 */
export async function openOrder(order: NewOrder): Promise<OpenOrder | null> {
  await sql`insert into public.orders ${sql(order)} on conflict (id) do nothing`;
  const [found] = await sql<[OpenOrder?]>`
    select id, user_id, product, amount, currency, attempt, payment_id from public.orders
    where id = ${order.id} and user_id = ${order.user_id}`;
  // postgres.js returns a bigint as text.
  return found ? { ...found, amount: Number(found.amount) } : null;
}

/** Stores the payment of an attempt. A webhook can have told it before. */
export async function storePayment(order: OpenOrder, payment: Payment): Promise<void> {
  await sql`
    update public.orders set payment_id = ${payment.id}
    where id = ${order.id} and attempt = ${order.attempt} and payment_id is null`;
}

/** Begins the next attempt of an order. Two calls at once begin the same one. */
export async function nextAttempt(order: OpenOrder): Promise<OpenOrder> {
  await sql`
    update public.orders set attempt = attempt + 1, payment_id = null, status = 'open',
      last_sequence = 0
    where id = ${order.id} and attempt = ${order.attempt}`;
  return { ...order, attempt: order.attempt + 1, payment_id: null };
}

/**
 * Applies an event of a payment to the order that the payment's reference names. An event that came
 * before, that is older than the newest applied one, or that is of an earlier attempt changes
 * nothing.
 */
export async function applyPaymentEvent(event: Event, payment: Payment): Promise<void> {
  const status = STATUS_AFTER[event.type];
  if (status === undefined || !UUID.test(payment.reference ?? "")) return;
  await sql`
    update public.orders set
      status = ${status},
      payment_id = ${payment.id},
      last_sequence = ${event.sequence},
      refunded = ${payment.amount_refunded},
      paid_at = case when ${status} = 'paid' then coalesce(paid_at, now()) else paid_at end
    where id = ${payment.reference} and last_sequence < ${event.sequence}
      and attempt::text = ${payment.metadata["attempt"] ?? ""}`;
}
