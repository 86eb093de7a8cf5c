/**
 * The dispatcher at work: several at once, a stop, a database that is away, and rows with which its
 * statement fails. It gives such a row up, logs it, and serves all others. delivery_queue_test.ts
 * has the limits.
 */

import assert from "node:assert/strict";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { poison, POISON_CODE, poisonFunction } from "../support/database/poison.ts";
import { BASE_URL, MASTER_SECRET, type TestService } from "../support/service/service.ts";
import { card, PAYMENTS } from "../support/service/service_case.ts";
import { until } from "../support/common/until.ts";
import { AT } from "../support/webhook/dispatcher_polls.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import { addEndpoint, holdResponses, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { connect } from "../support/database/database.ts";

const MAX_OF_NEW = 4;
const EXCLUDED_MS = 10 * 60_000;

async function pay(service: TestService, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await service.make({ outcome: "pending" });
}

webhookCase("a lease that waited long for a slot is renewed", async (_, service, hooks) => {
  const { held, release } = holdResponses(hooks);
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/slow"));
  await pay(service, 8);
  await until("4 are in progress", () => held.length === MAX_OF_NEW);
  const leased = `webhook_deliveries where leased_until = '${new Date(AT + 25_000).toISOString()}'`;
  await until("all are leased", async () => await service.count(leased) === 8);
  // Too late to send the deliveries within their lease, so the dispatcher must renew it.
  await service.setClock(AT + 9_000);
  release(MAX_OF_NEW);
  await until("a slot is taken again", () => hooks.arrivals.length > MAX_OF_NEW);
  const newest = hooks.arrivals[MAX_OF_NEW]!;
  assert.equal(newest.headers.get("Webhook-Attempt"), "1");
  const [row] = await service.sql`select leased_until, attempt_count from pay.webhook_deliveries
    where event_id = ${newest.event.id}`;
  assert.deepEqual(row, { leased_until: new Date(AT + 34_000), attempt_count: 1 });
  hooks.judge = () => 200;
  release();
  await settle(service);
  assert.equal(hooks.arrivals.length, 8);
});

webhookCase("three dispatchers deliver each event once", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  const others = Array.from({ length: 2 }, () =>
    createDependencies({
      database_url: service.database.functions_url,
      base_url: BASE_URL,
      webhook_master_secret: MASTER_SECRET,
      allow_private_webhooks: true,
      log: () => {},
    }));
  try {
    await Promise.all(Array.from({ length: 80 }, async () => {
      await service.make({ outcome: "refunded" });
      await Promise.all(others.map((deps) => deps.webhooks!.dispatcher.notify()));
    }));
    await until("all have arrived", async () => {
      await Promise.all([service.deps, ...others].map((one) => one.webhooks!.dispatcher.notify()));
      return hooks.arrivals.length >= 400;
    }, 30_000);
    await settle(service);
    assert.equal(new Set(hooks.arrivals.map(({ event }) => event.id)).size, 400);
    assert.equal(hooks.arrivals.length, 400);
    const last = new Map<string, number>();
    for (const { event } of hooks.arrivals) {
      const subject = event.data.object.payment_id ?? event.data.object.id;
      assert.equal(event.sequence, (last.get(subject) ?? 0) + 1);
      last.set(subject, event.sequence);
    }
  } finally {
    await Promise.all(others.map((deps) => deps.close()));
  }
});

webhookCase("a retry comes when it is due, without a wake", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  hooks.judge = () => hooks.arrivals.length === 1 ? 500 : 200;
  await service.make({ outcome: "pending" });
  await until("the retry has arrived", () => hooks.arrivals.length === 2, 15_000);
  const [first, second] = hooks.arrivals;
  const wait_ms = second!.at - first!.at;
  assert.ok(wait_ms >= 4_500 && wait_ms < 7_000, `${wait_ms} ms`);
});

webhookCase("a late response comes when it is due, without a wake", async (_, service) => {
  const began = performance.now();
  const { body } = await service.pay(card("4000 0000 0000 0119"));
  assert.equal(body.status, "processing");
  await until("the payment is completed", async () => {
    const { status } = await service.get(`${PAYMENTS}/${body.id}`);
    return status === "completed";
  }, 10_000);
  const took_ms = performance.now() - began;
  assert.ok(took_ms >= 1_900 && took_ms < 4_000, `${took_ms} ms`);
});

webhookCase("Dispatcher.stop() loses no lease", async (t, service, hooks) => {
  const { held, release } = holdResponses(hooks);
  await addEndpoint(service, hooks.url("/"), { events: ["payment.created"] });
  await pay(service, 12);
  await until("some are in progress, and some wait for a slot", async () => {
    const leased = await service.count("webhook_deliveries where leased_until is not null");
    return held.length >= MAX_OF_NEW && leased > held.length;
  });
  await service.deps.webhooks!.dispatcher.stop(Promise.resolve());
  const assertGivenBack = async () => {
    const rows = await service.sql`
      select distinct status, attempt_count, leased_until, expired_leases,
        cardinality(attempts) as attempts
      from pay.webhook_deliveries`;
    assert.deepEqual([...rows], [
      { status: "pending", attempt_count: 0, leased_until: null, expired_leases: 0, attempts: 0 },
    ]);
  };
  await t.step("every lease is released, also of attempts in progress", assertGivenBack);
  await t.step("a late response changes nothing", async () => {
    release();
    await settle(service);
    await assertGivenBack();
  });
});

