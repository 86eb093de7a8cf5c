/**
 * R15, disposable sandboxes: clients make sandboxes, pay in them and delete some. Each key makes one
 * sandbox, which has its own payments and no others. The deleted ones leave nothing.
 */

import { SANDBOX_PAYMENTS } from "./api_call.ts";
import { until } from "../support/common/until.ts";
import { type PlayReport, type SandboxPlay, untilDone } from "./sandbox_client.ts";

const CLIENTS = 3;
const SANDBOXES = "/api-v1-sandbox/sandboxes";

/** Makes and deletes sandboxes until the kills are over. */
export async function playDisposables(
  { stage, client, sandbox, isOver }: SandboxPlay,
): Promise<PlayReport> {
  const breaches: string[] = [];
  /** The payments of the sandboxes that are not deleted. */
  const kept = new Map<string, string>();
  const deleted: string[] = [];
  await untilDone(CLIENTS, async (number, i) => {
    const name = `sandbox-${number}-${i}`;
    const made = await client.send(sandbox, SANDBOXES, { body: {}, key: name });
    if (made?.status !== 201) return breaches.push(`${name}: ${made?.status}`) < 10;
    const { id, test_key: text } = made.body;
    const paid = await client.send({ text }, SANDBOX_PAYMENTS, {
      body: { amount_minor: 100, currency: "EUR", outcome: "success" },
      key: "payment",
    });
    const list = await client.send({ text }, "/api-v1-payments/v1/payments");
    const ids = list?.body.data?.map(({ id }: { id: string }) => id);
    if (ids?.length !== 1 || ids[0] !== paid?.body.id) breaches.push(`${id} has other payments`);
    if (i % 2 === 0) {
      kept.set(id, paid?.body.id);
    } else {
      const gone = await client.send(sandbox, `${SANDBOXES}/${id}`, {
        method: "DELETE",
        key: `${name}-delete`,
      });
      if (gone?.status !== 200) breaches.push(`${id} is not deleted: ${gone?.status}`);
      const late = await client.send({ text }, "/api-v1-payments/v1/payments");
      if (late?.status !== 401) breaches.push(`the key of ${id} still opens it`);
      deleted.push(id);
    }
    return !isOver();
  });
  // A purge leaves out an environment that a server purges.
  await until("the deleted sandboxes are purged", async () => {
    await stage.sql`select pay.purge()`;
    const [left] = await stage.sql`
      select from pay.environments where public_id = any(${deleted}::text[]) limit 1`;
    return left === undefined;
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
  return { says: `${rows.length + deleted.length} disposable sandboxes`, breaches };
}
