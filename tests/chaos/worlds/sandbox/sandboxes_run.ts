/**
 * R15: the features of sandboxes while servers and PostgreSQL are killed. A declared fault happens
 * exactly as often as declared, an inbox loses nothing, an advance of a clock happens once and in
 * order, a dispute ends once, and a disposable sandbox has its own data and leaves nothing.
 */

import { pause } from "../../../support/common/until.ts";
import { brokenInvariants, faultsOfServers, sumOf, type Verdict } from "../../harness/audit.ts";
import {
  type ApiRequest,
  type ApiResponse,
  COMPLETED,
  RepeatingClient,
  SANDBOX,
  V1,
} from "../../harness/client.ts";
import { killBackend, killPostgres, within } from "../../harness/killer.ts";
import { serveHooks } from "../../harness/receiver.ts";
import {
  type ApiServer,
  type KeyedEnvironment,
  type Stage,
  untilAllWell,
} from "../../harness/stage.ts";
import { untilNone } from "../../harness/time.ts";

const CALM_MS = 1_000;
const CLIENT = { timeout_ms: 5_000, give_up_ms: 60_000, repeats_429: true };
const PARTS = [playFaults, playInbox, playClock, playDisputes, playDisposables];

/** A part of the run, in a sandbox of its own. */
interface Part {
  stage: Stage;
  client: RepeatingClient;
  sandbox: KeyedEnvironment;
  breaches: string[];
  /** Sends a request in its sandbox until it has a final response. */
  send(path: string, request?: ApiRequest): Promise<ApiResponse>;
  /** True after the last kill: a part then ends what it has begun. */
  isOver(): boolean;
}

export async function runSandboxes(stage: Stage, kills: number): Promise<Verdict[]> {
  const servers = await stage.startServers();
  let is_over = false;
  const parts: Part[] = [];
  // Before the first kill, because the run does not repeat its own statements.
  for (const { name } of PARTS) {
    const client = new RepeatingClient(stage, servers, CLIENT);
    const sandbox = await stage.makeSandbox(name);
    parts.push({
      ...{ stage, client, sandbox, breaches: client.breaches },
      send: (path, request) => client.send(sandbox.key, path, request),
      isOver: () => is_over,
    });
  }
  const playing = Promise.all(PARTS.map((play, i) => play(parts[i]!)));
  // A part that fails during the kills is reported after them.
  playing.catch(() => {});
  for (let i = 0; i < kills; i++) {
    await pause(CALM_MS);
    await killNext(stage, servers, i);
    await untilAllWell(servers);
    await endLeases(stage);
  }
  await pause(CALM_MS);
  is_over = true;
  const says = await playing;
  const repeated = sumOf(parts, ({ client }) => client.repeated);
  return [{
    promise: "R15",
    says: `${kills} kills, ${repeated} requests repeated; ${says.join("; ")}`,
    breaches: [
      ...parts.flatMap(({ breaches }) => breaches),
      ...await brokenInvariants(stage.sql),
      ...faultsOfServers(stage),
      ...(repeated === 0 ? ["no request met a kill"] : []),
    ],
  }];
}

async function killNext(stage: Stage, servers: ApiServer[], i: number): Promise<void> {
  if (i % 2 === 0) await servers[(i / 2) % servers.length]!.restart();
  else if (i % 4 === 1) await killPostgres(stage);
  else await killBackend(stage, Math.random());
}

/** Ends the leases of dead processes soon, because an advance of a clock waits for them. */
async function endLeases({ sql }: Stage): Promise<void> {
  await sql`
    update pay.provider_operations
    set leased_until = least(leased_until, now() + interval '2 seconds'),
      next_attempt_at = least(next_attempt_at, now() + interval '2 seconds')
    where state = 'pending' and leased_until is not null`;
}

async function untilDone(
  clients: number,
  step: (client: number, i: number) => Promise<boolean>,
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let i = 0; await step(client, i); i++);
  }));
}

const RACERS = 8;
const TIMES = 3;
const DECLARATIONS = [
  { on: "request", fault: "server_error_before", where: { path: "/v1/payments" } },
  { on: "request", fault: "server_error_after", where: { path: "/v1/payments" } },
  { on: "provider", fault: "declined", where: { method_kind: "card" } },
  { on: "delivery", fault: "drop_until_recovered", where: { event_type: "payment.created" } },
] as const;

/**
 * Clients race for faults of requests, of the provider and of deliveries. Each fault that is used up
 * is declared again. At the end the faults have happened exactly as often as they were declared.
 */
