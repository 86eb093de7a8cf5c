/**
 * R9: resets under load. One sandbox is emptied again and again while payments are made in it, and in
 * its neighbour. The neighbour loses nothing, what is made is whole or gone, and an emptied sandbox is
 * empty.
 */

import { checkBooks } from "../scripts/check_books.ts";
import { callApi, SANDBOX_PAYMENTS } from "./api_call.ts";
import type { Verdict } from "./audit.ts";
import { untilWell } from "./main_run.ts";
import type { Stage } from "./stage.ts";

const CLIENTS = 6;
const RESETTERS = 2;
const OUTCOMES = ["success", "refunded", "chargeback", "declined", "pending"];
/** What a reset empties; keys and endpoints stay. */
const TABLES = [
  "payments",
  "refunds",
  "transfers",
  "events",
  "ledger_entries",
  "ledger_transactions",
  "ledger_deltas",
  "ledger_totals",
  "webhook_deliveries",
];

/** Runs it. */
export async function runResets(stage: Stage, resets: number): Promise<Verdict[]> {
  const servers = await Promise.all([stage.startServer(), stage.startServer()]);
  await Promise.all(servers.map(untilWell));
  const [emptied, neighbour] = [await stage.makeSandbox("a"), await stage.makeSandbox("b")];
  const findings: string[] = [];
  const made: string[] = [];
  let [is_over, in_emptied, done] = [false, 0, 0];
  const urls = servers.map(({ base_url }) => base_url);
  const pay = async (sandbox: { text: string }, client: number, i: number) => {
    const body = { amount_minor: 100, currency: "EUR", outcome: OUTCOMES[i % OUTCOMES.length] };
    const answer = await callApi(urls[client % 2]!, sandbox.text, SANDBOX_PAYMENTS, {
      body,
      key: `reset-${client}-${i}`,
    });
    if (answer.status !== 201) findings.push(`a payment: ${JSON.stringify(answer.body)}`);
    return answer.body.id;
  };
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let i = 0; !is_over; i++) {
      if (client % 2 === 0) made.push(await pay(neighbour, client, i));
      else {
        await pay(emptied, client, i);
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
    select id from pay.payments where environment_id = ${neighbour.environment_id}`;
  const there = new Set(rows.map(({ id }) => id));
  const lost = made.filter((id) => !there.has(id)).length;
  if (lost > 0) findings.push(`the neighbour has lost ${lost} payments`);
  await resetOnce(0);
  for (const table of TABLES) {
    const [left] = await stage.sql.unsafe(
      `select count(*)::int as rows from pay.${table} where environment_id = $1`,
      [emptied.environment_id],
    );
    if (left!.rows > 0) findings.push(`${left!.rows} rows are left in ${table}`);
  }
  return [{
    promise: "R9",
    says: `${resets} resets, ${in_emptied} payments made beside them in the sandbox, ` +
      `${made.length} in its neighbour, ${lost} of those lost`,
    findings,
  }];
}
