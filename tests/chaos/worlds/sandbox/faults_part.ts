/**
 * R15, declared faults: clients race for faults of requests, of the provider and of deliveries.
 * Each fault that is used up is declared again. At the end the faults have happened exactly as
 * often as they were declared.
 */

import { pause } from "../../../support/common/until.ts";
import { sumOf } from "../../harness/audit.ts";
import { SANDBOX, V1 } from "../../harness/client.ts";
import { serveHooks } from "../../harness/receiver.ts";
import { type Part, type PartReport, untilDone } from "./parts.ts";

const CLIENTS = 8;
const TIMES = 3;
const DECLARATIONS = [
  { on: "request", fault: "server_error_before", where: { path: "/v1/payments" } },
  { on: "request", fault: "server_error_after", where: { path: "/v1/payments" } },
  { on: "provider", fault: "declined", where: { method_kind: "card" } },
  { on: "delivery", fault: "drop_until_recovered", where: { event_type: "payment.created" } },
] as const;

/** Declares faults, and pays until all of them have happened. */
export async function playFaults({ stage, client, sandbox, send, isOver }: Part) {
  const url = serveHooks(stage, async (request) => await request.body?.cancel());
  await client.addEndpoint(sandbox.key, { url, events: ["payment.created"] });
  const declared: Record<string, number> = {};
  const open = new Map<string, string>();
  let payments = 0;
  const declareAll = async (i: number) => {
    for (const declaration of DECLARATIONS) {
      const { fault } = declaration;
      const known = open.get(fault);
      if (known && (await send(`${SANDBOX}/faults/${known}`)).body.left > 0) continue;
      const body = { ...declaration, times: TIMES };
      const response = await send(`${SANDBOX}/faults`, { body, key: `${fault}-${i}` });
      if (response.status !== 201) continue;
      open.set(fault, response.body.id);
      declared[fault] = (declared[fault] ?? 0) + TIMES;
    }
  };
  const leftOver = async () => {
    const rows = await stage.sql<{ left: number }[]>`
      select times_left as left from pay.faults where environment_id = ${sandbox.environment_id}`;
    return sumOf(rows, ({ left }) => left);
  };
  let is_empty = false;
  await Promise.all([
    (async () => {
      for (let i = 0; !isOver(); i++) await declareAll(i);
      while (await leftOver() > 0) await pause(100);
      is_empty = true;
    })(),
    untilDone(CLIENTS, async (number, i) => {
      const body = { amount: 100, currency: "EUR", outcome: "success" };
      await send(`${V1}/payments`, { body, key: `fault-${number}-${i}` });
      payments++;
      return !is_empty;
    }),
  ]);
  const [happened] = await stage.sql<{ payments: number; declined: number; dropped: number }[]>`
    select count(*)::int as payments,
      count(*) filter (where status = 'declined')::int as declined,
      (select count(*) from pay.webhook_deliveries d
        where d.environment_id = ${sandbox.environment_id}
          and d.fault = 'drop_until_recovered')::int as dropped
    from pay.payments where environment_id = ${sandbox.environment_id}`;
  const counts: [name: string, actual: number, expected: number][] = [
    ["payments", happened!.payments, payments],
    ["faults declined", happened!.declined, declared["declined"]!],
    ["faults drop_until_recovered", happened!.dropped, declared["drop_until_recovered"]!],
  ];
  const breaches = counts.filter(([, actual, expected]) => actual !== expected)
    .map(([name, actual, expected]) => `${name}: ${actual} instead of ${expected}`);
  for (const fault of ["server_error_before", "server_error_after"]) {
    // A kill can take the response of a request that has a fault.
    const shown = client.faults[fault] ?? 0;
    if (shown > declared[fault]! || shown < declared[fault]! - client.repeated) {
      breaches.push(`faults ${fault}: ${shown} responses, ${declared[fault]} declared`);
    }
  }
  const total = sumOf(Object.values(declared), (times) => times);
  const says = `${total} declared faults in ${payments} payments`;
  return { says, breaches } satisfies PartReport;
}
