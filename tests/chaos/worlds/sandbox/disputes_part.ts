/**
 * R15, disputes: each disputed payment gets winning evidence, losing evidence, an acceptance and an
 * advance at the same time. Its dispute has ended exactly once.
 */

import { SANDBOX, V1 } from "../../harness/client.ts";
import { type Part, type PartReport, untilDone } from "./part.ts";

const CLIENTS = 3;
const DISPUTED = { amount: 100, currency: "EUR", card: { token: "pm_card_createDispute" } };

/** Disputes payments until the kills are over. */
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
