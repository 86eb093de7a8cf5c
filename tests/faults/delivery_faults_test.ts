/**
 * Faults of webhook deliveries: each happens to the next deliveries that match, exactly as often as
 * it was declared, and the others arrive as usual. The same is true for an endpoint with a URL,
 * where the dispatcher gives a fault to an attempt, and for an inbox, where the commit or a read
 * does.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import type { InboxDelivery } from "../../shared/schema/inbox.ts";
import { declare, FAULTS, left } from "../support/service/declared_faults.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { advance, SANDBOX } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  ENDPOINTS,
  type RecordingReceiver,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");

/** A delivery as a receiver gets it. */
interface Received {
  text: string;
  headers: Headers;
}

/** An endpoint, and what it has got since the last look. */
interface Target {
  id: string;
  secret: string;
  take(): Promise<Received[]>;
}

/** The ways to a receiver. */
const WAYS: Record<string, (service: TestService, hooks: RecordingReceiver) => Promise<Target>> = {
  url: async (service, hooks) => ({
    ...await addEndpoint(service, hooks.url("/url")),
    take: async () => {
      await settle(service);
      return hooks.arrivals.splice(0);
    },
  }),
  inbox: async (service) => {
    const inbox = await addInbox(service);
    return { ...inbox, take: () => takeFrom(service, inbox.id) };
  },
};

/** Reads what is new in an inbox and acknowledges it. */
async function takeFrom(service: TestService, id: string, options = {}): Promise<Received[]> {
  const { status, text, body } = await readInbox(service, id, "limit=100", options);
  assert.equal(status, 200, text);
  await readInbox(service, id, `after=${body.next_cursor}`, options);
  return receivedIn(body.data);
}

function receivedIn(data: readonly InboxDelivery[]): Received[] {
  return data.map(({ body, headers }) => ({ text: body, headers: new Headers(headers as never) }));
}

/** Formats deliveries as type, attempt and declared fault. */
function shown(received: readonly Received[]): string[] {
  return received.map(({ text, headers }) =>
    [JSON.parse(text).type, headers.get("Webhook-Attempt"), headers.get("Sandbox-Fault")]
      .filter((part) => part !== null).join(" ")
  );
}

/** Declares a fault on deliveries. */
function faulty(service: TestService, fault: string, more: Record<string, unknown> = {}) {
  return declare(service, { on: "delivery", fault, ...more });
}

const redeliver = (service: TestService, id: string) =>
  service.call("POST", `${DELIVERIES}/${id}/redeliver`);

