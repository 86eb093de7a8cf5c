/**
 * R15: the features of sandboxes while servers and PostgreSQL are killed. A declared fault happens
 * exactly as often as declared, an inbox loses nothing, an advance of a clock happens once and in
 * order, a dispute ends once, and a disposable sandbox has its own data and leaves nothing.
 */

import { pause } from "../../../support/common/until.ts";
import {
  brokenInvariants,
  differences,
  faultsOfServers,
  sumOf,
  type Verdict,
} from "../../harness/audit.ts";
import {
  type ApiRequest,
  type ApiResponse,
  CLOCK,
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
const BREACHES_MAX = 10;
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

/** Clients repeat a step until a condition holds, or the step has failed too often. */
async function repeat(
  { breaches }: Part,
  clients: number,
  isDone: () => boolean,
  step: (name: string, i: number) => Promise<unknown>,
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let i = 0; i === 0 || !isDone() && breaches.length < BREACHES_MAX; i++) {
      await step(`${client}-${i}`, client + i);
    }
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
 * Clients race for faults of requests, of the provider and of deliveries. Each fault that is used
 * up is declared again. At the end the faults have happened exactly as often as they were declared.
 */
async function playFaults(part: Part): Promise<string> {
  const { stage: { sql }, client, sandbox: { key, environment_id }, send, breaches } = part;
  const url = serveHooks(part.stage, async (request) => await request.body?.cancel());
  await client.addEndpoint(key, { url, events: ["payment.created"] });
  const declared: Record<string, number> = {};
  const open = new Map<string, string>();
  let [payments, is_empty] = [0, false];
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
  await Promise.all([
    (async () => {
      for (let i = 0; !part.isOver(); i++) await declareAll(i);
      const left = () =>
        sql`select from pay.faults where environment_id = ${environment_id} and times_left > 0`;
      await untilNone("every fault has happened", left);
    })().finally(() => is_empty = true),
    repeat(part, RACERS, () => is_empty, async (name) => {
      const body = { amount: 100, currency: "EUR", outcome: "success" };
      await send(`${V1}/payments`, { body, key: `fault-${name}` });
      payments++;
    }),
  ]);
  const [happened] = await sql<Record<string, number>[]>`
    select count(*)::int as payments, count(*) filter (where status = 'declined')::int as declined,
      (select count(*) from pay.webhook_deliveries d where d.environment_id = ${environment_id}
        and d.fault = 'drop_until_recovered')::int as drop_until_recovered
    from pay.payments where environment_id = ${environment_id}`;
  const { server_error_before, server_error_after, ...counted } = declared;
  const expected = { payments, ...counted };
  breaches.push(...differences("number", Object.entries(happened!), Object.entries(expected)));
  for (const [fault, times] of Object.entries({ server_error_before, server_error_after })) {
    // A kill can take the response of a request that has a fault.
    const shown = client.faults[fault] ?? 0;
    if (shown > times! || shown < times! - client.repeated) {
      breaches.push(`faults ${fault}: ${shown} responses, ${times} declared`);
    }
  }
  return `${sumOf(Object.values(declared), (times) => times)} declared faults in ` +
    `${payments} payments`;
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
async function playInbox(part: Part): Promise<string> {
  const { stage, client, sandbox, send, breaches } = part;
  const inbox = await client.addEndpoint(sandbox.key, { delivery: "inbox" });
  const arrived = new Map<string, { payment: string; sequence: number }>();
  const acknowledged = new Set<string>();
  let [reads, has_all] = [0, false];
  const read = async () => {
    let [after, page]: [string | null, string[]] = [null, []];
    while (!has_all) {
      const query = `limit=20&wait=1${after === null ? "" : `&after=${after}`}`;
      const path = `${V1}/webhook_endpoints/${inbox.id}/inbox?${query}`;
      const response = await send(path);
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
  await repeat(
    part,
    CLIENTS,
    part.isOver,
    (name) => send(`${SANDBOX}/payments`, { body: COMPLETED, key: `inbox-${name}` }),
  );
  const events = await stage.sql<{ id: string }[]>`
    select id from pay.events where environment_id = ${sandbox.environment_id}`;
  await within(ARRIVAL_MS, () => Promise.resolve(arrived.size >= events.length));
  has_all = true;
  await reading;
  const ids = [...arrived.keys()].map((id) => [id] as const);
  breaches.push(...differences("event", events.map(({ id }) => [id]), ids));
  const last = new Map<string, number>();
  for (const [id, { payment, sequence }] of arrived) {
    if (sequence !== (last.get(payment) ?? 0) + 1) breaches.push(`${id} is out of order`);
    last.set(payment, sequence);
  }
  return `${arrived.size} events in ${reads} reads of an inbox`;
}

/**
 * Each disputed payment gets winning evidence, losing evidence, an acceptance and an advance at the
 * same time. Its dispute has ended, and the invariants find a second end.
 */
async function playDisputes(part: Part): Promise<string> {
  const { send, breaches } = part;
  let disputes = 0;
  await repeat(part, CLIENTS, part.isOver, async (client) => {
    const name = `dispute-${client}`;
    const { body: payment } = await send(`${V1}/payments`, { body: DISPUTED, key: name });
    const { body: list } = await send(`${V1}/disputes?payment_id=${payment.id}`);
    const id = list.data?.[0]?.id;
    if (id === undefined) return breaches.push(`${name} has no dispute`);
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
  });
  return `${disputes} disputes`;
}

/**
 * Clients make disposable sandboxes, pay in them and delete some. Each key makes one sandbox, which
 * has its own payments and no others. The deleted ones leave nothing.
 */
async function playDisposables(part: Part): Promise<string> {
  const { stage: { sql }, client, send, breaches } = part;
  const kept = new Map<string, string>();
  const deleted: string[] = [];
  await repeat(part, CLIENTS, part.isOver, async (client_name, i) => {
    const name = `sandbox-${client_name}`;
    const made = await send(SANDBOXES, { body: {}, key: name });
    if (made.status !== 201) return breaches.push(`${name}: ${made.status}`);
    const { id, test_key } = made.body;
    const payment = { body: COMPLETED, key: "payment" };
    const paid = await client.send(test_key, `${SANDBOX}/payments`, payment);
    const list = await client.send(test_key, `${V1}/payments`);
    const ids = list.status === 200 ? list.body.data.map(({ id }: { id: string }) => id) : [];
    const is_own = paid.status === 201 && ids.length === 1 && ids[0] === paid.body.id;
    if (!is_own) return breaches.push(`${id} has other payments`);
    if (i % 2 === 0) return kept.set(id, paid.body.id);
    const gone = await send(`${SANDBOXES}/${id}`, { method: "DELETE", key: `${name}-delete` });
    if (gone.status !== 200) breaches.push(`${id} is not deleted: ${gone.status}`);
    const late = await client.send(test_key, `${V1}/payments`);
    if (late.status !== 401) breaches.push(`the key of ${id} still opens it`);
    deleted.push(id);
  });
  // A purge leaves out an environment that a server purges.
  await untilNone("the deleted sandboxes are purged", async () => {
    await sql`select pay.purge()`;
    return await sql`
      select from pay.environments where public_id = any(${deleted}::text[]) limit 1`;
  }).catch((error) => breaches.push(error.message));
  const rows = await sql<{ row: [id: string, payment: string | null] }[]>`
    select json_build_array(e.public_id, p.id) as row from pay.environments e
    left join pay.payments p on p.environment_id = e.id where e.ends_at is not null`;
  breaches.push(...differences("payment", rows.map(({ row }) => row), kept));
  return `${kept.size + deleted.length} disposable sandboxes`;
}

const PAYERS = 2;
/** Between two payments of a client, so that an advance that waits for a kill gets few more. */
const PAUSE_MS = 100;
/** After these days every payment has ended, and none is old enough for retention. */
const LAST_DAYS = 8;
const DAY_S = 86_400;
/** Payments that end by themselves: one fails after a day, one is cancelled after seven. */
const ENDING = [
  { card: { token: "pm_card_authenticationRequired" } },
  { card: { token: "pm_card_visa" }, capture: "manual" },
];

/**
 * Clients make payments that end by themselves, and the clock of their sandbox advances day by day.
 * Every advance has happened once, every payment has ended at its own time, and the inbox has the
 * events in the order of time.
 */
async function playClock(part: Part): Promise<string> {
  const { stage: { sql }, client, sandbox: { key, environment_id }, send, breaches } = part;
  await client.addEndpoint(key, { delivery: "inbox" });
  const begun = await send(CLOCK, { body: { mode: "frozen" }, key: "begin" });
  const begin_ms = Date.parse(begun.body.now);
  let [payments, days, is_done] = [0, 0, false];
  const advance = async (by_days: number) => {
    days += by_days;
    const { status, text } = await client.advanceClock(key, by_days * DAY_S);
    if (status !== 200) breaches.push(`an advance: ${status} ${text}`);
  };
  await Promise.all([
    repeat(part, PAYERS, () => is_done, async (name, i) => {
      const body = { amount: 100, currency: "EUR", ...ENDING[i % ENDING.length] };
      const { status } = await send(`${V1}/payments`, { body, key: `clock-${name}` });
      if (status === 201) payments++;
      else breaches.push(`a payment: ${status}`);
      await pause(PAUSE_MS);
    }),
    (async () => {
      while (!part.isOver()) await advance(1);
      is_done = true;
    })(),
  ]);
  await advance(LAST_DAYS);
  const { now } = (await send(CLOCK)).body;
  const expected = new Date(begin_ms + days * DAY_S * 1_000).toISOString();
  if (now !== expected) breaches.push(`now is ${now}, not ${expected}`);
  const wrong = await sql<{ id: string; fault: string }[]>`
    select id, 'has not ended at its own time, and is ' || status as fault from pay.payments
    where environment_id = ${environment_id} and (status, updated_at - created_at) not in (
      ('failed', interval '1 day'), ('cancelled', interval '7 days'))
    union all
    select id, 'comes late in the inbox' from (
      select v.id, v.created_at < lag(v.created_at) over (order by i.position) as is_late
      from pay.inbox_entries i
      join pay.webhook_deliveries d
        on d.environment_id = i.environment_id and d.id = i.delivery_id
      join pay.events v on v.environment_id = d.environment_id and v.id = d.event_id
      where i.environment_id = ${environment_id}
    ) o where o.is_late`;
  for (const { id, fault } of wrong) breaches.push(`${id} ${fault}`);
  return `${payments} payments through ${days} days of a clock`;
}
