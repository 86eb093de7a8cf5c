/**
 * R2 and R3 without faults: many twins of each key are sent at once, to two servers, and some of them
 * ask for another amount. Whoever comes first makes the payment; its like are answered with the same
 * bytes, the others are told of the conflict.
 */

import { checkBooks } from "../scripts/operator/check_books.ts";
import { type ApiAnswer, callApi, SANDBOX_PAYMENTS } from "./api_call.ts";
import type { Verdict } from "./evidence.ts";
import { untilWell } from "./main_run.ts";
import type { Stage } from "./stage.ts";

const TWINS = 100;
/** One twin in so many asks for the other amount. */
const ONE_DIFFERS_IN = 10;
const AMOUNTS = [100, 101] as const;
const MOST_TRIES = 20;
/** Keys that are under way at once. */
const AT_ONCE = 2;

/** Runs it. */
export async function runTwins(stage: Stage, keys: number): Promise<Verdict[]> {
  const servers = await Promise.all([stage.startServer(), stage.startServer()]);
  await Promise.all(servers.map(untilWell));
  const { text } = await stage.makeSandbox("twins");
  const ids = new Set<string>();
  const [unequal, undetected]: [string[], string[]] = [[], []];
  let [next, waited, conflicts] = [0, 0, 0];
  const ask = async (key: string, twin: number, amount: number): Promise<ApiAnswer> => {
    const body = { amount_minor: amount, currency: "EUR", outcome: "success" };
    for (let tries = 1;; tries++, waited++) {
      const { base_url } = servers[twin % servers.length]!;
      const answer = await callApi(base_url, text, SANDBOX_PAYMENTS, { body, key });
      const is_early = answer.body.error?.code === "idempotency_in_progress";
      if (!is_early || tries === MOST_TRIES) return answer;
    }
  };
  const race = async (key: string) => {
    const amounts = Array.from(
      { length: TWINS },
      (_, i) => AMOUNTS[i % ONE_DIFFERS_IN === ONE_DIFFERS_IN - 1 ? 1 : 0],
    );
    const answers = await Promise.all(amounts.map((amount, twin) => ask(key, twin, amount)));
    const firsts = answers.filter(({ status, headers }) =>
      status === 201 && !headers.has("Idempotent-Replayed")
    );
    if (firsts.length !== 1) {
      unequal.push(`${key}: ${firsts.length} firsts of ${answers.map(({ status }) => status)}`);
      return;
    }
    const [{ text: made, body }] = firsts as [ApiAnswer];
    ids.add(body.id);
    for (const [twin, answer] of answers.entries()) {
      const is_like = amounts[twin] === body.amount_minor;
      if (is_like && (answer.status !== 201 || answer.text !== made)) {
        unequal.push(`${key}: a twin was answered ${answer.status} ${answer.text}`);
      }
      if (is_like) continue;
      conflicts++;
      const is_told = answer.status === 409 && answer.body.error.code === "idempotency_conflict";
      if (!is_told) undetected.push(`${key}, another amount: ${answer.status}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (next < keys) await race(`twins-${next++}`);
  }));
  const [row] = await stage.sql<{ payments: number }[]>`
    select count(*)::int as payments from pay.payments`;
  if (row!.payments !== keys || ids.size !== keys) {
    unequal.push(`${row!.payments} payments for ${keys} keys, answered with ${ids.size} ids`);
  }
  for (const { findings, oracle, examples } of await checkBooks(stage.sql)) {
    if (findings > 0) unequal.push(`${oracle}: ${examples[0]}`);
  }
  return [
    {
      promise: "R2",
      says: `${keys} keys, ${TWINS} twins of each at once: ${row!.payments} payments, ` +
        `${waited} twins told to wait`,
      findings: unequal,
    },
    { promise: "R3", says: `${conflicts} twins with another amount`, findings: undetected },
  ];
}