for (const [way, open] of Object.entries(WAYS)) {
  webhookCase(`a delivery with a fault, by ${way}`, async (t, service, hooks) => {
    const { id: endpoint_id, secret, take } = await open(service, hooks);
    let now = AT;
    /** Sets the time and returns what comes then. */
    const at = async (at_ms: number) => {
      await service.setClock(now = at_ms);
      return shown(await take());
    };
    const pay = async (outcome = "success") => {
      await service.setClock(now);
      return (await service.make({ outcome })).body.id as string;
    };
    const verify = ({ text, headers }: Received) =>
      verifyWebhook(text, headers.get("Payment-Signature"), secret, { now_ms: now });
    const deliveryOf = async (id: string) =>
      (await deliveriesOf(service, `&payment_id=${id}`))
        .find(({ event_type }) => event_type === "payment.created");

    await t.step("without a fault it arrives once, without the header", async () => {
      await pay();
      assert.deepEqual(await at(now), ["payment.created 1", "payment.completed 1"]);
    });

    await t.step("duplicate arrives twice, with the same id and one attempt", async () => {
      const fault = await faulty(service, "duplicate");
      const id = await pay();
      const received = await take();
      assert.deepEqual(shown(received), [
        "payment.created 1 duplicate",
        "payment.created 1 duplicate",
        "payment.completed 1",
      ]);
      const [first, second] = received.map(({ text, headers }) => [
        text,
        headers.get("Webhook-Id"),
        headers.get("Payment-Signature"),
      ]);
      assert.deepEqual(first, second);
      const { status, attempts } = await deliveryOf(id);
      assert.deepEqual([status, attempts.length], ["delivered", way === "url" ? 1 : 0]);
      assert.equal(await left(service, fault), 0);
    });

    await t.step("wrong_signature is refused, and signed when it is sent again", async () => {
      const fault = await faulty(service, "wrong_signature");
      hooks.judge = ({ headers }) => headers.has("Sandbox-Fault") ? 400 : 200;
      const id = await pay();
      // An inbox gives the same delivery at each read without a cursor.
      const first = way === "url"
        ? []
        : receivedIn((await readInbox(service, endpoint_id)).body.data);
      const received = await take();
      assert.deepEqual(shown(received), [
        "payment.created 1 wrong_signature",
        ...way === "url" ? [] : ["payment.completed 1"],
      ]);
      for (const [wrong, right] of [received, first]) {
        if (wrong) await assert.rejects(verify(wrong), { reason: "no_matching_signature" });
        if (right) await verify(right);
      }
      assert.equal(await left(service, fault), 0);
      if (way === "url") await service.setClock(now += 5_000);
      else await redeliver(service, (await deliveryOf(id)).id);
      const again = await take();
      assert.deepEqual(shown(again), [
        "payment.created 2",
        ...way === "url" ? ["payment.completed 1"] : [],
      ]);
      await verify(again[0]!);
      hooks.judge = () => 200;
    });

    await t.step("delay comes later, and the events behind it wait", async () => {
      await faulty(service, "delay", { delay_ms: 7_000 });
      const id = await pay();
      assert.deepEqual(await at(now), []);
      assert.deepEqual(await at(now + 6_999), []);
      const { status, next_attempt_at } = await deliveryOf(id);
      assert.deepEqual([status, next_attempt_at], ["pending", new Date(now + 1).toISOString()]);
      const due = await at(now + 1);
      assert.deepEqual([...due, ...await at(now + 1_000)], [
        "payment.created 1 delay",
        "payment.completed 1",
      ]);
    });

    await t.step("a delayed event does not delay the one before it", async () => {
      const where = { event_type: "payment.completed" };
      await faulty(service, "delay", { delay_ms: 7_000, where });
      await pay();
      assert.deepEqual(await at(now), ["payment.created 1"]);
      assert.deepEqual(await at(now + 6_999), []);
      assert.deepEqual(await at(now + 1), ["payment.completed 1 delay"]);
    });

    await t.step("a delay with times 2 delays two deliveries, and none twice", async () => {
      const fault = await faulty(service, "delay", { delay_ms: 1_000, times: 2 });
      await pay();
      assert.deepEqual(await at(now), []);
      const due = [];
      for (let seconds = 0; seconds < 3; seconds++) due.push(...await at(now + 1_000));
      assert.deepEqual(due, ["payment.created 1 delay", "payment.completed 1 delay"]);
      assert.equal(await left(service, fault), 0);
    });

    await t.step(
      "reorder with times 2 comes after its successor, and does not undo itself",
      async () => {
        const fault = await faulty(service, "reorder", { times: 2 });
        for (const rest of [1, 0]) {
          await pay();
          assert.deepEqual(await at(now), ["payment.completed 1", "payment.created 1 reorder"]);
          assert.equal(await left(service, fault), rest);
        }
      },
    );

    await t.step("the successor of a reordered delivery has a fault of its own", async () => {
      await faulty(service, "reorder", { where: { event_type: "payment.created" } });
      await faulty(service, "duplicate", { where: { event_type: "payment.completed" } });
      await pay();
      assert.deepEqual(await at(now), [
        "payment.completed 1 duplicate",
        "payment.completed 1 duplicate",
        "payment.created 1 reorder",
      ]);
    });

    await t.step("reorder waits for a successor that does not exist yet", async () => {
      await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
      const id = await pay();
      assert.deepEqual(await at(now), ["payment.created 1"]);
      assert.deepEqual(await at(now + 2_000), []);
      await advance(service, id, "chargeback");
      assert.deepEqual(await at(now), [
        "dispute.created 1",
        "payment.chargeback 1",
        "payment.completed 1 reorder",
      ]);
    });

    await t.step("reorder without a successor comes after a minute", async () => {
      await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
      await pay();
      assert.deepEqual(await at(now), ["payment.created 1"]);
      assert.deepEqual(await at(now + 59_999), []);
      assert.deepEqual(await at(now + 1), ["payment.completed 1 reorder"]);
    });

    await t.step("drop_until_recovered comes only when it is sent again", async () => {
      const fault = await faulty(service, "drop_until_recovered");
      const id = await pay();
      assert.deepEqual(await at(now), ["payment.completed 1"]);
      assert.equal(await left(service, fault), 0);
      assert.deepEqual(await at(now + 86_400_000), []);
      const [dropped] = await deliveriesOf(service, `&payment_id=${id}&status=failed`);
      assert.deepEqual([dropped.event_type, dropped.attempts, dropped.next_attempt_at], [
        "payment.created",
        [],
        null,
      ]);
      // A fault that is still open does not drop it again.
      const open = await faulty(service, "drop_until_recovered", { times: 5 });
      assert.equal((await redeliver(service, dropped.id)).status, 200);
      assert.deepEqual(await at(now), ["payment.created 1 drop_until_recovered"]);
      await service.call("DELETE", `${FAULTS}/${open.id}`);
    });

    await t.step("a recovery sends what was dropped", async () => {
      await faulty(service, "drop_until_recovered", { times: 2 });
      await pay();
      assert.deepEqual(await at(now), []);
      const { body } = await service.call("POST", `${ENDPOINTS}/${endpoint_id}/recover`, {
        body: { since: new Date(now - 1000).toISOString() },
      });
      assert.equal(body.count, 2);
      assert.deepEqual(await at(now), [
        "payment.created 1 drop_until_recovered",
        "payment.completed 1 drop_until_recovered",
      ]);
    });

    await t.step("a dropped successor makes the reordered delivery due", async () => {
      await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
      const id = await pay();
      assert.deepEqual(await at(now), ["payment.created 1"]);
      await faulty(service, "drop_until_recovered", { where: { event_type: "dispute.created" } });
      await advance(service, id, "chargeback");
      const received = await at(now);
      // An inbox gets both at once.
      assert.deepEqual(way === "url" ? received : received.toSorted(), [
        "payment.chargeback 1",
        "payment.completed 1 reorder",
      ]);
    });

    await t.step("a triggered event has no fault", async () => {
      const payment_id = await pay("pending");
      await take();
      const fault = await faulty(service, "drop_until_recovered");
      await service.call("POST", TRIGGER, {
        body: { endpoint_id, event: "payment.completed", payment_id },
      });
      assert.deepEqual(await at(now), ["payment.completed 1"]);
      assert.equal(await left(service, fault), 1);
    });

    await t.step("the invariants hold", async () => {
      await assertSilent(service.sql);
    });
  });
}