async function playFaults(
  { stage, client, sandbox, send, isOver, breaches }: Part,
): Promise<string> {
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
    untilDone(RACERS, async (number, i) => {
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
  for (const [name, actual, expected] of counts) {
    if (actual !== expected) breaches.push(`${name}: ${actual} instead of ${expected}`);
  }
  for (const fault of ["server_error_before", "server_error_after"]) {
    // A kill can take the response of a request that has a fault.
    const shown = client.faults[fault] ?? 0;
    if (shown > declared[fault]! || shown < declared[fault]! - client.repeated) {
      breaches.push(`faults ${fault}: ${shown} responses, ${declared[fault]} declared`);
    }
  }
  const total = sumOf(Object.values(declared), (times) => times);
  return `${total} declared faults in ${payments} payments`;
}

/** Clients of a part, unless it has a number of its own. */
const CLIENTS = 3;
/** Of this many reads one is lost: the receiver dies before it handles the page or its cursor. */
const DIES_AFTER = 7;
const ARRIVAL_MS = 10_000;
const DISPUTED = { amount: 100, currency: "EUR", card: { token: "pm_card_createDispute" } };
const SANDBOXES = `${SANDBOX}/sandboxes`;

/**
 * Clients pay while a receiver reads its inbox. The receiver dies now and then, and begins without
 * a cursor. Every event arrives, in the order of its payment, and none again after the response to
 * its acknowledgement.
 */
async function playInbox(
  { stage, client, sandbox, send, isOver, breaches }: Part,
): Promise<string> {
  const inbox = await client.addEndpoint(sandbox.key, { delivery: "inbox" });
  const arrived = new Map<string, { payment: string; sequence: number }>();
  const acknowledged = new Set<string>();
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
  return `${arrived.size} events in ${reads} reads of an inbox`;
}

/**
 * Each disputed payment gets winning evidence, losing evidence, an acceptance and an advance at the
 * same time. Its dispute has ended exactly once.
 */
async function playDisputes({ stage, sandbox, send, isOver, breaches }: Part): Promise<string> {
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
  return `${disputes} disputes`;
}

/**
 * Clients make disposable sandboxes, pay in them and delete some. Each key makes one sandbox, which
 * has its own payments and no others. The deleted ones leave nothing.
 */
async function playDisposables({ stage, client, send, isOver, breaches }: Part): Promise<string> {
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
  return `${rows.length + deleted.length} disposable sandboxes`;
}

const PAYERS = 2;
/** Between two payments of a client, so that an advance that waits for a kill gets few more. */
const PAUSE_MS = 100;
/** After these days every payment has ended, and none is old enough for retention. */
const LAST_DAYS = 8;
const DAY_S = 86_400;
const CLOCK = `${SANDBOX}/clock`;
/** Payments, and the days after which they end by themselves. */
const KINDS = [
  { body: { card: { token: "pm_card_authenticationRequired" } }, status: "failed", days: 1 },
  { body: { card: { token: "pm_card_visa" }, capture: "manual" }, status: "cancelled", days: 7 },
] as const;

/**
 * Clients make payments that end by themselves, and the clock of their sandbox advances day by day.
 * Every advance has happened once, every payment has ended at its own time, and the inbox has the
 * events in the order of time.
 */
async function playClock(
  { stage, client, sandbox, send, isOver, breaches }: Part,
): Promise<string> {
  await client.addEndpoint(sandbox.key, { delivery: "inbox" });
  const begun = await send(CLOCK, { body: { mode: "frozen" }, key: "begin" });
  const begin_ms = Date.parse(begun.body.now);
  let [payments, days, is_done] = [0, 0, false];
  const advance = async (by_days: number) => {
    days += by_days;
    let body: Record<string, unknown> = { advance: by_days * DAY_S };
    for (let i = 0;; i++) {
      const { status, text } = await send(CLOCK, { body, key: `day-${days}-${i}` });
      if (status !== 200) return void breaches.push(`an advance: ${status} ${text}`);
      const { has_more, target } = JSON.parse(text);
      if (!has_more) return;
      body = { to: target };
    }
  };
  await Promise.all([
    untilDone(PAYERS, async (number, i) => {
      const { body } = KINDS[(number + i) % KINDS.length]!;
      const { status } = await send(`${V1}/payments`, {
        body: { amount: 100, currency: "EUR", ...body },
        key: `clock-${number}-${i}`,
      });
      if (status === 201) payments++;
      else breaches.push(`a payment: ${status}`);
      await pause(PAUSE_MS);
      return !is_done;
    }),
    (async () => {
      while (!isOver()) await advance(1);
      is_done = true;
    })(),
  ]);
  await advance(LAST_DAYS);
  const { now } = (await send(CLOCK)).body;
  const expected = new Date(begin_ms + days * DAY_S * 1_000).toISOString();
  if (now !== expected) breaches.push(`now is ${now}, not ${expected}`);
  for (const { status, days } of KINDS) {
    const wrong = await stage.sql<{ id: string }[]>`
      select id from pay.payments
      where environment_id = ${sandbox.environment_id} and status = ${status}
        and updated_at <> created_at + ${`${days} days`}::interval`;
    for (const { id } of wrong) breaches.push(`${id} is ${status} at another time than its own`);
  }
  const [row] = await stage.sql<{ open: number; disordered: number }[]>`
    select (
      select count(*) from pay.payments
      where environment_id = ${sandbox.environment_id} and status not in ('failed', 'cancelled')
    )::int as open, (
      select count(*) from (
        select v.created_at < lag(v.created_at) over (order by i.position) as is_late
        from pay.inbox_entries i
        join pay.webhook_deliveries d
          on d.environment_id = i.environment_id and d.id = i.delivery_id
        join pay.events v on v.environment_id = d.environment_id and v.id = d.event_id
        where i.environment_id = ${sandbox.environment_id}
      ) o where o.is_late
    )::int as disordered`;
  if (row!.open > 0) breaches.push(`${row!.open} payments have not ended`);
  if (row!.disordered > 0) breaches.push(`${row!.disordered} events are out of order in the inbox`);
  return `${payments} payments through ${days} days of a clock`;
}
