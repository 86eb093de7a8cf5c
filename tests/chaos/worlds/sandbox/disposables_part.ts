/**
 * R15, disposable sandboxes: clients make sandboxes, pay in them and delete some. Each key makes one
 * sandbox, which has its own payments and no others. The deleted ones leave nothing.
 */

import { COMPLETED, SANDBOX, V1 } from "../../harness/client.ts";
import { untilNone } from "../../harness/time.ts";
import { type Part, type PartReport, untilDone } from "./part.ts";

const CLIENTS = 3;
const SANDBOXES = `${SANDBOX}/sandboxes`;

/** Makes and deletes sandboxes until the kills are over. */
export async function playDisposables({ stage, client, send, isOver }: Part) {
  const breaches: string[] = [];
  /** The payments of the sandboxes that are not deleted. */
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