/** Each row: conditions, and how many of two events then reach two URLs and two inboxes. */
const CONDITIONS: [where: string[], reached: [number, number, number, number]][] = [
  [["url"], [1, 2, 2, 2]],
  [["url", "payment.completed"], [1, 2, 2, 2]],
  [["inbox"], [2, 2, 1, 2]],
  [["inbox", "payment.completed"], [2, 2, 1, 2]],
];

webhookCase("the conditions of a fault on deliveries", async (t, service, hooks) => {
  const urls = [
    await addEndpoint(service, hooks.url("/0")),
    await addEndpoint(service, hooks.url("/1")),
  ];
  const inboxes = [await addInbox(service), await addInbox(service)];
  const reached = async (where: Record<string, string>) => {
    const fault = await faulty(service, "drop_until_recovered", { where });
    hooks.arrivals.length = 0;
    await service.make({ outcome: "success" });
    await settle(service);
    assert.equal(await left(service, fault), 0);
    const read = [];
    for (const { id } of inboxes) read.push(shown(await takeFrom(service, id)));
    return [...urls.map((_, i) => shown(hooks.at(`/${i}`))), ...read];
  };
  for (const [[way, event_type], expected] of CONDITIONS) {
    await t.step(`of one ${way}${event_type ? ` and ${event_type}` : ""}`, async () => {
      const { id: endpoint_id } = (way === "url" ? urls : inboxes)[0]!;
      const got = await reached({ endpoint_id, ...(event_type && { event_type }) });
      assert.deepEqual(got.map(({ length }) => length), expected);
      const [hit] = got.filter(({ length }) => length === 1);
      assert.deepEqual(hit, [event_type ? "payment.created 1" : "payment.completed 1"]);
    });
  }
  await t.step("of payment.completed", async () => {
    const got = (await reached({ event_type: "payment.completed" })).flat();
    const created = got.filter((text) => text === "payment.created 1");
    assert.deepEqual([got.length, created.length], [7, 4]);
  });
  await t.step("another sandbox notices nothing, by either way", async () => {
    const options = { key: service.other.text };
    await addEndpoint(service, hooks.url("/other"), {}, options);
    const { id } = await addInbox(service, {}, options);
    const fault = await faulty(service, "drop_until_recovered");
    await service.make({ outcome: "success" }, options);
    await settle(service);
    const got = [hooks.at("/other"), await takeFrom(service, id, options)];
    assert.deepEqual(got.map(shown), Array(2).fill(["payment.created 1", "payment.completed 1"]));
    assert.equal(await left(service, fault), 1);
  });
});

webhookCase("a waiting read of an inbox gets a delayed delivery at its time", async (
  _t,
  service,
) => {
  const { id } = await addInbox(service);
  await faulty(service, "delay", { delay_ms: 1_000 });
  await service.make({ outcome: "success" });
  const began = performance.now();
  const { body } = await readInbox(service, id, "wait=20");
  const waited = performance.now() - began;
  assert.deepEqual(shown(receivedIn(body.data)), [
    "payment.created 1 delay",
    "payment.completed 1",
  ]);
  assert.ok(waited > 500 && waited < 10_000, `${waited} ms`);
});

