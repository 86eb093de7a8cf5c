/**
 * A row with which the statement of a loop fails: the dispatcher, inboxes and their readers give it
 * up, log it, and serve all others.
 */

import assert from "node:assert/strict";
import { poison, POISON_CODE, poisonFunction } from "../support/database/poison.ts";
import type { TestService } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import { addEndpoint, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

/** The faults in the log of the dispatcher. */
function faults({ logs }: TestService): (string | undefined)[] {
  return logs.filter(({ route }) => route === "dispatcher").map(({ fault }) => fault);
}

/** The statuses of the deliveries to an endpoint. */
async function statuses({ sql }: TestService, endpoint_id: string): Promise<string[]> {
  const rows = await sql`select status from pay.webhook_deliveries
    where endpoint_id = ${endpoint_id} order by id`;
  return rows.map(({ status }) => status);
}

webhookCase("a result that cannot be recorded holds up no other", async (t, service, hooks) => {
  const bad = await addEndpoint(service, hooks.url("/bad"));
  const key = service.other.text;
  const good = await addEndpoint(service, hooks.url("/good"), {}, { key });
  const end = await poison(service.sql, {
    table: "webhook_deliveries",
    on: "update",
    when: `new.endpoint_id = '${bad.id}' and cardinality(new.attempts) > cardinality(old.attempts)`,
  });
  await t.step("beside others in a list, and alone", async () => {
    for (let i = 1; i <= 3; i++) {
      await service.make({ outcome: "success" });
      await service.make({ outcome: "success" }, { key });
      await until(`round ${i}: the others are recorded`, async () => {
        await settle(service);
        const delivered = await statuses(service, good.id);
        return delivered.length === 2 * i && delivered.every((status) => status === "delivered");
      });
    }
    await settle(service);
    const given_up = faults(service).filter((fault) => fault?.startsWith("GivenUp delivery whd_"));
    assert.ok(given_up.length >= 3, `${faults(service)}`);
    assert.ok(given_up.every((fault) => fault!.includes(POISON_CODE)));
    assert.equal(hooks.at("/good").length, 6);
  });
  await t.step("its lease ends, and it is sent again as a poison delivery", async () => {
    await end();
    await service.setClock(Date.now() + 30_000);
    await until("all are recorded", async () => {
      await settle(service);
      return (await statuses(service, bad.id)).every((status) => status === "delivered");
    });
  });
});

webhookCase("an endpoint that cannot be leased holds up no other", async (t, service, hooks) => {
  const bad = await addEndpoint(service, hooks.url("/bad"));
  const key = service.other.text;
  const good = await addEndpoint(service, hooks.url("/good"), {}, { key });
  const end = await poison(service.sql, {
    table: "webhook_deliveries",
    on: "update",
    when: `new.endpoint_id = '${bad.id}' and new.leased_until is distinct from old.leased_until`,
  });
  const round = async (expected: number) => {
    await service.make({ outcome: "success" });
    await service.make({ outcome: "success" }, { key });
    await until("the others have arrived", async () => {
      await settle(service);
      return hooks.at("/good").length === expected;
    });
  };
  await t.step("the others are delivered, and the log names it once", async () => {
    await round(2);
    await round(4);
    assert.deepEqual(
      faults(service).filter((fault) => fault?.includes(bad.id)).map((fault) =>
        fault!.split(" ").slice(0, 4)
      ),
      [["GivenUp", "endpoint", bad.id, POISON_CODE]],
    );
    assert.deepEqual(await statuses(service, good.id), Array(4).fill("delivered"));
    assert.deepEqual(hooks.at("/bad"), []);
  });
  await t.step("it is tried again after ten minutes, without losing an event", async () => {
    await end();
    await service.setClock(Date.now() + 10 * 60_000 + 1_000);
    await until("its deliveries have arrived", async () => {
      await settle(service);
      return hooks.at("/bad").length === 4;
    });
  });
});

webhookCase("an inbox that cannot be filled holds up no other", async (_, service, hooks) => {
  const bad = await addInbox(service);
  const key = service.other.text;
  const good = await addInbox(service, {}, { key });
  await addEndpoint(service, hooks.url("/good"), {}, { key });
  await poison(service.sql, {
    table: "inbox_entries",
    on: "insert",
    when: `new.endpoint_id = '${bad.id}'`,
  });
  await service.make({ outcome: "pending" });
  await service.make({ outcome: "pending" }, { key });
  await until("the dispatcher has filled the other and sent", async () => {
    await settle(service);
    return hooks.at("/good").length === 1 &&
      (await statuses(service, good.id)).every((status) => status === "available");
  });
  assert.deepEqual(typesIn((await readInbox(service, good.id, "", { key })).body), [
    "payment.created",
  ]);
  assert.ok(faults(service).some((fault) => fault?.startsWith(`GivenUp endpoint ${bad.id}`)));
});

webhookCase("a reader that cannot be looked up holds up no other", async (_, service) => {
  const bad = await addInbox(service);
  const key = service.other.text;
  const good = await addInbox(service, {}, { key });
  const { readers } = service.deps.webhooks!.inboxes;
  const reads = [
    readInbox(service, bad.id, "wait=4"),
    readInbox(service, good.id, "wait=20", { key }),
  ];
  await until("both wait", () => readers.size === 2);
  await poisonFunction(service.sql, {
    name: "is_held_back",
    when: `p_delivery.endpoint_id = '${bad.id}'`,
  });
  // Not due, so the poll has to find out whether a fault holds it back.
  await service.sql.unsafe(`
    create function pay.test_later() returns trigger language plpgsql as $$
    begin new.next_attempt_at := now() + interval '1 hour'; return new; end $$;
    create trigger test_later before insert on pay.webhook_deliveries
      for each row when (new.endpoint_id = '${bad.id}') execute function pay.test_later()`);
  await service.make({ outcome: "pending" });
  const began = performance.now();
  await service.make({ outcome: "pending" }, { key });
  assert.deepEqual(typesIn((await reads[1]!).body), ["payment.created"]);
  assert.ok(performance.now() - began < 3_000);
  await reads[0];
  assert.ok(faults(service).some((fault) => fault?.startsWith(`GivenUp reader of ${bad.id}`)));
});
