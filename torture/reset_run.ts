/**
 * R9: resets under load. Clients reset one sandbox repeatedly, while other clients make payments and
 * transfers in it and in its neighbour. The neighbour must lose nothing. In the reset sandbox each
 * payment must be complete or gone, and retention must delete all of its rows.
 */

import { checkBooks } from "../scripts/operator/check_books.ts";
import { addEndpoint, callApi, SANDBOX_PAYMENTS } from "./api_call.ts";
import type { Verdict } from "./evidence.ts";
import { requestOf } from "./request.ts";
import type { SandboxKey } from "./sandbox.ts";
import { type Stage, untilWell } from "./stage.ts";

const CLIENTS = 6;
const RESETTERS = 2;
const OUTCOMES = ["success", "refunded", "chargeback", "declined", "pending"];
/** An amount that the balance of the neighbour always has. */
const TRANSFER_AMOUNT = 10;
/** The tables that a reset empties. Keys and endpoints stay. */
const TABLES = [
  "payments",
  "refunds",
  "transfers",
  "events",
  "ledger_movements",
  "webhook_deliveries",
];
/** Sums of the movements. A reset deletes them too. */
const SUMS = ["ledger_totals"];

/** Resets this many times and judges both sandboxes. */
export async function runResets(stage: Stage, resets: number): Promise<Verdict[]> {
  const servers = await Promise.all([stage.startServer(), stage.startServer()]);
  await Promise.all(servers.map(untilWell));
  const [emptied, neighbour] = [await stage.makeSandbox("a"), await stage.makeSandbox("b")];
  const findings: string[] = [];
  const made: string[] = [];
  let [is_over, in_emptied, done] = [false, 0, 0];
  const urls = servers.map(({ base_url }) => base_url);
  const receiver = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      await request.body?.cancel();
      return new Response(null, { status: 204 });
    },
  );
  stage.atEnd(() => receiver.shutdown());
  for (const { text } of [emptied, neighbour]) {
    await addEndpoint(urls[0]!, text, `http://127.0.0.1:${receiver.addr.port}/`, ["*"]);
  }
  const pay = async (sandbox: SandboxKey, client: number, i: number) => {
    const body = { amount_minor: 100, currency: "EUR", outcome: OUTCOMES[i % OUTCOMES.length] };
    const answer = await callApi(urls[client % 2]!, sandbox.text, SANDBOX_PAYMENTS, {
      body,
      key: `reset-${client}-${i}`,
    });
    if (answer.status !== 201) findings.push(`a payment: ${JSON.stringify(answer.body)}`);
    return answer.body.id;
  };
  /** In the reset sandbox the balance may be too low for a transfer. */
  const transfer = async (sandbox: SandboxKey, client: number, i: number) => {
    const { path, body } = requestOf({
      do: "transfer",
      amount: TRANSFER_AMOUNT,
      currency: "EUR",
      destination: "approved",
      is_manual: i % 2 === 0,
    }, "none");
    const key = `transfer-${client}-${i}`;
    const answer = await callApi(urls[client % 2]!, sandbox.text, path, { body, key });
    const is_right = answer.status === 201 || (answer.status === 402 && sandbox === emptied);
    if (!is_right) findings.push(`a transfer: ${JSON.stringify(answer.body)}`);
    return answer.body.id;
  };
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let i = 0; !is_over; i++) {
      const is_transfer = i % OUTCOMES.length === 1;
      if (client % 2 === 0) {
        made.push(await pay(neighbour, client, i));
        if (is_transfer) made.push(await transfer(neighbour, client, i));
      } else {
        await pay(emptied, client, i);
        if (is_transfer) await transfer(emptied, client, i);
        in_emptied++;
      }
    }
  });
  const resetOnce = async (i: number) => {
    const answer = await callApi(urls[i % 2]!, emptied.text, "/api-v1-sandbox/reset", { body: {} });
    if (answer.status !== 200) findings.push(`a reset: ${JSON.stringify(answer.body)}`);
  };
  await Promise.all(Array.from({ length: RESETTERS }, async () => {
    while (done < resets) await resetOnce(done++);
  }));
  is_over = true;
  await Promise.all(clients);

  for (const { findings: found, oracle, examples } of await checkBooks(stage.sql)) {
    if (found > 0) findings.push(`${oracle}: ${examples[0]}`);
  }
  const rows = await stage.sql<{ id: string }[]>`
    select id from pay.payments where environment_id = ${neighbour.environment_id}
    union all
    select id from pay.transfers where environment_id = ${neighbour.environment_id}`;
  const there = new Set(rows.map(({ id }) => id));
  const lost = made.filter((id) => !there.has(id)).length;
  if (lost > 0) findings.push(`the neighbour lost ${lost} payments or transfers`);
  // The last reset must find rows in every table.
  for (let i = 0; i < OUTCOMES.length; i++) await pay(emptied, CLIENTS, i);
  for (let i = 0; i < 2; i++) await transfer(emptied, CLIENTS, i);
  for (const [table, rows] of await countRows(stage, emptied, TABLES)) {
    if (rows === 0) findings.push(`${table} has no rows before the last reset`);
  }
  const neighbours = await countRows(stage, neighbour, TABLES);
  await resetOnce(0);
  for (const [table, rows] of await countRows(stage, emptied, [...TABLES, ...SUMS])) {
    if (rows > 0) findings.push(`${rows} rows are left in ${table}`);
  }
  for (const left of await purgeRetired(stage)) findings.push(`retention left ${left}`);
  for (const [table, rows] of await countRows(stage, neighbour, TABLES)) {
    const before = neighbours.get(table);
    if (rows !== before) findings.push(`the neighbour's ${table} had ${before} rows, has ${rows}`);
  }
  return [{
    promise: "R9",
    says: `${resets} resets, ${in_emptied} payments in the sandbox at the same time, ` +
      `${made.length} payments and transfers in its neighbour, ${lost} of those lost`,
    findings,
  }];
}

/** Runs retention until it finds nothing; returns the remaining rows of reset sandboxes. */
async function purgeRetired({ sql }: Stage): Promise<string[]> {
  for (let rows = -1; rows !== 0;) {
    const [purged] = await sql`select pay.purge()::int as rows`;
    rows = purged!.rows;
  }
  const left: string[] = [];
  for (const table of [...TABLES, ...SUMS, "idempotency_keys", "rate_counters"]) {
    const [row] = await sql.unsafe(
      `select count(*)::int as rows from pay.${table} where environment_id not in (
         select id from pay.environments where retired_at is null
       )`,
    );
    if (row!.rows > 0) left.push(`${row!.rows} rows of ${table}`);
  }
  const environments = await sql`select from pay.environments where retired_at is not null`;
  if (environments.length > 0) left.push(`${environments.length} environments`);
  return left;
}

/** Counts the rows of a sandbox in each table. */
async function countRows(
  { sql }: Stage,
  { environment_id }: SandboxKey,
  tables: readonly string[],
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const table of tables) {
    const [row] = await sql.unsafe(
      `select count(*)::int as rows from pay.${table} t
       join pay.environments e on e.id = t.environment_id and e.retired_at is null
       where e.public_id = $1`,
      [environment_id],
    );
    counts.set(table, row!.rows);
  }
  return counts;
}