webhookCase("faults follow the clock of the sandbox", async (t, service, hooks) => {
  const { id } = await addInbox(service);
  const clock = (body: unknown) => service.call("POST", `${SANDBOX}/clock`, { body });
  const take = async () => shown(await takeFrom(service, id));
  const pay = async () => {
    const { body } = await service.make({ outcome: "success" });
    await settle(service);
    return body.id as string;
  };
  await clock({ mode: "frozen" });
  await faulty(service, "delay", { delay_ms: 7_000 });
  await pay();
  await t.step("a delayed delivery and those behind it are not due", async () => {
    const [row] = await service.sql`
      select count(*)::int as waiting from pay.webhook_deliveries
      where status = 'pending' and next_attempt_at = 'infinity'`;
    assert.equal(row!.waiting, 2);
  });
  await t.step("it is due by the clock of the sandbox", async () => {
    assert.equal((await clock({ advance: 6 })).body.has_more, false);
    assert.deepEqual(await take(), []);
    assert.equal((await clock({ advance: 1 })).body.has_more, false);
    // The advance has filled the inbox.
    assert.equal((await deliveriesOf(service, "&status=available")).length, 2);
    assert.deepEqual(await take(), ["payment.created 1 delay", "payment.completed 1"]);
  });
  await t.step("a reordered delivery follows its successor without a read", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    const payment_id = await pay();
    assert.deepEqual(await take(), ["payment.created 1"]);
    await advance(service, payment_id, "chargeback");
    await settle(service);
    assert.equal((await deliveriesOf(service, "&status=pending")).length, 0);
    assert.deepEqual((await take()).slice(2), ["payment.completed 1 reorder"]);
  });
  await t.step("a reordered delivery follows its delayed successor", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.created" } });
    await faulty(service, "delay", { delay_ms: 5_000, where: { event_type: "payment.completed" } });
    await pay();
    assert.deepEqual(await take(), []);
    await clock({ advance: 5 });
    assert.deepEqual(await take(), ["payment.completed 1 delay", "payment.created 1 reorder"]);
  });
  await t.step("a reordered delivery without a successor is due after a minute", async () => {
    await faulty(service, "reorder", { where: { event_type: "payment.completed" } });
    await pay();
    assert.deepEqual(await take(), ["payment.created 1"]);
    await clock({ advance: 60 });
    assert.deepEqual(await take(), ["payment.completed 1 reorder"]);
  });
  await t.step("a reordered delivery by URL follows the retry of its successor", async () => {
    const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"));
    await faulty(service, "reorder", { where: { endpoint_id } });
    hooks.judge = ({ headers }) => headers.get("Webhook-Attempt") === "1" ? 500 : 200;
    await pay();
    assert.deepEqual(shown(hooks.arrivals), ["payment.completed 1"]);
    await clock({ advance: 5 });
    assert.deepEqual(shown(hooks.arrivals).slice(0, 3), [
      "payment.completed 1",
      "payment.completed 2",
      "payment.created 1 reorder",
    ]);
  });
  await t.step("the invariants hold", async () => {
    await assertSilent(service.sql);
  });
});

/** Each row: a fault, and how many of 64 deliveries are read or arrive if it happens to 7. */
const RACES: [way: "url" | "inbox", fault: string, arrive: number, marked: number][] = [
  ["url", "drop_until_recovered", 57, 0],
  ["inbox", "duplicate", 71, 14],
  ["inbox", "wrong_signature", 64, 7],
  ["inbox", "drop_until_recovered", 57, 0],
];

for (const [way, fault, arrive, marked] of RACES) {
  webhookCase(`${fault} with times 7 happens to 7 of 64 racing deliveries by ${way}`, async (
    _t,
    service,
    hooks,
  ) => {
    const endpoints = way === "url"
      ? [await addEndpoint(service, hooks.url("/a")), await addEndpoint(service, hooks.url("/b"))]
      : [await addInbox(service), await addInbox(service)];
    const declared = await faulty(service, fault, {
      times: 7,
      where: { event_type: "payment.created" },
    });
    await Promise.all(Array.from({ length: 32 }, async (_, i) => {
      await service.make({ outcome: "pending" });
      const reading = way === "inbox" && readInbox(service, endpoints[i % 2]!.id);
      await Promise.all([reading, settle(service)]);
    }));
    await settle(service);
    assert.equal(await left(service, declared), 0);
    const [row] = await service.sql`
      select count(*)::int as faulty from pay.webhook_deliveries where fault = ${fault}`;
    assert.equal(row!.faulty, 7);
    const pages = way === "url"
      ? [hooks.arrivals]
      : await Promise.all(endpoints.map(({ id }) => takeFrom(service, id)));
    const received = shown(pages.flat());
    assert.equal(received.length, arrive);
    assert.equal(received.filter((text) => text.endsWith(` ${fault}`)).length, marked);
  });
}