webhookCase("Dispatcher.stop() gives back the leases of its poll", async (_, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  hooks.judge = () => 503;
  await pay(service, 12);
  await settle(service);
  const work: Promise<void>[] = [];
  await service.sql.begin(async (sql) => {
    await sql`lock table pay.webhook_deliveries in access exclusive mode`;
    await sql`update pay.webhook_deliveries set next_attempt_at = created_at`;
    work.push(settle(service));
    await untilWaiting(service.sql, { calls: "poll_deliveries" });
    work.push(service.deps.webhooks!.dispatcher.stop(Promise.resolve()));
  });
  await Promise.all(work);
  const leased = await service.count("webhook_deliveries where leased_until is not null");
  assert.deepEqual([leased, hooks.arrivals.length], [0, 12]);
});

webhookCase("results wait for the database, without a busy loop", async (t, service, hooks) => {
  await addEndpoint(service, hooks.url("/"));
  const { held, release } = holdResponses(hooks);
  await service.make({ outcome: "pending" });
  await service.make({ outcome: "pending" });
  await until("both are in progress", () => held.length === 2);
  const { pathname } = new URL(service.database.url);
  const name = pathname.slice(1);
  const server = new URL(service.database.url);
  server.pathname = "/postgres";
  await using admin = connect(server.href);
  try {
    await admin`alter database ${admin(name)} allow_connections false`;
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
    const failed = () => service.logs.filter(({ route }) => route === "dispatcher").length;
    await t.step("a failed poll is repeated when an attempt ends", async () => {
      release(1);
      await until("a poll has failed", () => failed() > 0);
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setTimeout(resolve));
      assert.ok(failed() <= 3, `${failed()} polls have failed`);
      release(1);
      await settle(service);
      assert.ok(failed() <= 6, `${failed()} polls have failed`);
    });
    await admin`alter database ${admin(name)} allow_connections true`;
    await t.step("after its return the results are recorded, and nothing is resent", async () => {
      await until("both are recorded", async () => {
        await settle(service);
        const rows = await service.sql`select status from pay.webhook_deliveries`;
        return rows.every(({ status }) => status === "delivered");
      });
      assert.equal(hooks.arrivals.length, 2);
    });
  } finally {
    await admin`alter database ${admin(name)} allow_connections true`;
  }
});

/** The statuses of the deliveries to an endpoint. */
async function statuses({ sql }: TestService, endpoint_id: string): Promise<string[]> {
  const rows = await sql`select status from pay.webhook_deliveries
    where endpoint_id = ${endpoint_id} order by id`;
  return rows.map(({ status }) => status);
}

/**
 * Each row: a kind of endpoint, the statement that fails for it, the beginning of the log line, and
 * how long it takes until the dispatcher tries it again.
 */
const FAILING: [
  name: string,
  way: "url" | "inbox",
  poisoned: { table: string; on: "insert" | "update"; when: string },
  fault: RegExp,
  again_ms: number,
][] = [
  [
    "a result that cannot be recorded",
    "url",
    {
      table: "webhook_deliveries",
      on: "update",
      when: "cardinality(new.attempts) > cardinality(old.attempts)",
    },
    /^GivenUp delivery whd_/,
    30_000,
  ],
  [
    "an endpoint that cannot be leased",
    "url",
    {
      table: "webhook_deliveries",
      on: "update",
      when: "new.leased_until is distinct from old.leased_until",
    },
    /^GivenUp endpoint whe_/,
    EXCLUDED_MS + 1_000,
  ],
  [
    "an inbox that cannot be filled",
    "inbox",
    { table: "inbox_entries", on: "insert", when: "true" },
    /^GivenUp endpoint whe_/,
    EXCLUDED_MS + 1_000,
  ],
];

for (const [name, way, { when, ...poisoned }, fault, again_ms] of FAILING) {
  webhookCase(`${name} holds up no other`, async (_, service, hooks) => {
    const bad = way === "url"
      ? await addEndpoint(service, hooks.url("/bad"))
      : await addInbox(service);
    const key = service.other.text;
    const good = await addEndpoint(service, hooks.url("/good"), {}, { key });
    const filled = await addInbox(service, {}, { key });
    const end = await poison(service.sql, {
      ...poisoned,
      when: `new.endpoint_id = '${bad.id}' and ${when}`,
    });
    /** Whether all deliveries to an endpoint have a status. */
    const all = async (id: string, count: number, expected: string) => {
      const found = await statuses(service, id);
      return found.length === count && found.every((status) => status === expected);
    };
    for (const events of [2, 4]) {
      await service.make({ outcome: "success" });
      await service.make({ outcome: "success" }, { key });
      await until("the others are delivered", async () => {
        await settle(service);
        return await all(good.id, events, "delivered") &&
          await all(filled.id, events, "available");
      });
    }
    const faults = service.logs.filter(({ route }) => route === "dispatcher")
      .flatMap(({ fault }) => fault ?? []).filter((text) => fault.test(text));
    assert.ok(faults.length > 0 && faults.every((text) => text.includes(POISON_CODE)), `${faults}`);
    // An endpoint is left out after its first failed poll.
    if (again_ms > EXCLUDED_MS) assert.equal(faults.length, 1);
    assert.equal(hooks.at("/good").length, 4);
    await end();
    await service.setClock(Date.now() + again_ms);
    await until("it is tried again, and has lost no event", async () => {
      await settle(service);
      return await all(bad.id, 4, way === "url" ? "delivered" : "available");
    });
  });
}

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
  assert.ok(
    service.logs.some(({ fault }) =>
      fault?.startsWith("GivenUp reader of") && fault.includes(bad.id)
    ),
  );
});
