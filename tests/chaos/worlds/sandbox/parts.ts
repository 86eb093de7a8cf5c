/**
 * R15: what the parts of the run of sandboxes share, and three of them: inboxes, disputes, and
 * disposable sandboxes.
 */

import {
  type ApiRequest,
  type ApiResponse,
  COMPLETED,
  type RepeatingClient,
  SANDBOX,
  V1,
} from "../../harness/client.ts";
import { within } from "../../harness/killer.ts";
import type { KeyedEnvironment, Stage } from "../../harness/stage.ts";
import { untilNone } from "../../harness/time.ts";

/** Clients of a part, unless it has a number of its own. */
const CLIENTS = 3;
/** Of this many reads one is lost: the receiver dies before it handles the page or its cursor. */
const DIES_AFTER = 7;
const ARRIVAL_MS = 10_000;
const DISPUTED = { amount: 100, currency: "EUR", card: { token: "pm_card_createDispute" } };
const SANDBOXES = `${SANDBOX}/sandboxes`;

export interface Part {
  stage: Stage;
  client: RepeatingClient;
  sandbox: KeyedEnvironment;
  /** Sends a request in its sandbox until it has a final response. */
  send(path: string, request?: ApiRequest): Promise<ApiResponse>;
  /** True after the last kill: a part then ends what it has begun. */
  isOver(): boolean;
}

export interface PartReport {
  says: string;
  breaches: string[];
}

export async function untilDone(
  clients: number,
  step: (client: number, i: number) => Promise<boolean>,
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let i = 0; await step(client, i); i++);
  }));
}

/**
 * Clients pay while a receiver reads its inbox. The receiver dies now and then, and begins without
 * a cursor. Every event arrives, in the order of its payment, and none again after the response to
 * its acknowledgement.
 */
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

/**
 * Each disputed payment gets winning evidence, losing evidence, an acceptance and an advance at the
 * same time. Its dispute has ended exactly once.
 */
export async function playDisputes({ stage, sandbox, send, isOver }: Part) {
  const breaches: string[] = [];
  let disputes = 0;
  await untilDone(CLIENTS, async (number, i) => {
    const name = `dispute-${number}-${i}`;
    const { body: payment } = await send(`${V1}/payments`, { body: DISPUTED, key: name });
    const { body: list } = await send(`${V1}/disputes?payment_id=${payment.id}`);
    const id = list.data?.[0]?.id;
    if (id === undefined) return breaches.push(`${name} has no dispute`) < 10;
    const moves: [path: string, body: object][] = [
      [`${V1}/disputes/${id}/evidence`, { text: "winning_evidence" }],
      [`${V1}/disputes/${id}/evidence`, { text: "losing_evidence" }],
      [`${V1}/disputes/${id}/accept`, {}],
      [`${SANDBOX}/payments/${payment.id}/advance`, { to: "completed" }],
    ];
    const responses = await Promise.all(
      moves.map(([path, body], j) => send(path, { body, key: `${name}-${j}` })),
    );
    const ended = responses.filter(({ status }) => status === 200).length;
    disputes++;
    // A win makes the payment completed, so an advance to that status changes nothing and is 200.
    if (ended === 0 || ended > 2) breaches.push(`${id} has ended ${ended} times`);
    return !isOver();
  });
  const wrong = await stage.sql<{ subject_id: string; ends: number }[]>`
    select subject_id,
      count(*) filter (where type in ('dispute.won', 'dispute.lost'))::int as ends
    from pay.events where environment_id = ${sandbox.environment_id}
    group by subject_id
    having count(*) filter (where type in ('dispute.won', 'dispute.lost')) <> 1`;
  for (const { subject_id, ends } of wrong) breaches.push(`${subject_id} has ${ends} ends`);
  return { says: `${disputes} disputes`, breaches } satisfies PartReport;
}

/**
 * Clients make disposable sandboxes, pay in them and delete some. Each key makes one sandbox, which
 * has its own payments and no others. The deleted ones leave nothing.
 */
export async function playDisposables({ stage, client, send, isOver }: Part) {
  const breaches: string[] = [];
  const kept = new Map<string, string>();
  const deleted: string[] = [];
  await untilDone(CLIENTS, async (number, i) => {
    const name = `sandbox-${number}-${i}`;
    const made = await send(SANDBOXES, { body: {}, key: name });
    if (made.status !== 201) return breaches.push(`${name}: ${made.status}`) < 10;
    const { id, test_key } = made.body;
    const payment = { body: COMPLETED, key: "payment" };
    const paid = await client.send(test_key, `${SANDBOX}/payments`, payment);
    const list = await client.send(test_key, `${V1}/payments`);
    const ids = list.status === 200 ? list.body.data.map(({ id }: { id: string }) => id) : [];
    const is_own = paid.status === 201 && ids.length === 1 && ids[0] === paid.body.id;
    if (!is_own) return breaches.push(`${id} has other payments`) < 10;
    if (i % 2 === 0) {
      kept.set(id, paid.body.id);
      return !isOver();
    }
    const gone = await send(`${SANDBOXES}/${id}`, { method: "DELETE", key: `${name}-delete` });
    if (gone.status !== 200) breaches.push(`${id} is not deleted: ${gone.status}`);
    const late = await client.send(test_key, `${V1}/payments`);
    if (late.status !== 401) breaches.push(`the key of ${id} still opens it`);
    deleted.push(id);
    return !isOver();
  });
  // A purge leaves out an environment that a server purges.
  await untilNone("the deleted sandboxes are purged", async () => {
    await stage.sql`select pay.purge()`;
    return await stage.sql`
      select from pay.environments where public_id = any(${deleted}::text[]) limit 1`;
  }).catch((error) => breaches.push(error.message));
  const rows = await stage.sql<{ id: string; payments: string[] }[]>`
    select e.public_id as id, array(
      select p.id from pay.payments p where p.environment_id = e.id
    ) as payments
    from pay.environments e where e.ends_at is not null`;
  for (const { id, payments } of rows) {
    if (payments.join() !== kept.get(id)) {
      breaches.push(`${id} has ${payments.join() || "nothing"}`);
    }
    kept.delete(id);
  }
  for (const id of kept.keys()) breaches.push(`${id} is gone`);
  const says = `${rows.length + deleted.length} disposable sandboxes`;
  return { says, breaches } satisfies PartReport;
}
