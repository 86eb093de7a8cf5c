/**
 * The books of a run with webhooks: what the receiver got must be every event that was due, once,
 * and those of a payment in their order; and the outbox must tell the same.
 */

import type { Sql } from "postgres";
import type { Arrival } from "./webhook_receiver.ts";

/** Deliveries to one endpoint, by status. */
export type Outbox = Partial<Record<string, number>>;

/** An event as the receiver got it. */
export interface ArrivedEvent {
  at_ms: number;
  id: string;
  payment_id: string;
  sequence: number;
  /** When the server took the request that made it; whole milliseconds since 1970. */
  created_ms: number;
}

/** Reads what the bodies tell. */
export function readArrivals(arrivals: readonly Arrival[]): ArrivedEvent[] {
  return arrivals.map(({ at_ms, body }) => {
    const { id, sequence, created_at, data } = JSON.parse(body);
    return { at_ms, id, payment_id: data.object.id, sequence, created_ms: Date.parse(created_at) };
  });
}

/** Reads the outbox of an endpoint. */
export async function readOutbox(sql: Sql, endpoint_id: string): Promise<Outbox> {
  const rows = await sql<{ status: string; count: string }[]>`
    select status, count(*) as count from pay.webhook_deliveries
    where endpoint_id = ${endpoint_id} group by status`;
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
}

/**
 * What is wrong; empty when all is well. The receiver took every attempt, so a second one of the
 * same event is a fault here, though the contract allows it.
 * @param arrivals in the order of their arrival
 * @param due ids of the events that there were for the endpoint
 */
export function auditDeliveries(
  arrivals: readonly ArrivedEvent[],
  due: ReadonlySet<string>,
  outbox: Outbox,
): string[] {
  const problems: string[] = [];
  const arrived = new Set<string>();
  const newest = new Map<string, number>();
  let [twice, strangers, too_early] = [0, 0, 0];
  for (const { id, payment_id, sequence } of arrivals) {
    if (arrived.has(id)) twice++;
    arrived.add(id);
    if (!due.has(id)) strangers++;
    const before = newest.get(payment_id) ?? 0;
    if (sequence > before + 1) too_early++;
    newest.set(payment_id, Math.max(sequence, before));
  }
  const missing = due.difference(arrived).size;
  for (const [name, count] of Object.entries({ missing, twice, strangers, too_early })) {
    if (count > 0) problems.push(`arrivals: ${count} ${name}`);
  }
  const { delivered = 0, ...others } = outbox;
  if (delivered !== due.size) problems.push(`outbox: ${delivered} delivered, due ${due.size}`);
  for (const [status, count] of Object.entries(others)) problems.push(`outbox: ${count} ${status}`);
  return problems;
}
