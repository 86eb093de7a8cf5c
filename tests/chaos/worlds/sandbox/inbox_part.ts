/**
 * R15, inboxes: clients pay while a receiver reads its inbox. The receiver dies now and then, and
 * begins without a cursor. Every event arrives, in the order of its payment, and none again after
 * the response to its acknowledgement.
 */

import { COMPLETED, SANDBOX, V1 } from "../../harness/client.ts";
import { within } from "../../harness/killer.ts";
import { type Part, type PartReport, untilDone } from "./part.ts";

const CLIENTS = 3;
/** Of this many reads one is lost: the receiver dies before it handles the page or its cursor. */
const DIES_AFTER = 7;
const ARRIVAL_MS = 10_000;

/** Pays and reads the inbox until everything has arrived. */
export async function playInbox({ stage, client, sandbox, send, isOver }: Part) {
  const inbox = await client.addEndpoint(sandbox.key, { delivery: "inbox" });
  const arrived = new Map<string, { payment: string; sequence: number }>();
  const acknowledged = new Set<string>();
  const breaches: string[] = [];
  let [reads, has_all] = [0, false];
  const read = async () => {
    let [after, page]: [string | null, string[]] = [null, []];
    while (!has_all) {
      const query = `limit=20&wait=1${after === null ? "" : `&after=${after}`}`;
      const path = `${V1}/webhook_endpoints/${inbox.id}/inbox?${query}`;
      const response = await client.send(sandbox.key, path, {}, reads, () => has_all);
      if (response.status !== 200) break;
      reads++;
      if (after !== null) page.forEach((id) => acknowledged.add(id));
      if (reads % DIES_AFTER === 0) {
        [after, page] = [null, []];
        continue;
      }
      for (const { id, event_id, body } of response.body.data) {
        if (acknowledged.has(id)) breaches.push(`${id} came again after its acknowledgement`);
        const { data, sequence } = JSON.parse(body);
        if (!arrived.has(event_id)) arrived.set(event_id, { payment: data.object.id, sequence });
      }
      after = response.body.next_cursor;
      page = response.body.data.map(({ id }: { id: string }) => id);
    }
  };
  const reading = read();
  await untilDone(CLIENTS, async (number, i) => {
    await send(`${SANDBOX}/payments`, { body: COMPLETED, key: `inbox-${number}-${i}` });
    return !isOver();
  });
  const events = await stage.sql<{ id: string }[]>`
    select id from pay.events where environment_id = ${sandbox.environment_id}`;
  await within(ARRIVAL_MS, () => Promise.resolve(arrived.size >= events.length));
  has_all = true;
  await reading;
  for (const { id } of events) {
    if (!arrived.has(id)) breaches.push(`${id} is in no inbox`);
  }
  const last = new Map<string, number>();
  for (const [id, { payment, sequence }] of arrived) {
    if (sequence !== (last.get(payment) ?? 0) + 1) breaches.push(`${id} is out of order`);
    last.set(payment, sequence);
  }
  const says = `${arrived.size} events in ${reads} reads of an inbox`;
  return { says, breaches } satisfies PartReport;
}
