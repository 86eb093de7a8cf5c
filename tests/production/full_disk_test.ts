/**
 * The disk of the database fills up, first that of its rows, then that of its write-ahead log:
 * requests get 503, and nothing that was acknowledged is lost.
 */

import assert from "node:assert/strict";
import { openCell } from "../support/cells/cell_servers.ts";
import { can_mount, mountSmallDisk } from "../support/common/small_disk.ts";
import { until } from "../support/common/until.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

const MIB = 2 ** 20;
const BUYERS = 4;
/** More creates than the free space of the pages of the tables takes. */
const CREATES = 4_000;

Deno.test({
  name: "a full disk loses nothing that was acknowledged",
  ignore: !can_mount,
  fn: async (t) => {
    await using open = new AsyncDisposableStack();
    const [data, wal] = await Promise.all([mountSmallDisk(384 * MIB), mountSmallDisk(256 * MIB)]);
    for (const disk of [data, wal]) open.defer(disk.close);
    const cell = await openCell(open, "a", { data: data.path, wal: wal.path });
    const receiver = open.use(openRecorder());
    const key = await cell.makeKey("acme", "sk");
    const send = (method: string, path: string, body?: unknown, idempotency_key?: string) =>
      keyedCall(`http://${cell.address}/functions/v1/api-v1-payments/v1`, method, `/${path}`, {
        ...{ key, body },
        ...(idempotency_key !== undefined && { idempotency_key }),
      });
    const made = await send("POST", "webhook_endpoints", {
      url: receiver.url("/hook"),
      events: ["payment.completed"],
    });
    assert.equal(made.status, 201);
    /** The payment of each idempotency key that was acknowledged. */
    const acknowledged = new Map<string, string>();
    const refused = new Set<string>();
    const pay = async (idempotency_key: string = crypto.randomUUID()): Promise<boolean> => {
      const { status, headers, body } = await send(
        "POST",
        "payments",
        { amount: 1999, currency: "EUR", outcome: "success", description: "x".repeat(500) },
        idempotency_key,
      );
      if (status === 201) {
        acknowledged.set(idempotency_key, body.id);
        refused.delete(idempotency_key);
        return true;
      }
      assert.deepEqual([status, body.error.code], [503, "service_unavailable"]);
      assert.equal(headers.get("Retry-After"), "1");
      refused.add(idempotency_key);
      return false;
    };
    const payUntilRefused = async () => {
      let left = CREATES;
      await Promise.all(Array.from({ length: BUYERS }, async () => {
        while (await pay()) assert.ok(--left > 0, "the disk is full, and every create succeeds");
      }));
    };
    /** Sends each refused request again, and each acknowledged one, which keeps its payment. */
    const sendAgain = async () => {
      const keys = [...refused];
      await until("the service is available again", () => pay(keys[0]));
      for (const each of keys) assert.ok(await pay(each));
      for (const [each, id] of [...acknowledged].slice(-100)) {
        assert.ok(await pay(each));
        assert.equal(acknowledged.get(each), id);
      }
      const stored = await cell.sql<{ id: string }[]>`select id from pay.payments order by id`;
      assert.deepEqual(stored.map(({ id }) => id), [...acknowledged.values()].sort());
      await until("every event is delivered", async () => {
        const rows = await cell.sql`
          select from pay.webhook_deliveries where status <> 'delivered' limit 1`;
        return rows.length === 0;
      });
      const arrived = new Set(receiver.arrivals.map(({ event }) => event.data.object.id));
      assert.deepEqual([...arrived].sort(), [...acknowledged.values()].sort());
      await assertSilent(cell.sql);
    };

    await Promise.all(Array.from({ length: 20 }, () => pay()));
    await t.step("the rows have no space", async () => {
      // During a checkpoint PostgreSQL would end.
      await cell.sql`checkpoint`;
      await data.fill();
      await payUntilRefused();
      const [id] = acknowledged.values();
      assert.equal((await send("GET", `payments/${id}`)).status, 200);
      await data.free();
      await sendAgain();
    });
    await t.step("the write-ahead log has none, so that PostgreSQL ends", async () => {
      await wal.fill();
      await payUntilRefused();
      await wal.free();
      await cell.restartDatabase();
      await sendAgain();
    });
  },
});
