/**
 * R15, disputes: each disputed payment gets winning evidence, losing evidence, an acceptance and an
 * advance at the same time. Its dispute has ended exactly once.
 */

import { type PlayReport, type SandboxPlay, untilDone } from "./sandbox_client.ts";

const CLIENTS = 3;
const V1 = "/api-v1-payments/v1";
const DISPUTED_CARD = { token: "pm_card_createDispute" };

/** Disputes payments until the kills are over. */
export async function playDisputes(
  { stage, client, sandbox, isOver }: SandboxPlay,
): Promise<PlayReport> {
  const breaches: string[] = [];
  let disputes = 0;
  await untilDone(CLIENTS, async (number, i) => {
    const name = `dispute-${number}-${i}`;
    const paid = await client.send(sandbox, `${V1}/payments`, {
      body: { amount: 100, currency: "EUR", card: DISPUTED_CARD },
      key: name,
    });
    const list = await client.send(sandbox, `${V1}/disputes?payment_id=${paid?.body.id}`);
    const id = list?.body.data?.[0]?.id;
    if (id === undefined) return breaches.push(`${name} has no dispute`) < 10;
    const moves = [
      [`${V1}/disputes/${id}/evidence`, { text: "winning_evidence" }],
      [`${V1}/disputes/${id}/evidence`, { text: "losing_evidence" }],
      [`${V1}/disputes/${id}/accept`, {}],
      [`/api-v1-sandbox/payments/${paid!.body.id}/advance`, { to: "completed" }],
    ] as const;
    const responses = await Promise.all(
      moves.map(([path, body], j) => client.send(sandbox, path, { body, key: `${name}-${j}` })),
    );
    const ended = responses.filter((response) => response?.status === 200);
    disputes++;
    // A win makes the payment completed, so an advance to that status changes nothing and is 200.
    if (ended.length === 0 || ended.length > 2) {
      breaches.push(`${id} has ended ${ended.length} times`);
    }
    return !isOver();
  });
  const wrong = await stage.sql<{ subject_id: string; ends: number }[]>`
    select v.subject_id,
      count(*) filter (where v.type in ('dispute.won', 'dispute.lost'))::int as ends
    from pay.events v join pay.environments e on e.id = v.environment_id
    where e.public_id = ${sandbox.environment_id}
    group by v.subject_id
    having count(*) filter (where v.type in ('dispute.won', 'dispute.lost')) <> 1`;
  for (const { subject_id, ends } of wrong) breaches.push(`${subject_id} has ${ends} ends`);
  return { says: `${disputes} disputes`, breaches };
}
