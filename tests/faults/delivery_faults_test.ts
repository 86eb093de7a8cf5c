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
import { advance, commandClock } from "../support/service/service_case.ts";
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

type Open = (service: TestService, hooks: RecordingReceiver) => Promise<Target>;

const openUrl: Open = async (service, hooks) => ({
  ...await addEndpoint(service, hooks.url("/url")),
  take: async () => {
    await settle(service);
    return hooks.arrivals.splice(0);
  },
});

const openInbox: Open = async (service) => {
  const inbox = await addInbox(service);
  return { ...inbox, take: () => takeFrom(service, inbox.id) };
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

const CREATED = "payment.created 1";
const COMPLETED = "payment.completed 1";
const of = (event_type: string) => ({ where: { event_type } });

/** Seconds that pass before a look, or a chargeback of the payment. */
type Passing = number | "chargeback";

/**
 * Each row: faults that are declared, a payment is made, and what arrives after each passing. A set
 * has no order. `unused`: the faults that are left in the end.
 */
const SCHEDULES: [
  name: string,
  faults: [fault: string, more?: Record<string, unknown>][],
  arrive: [after: Passing[], expected: string[] | Set<string>][],
  unused?: number,
][] = [
  ["without a fault each event arrives once", [], [[[0], [CREATED, COMPLETED]]]],
  ["delay comes later, and the events behind it wait", [["delay", { delay_ms: 7_000 }]], [
    [[0, 6], []],
    [[1, 1], [`${CREATED} delay`, COMPLETED]],
  ]],
  [
    "a delayed event does not delay the one before it",
    [["delay", { delay_ms: 7_000, ...of("payment.completed") }]],
    [[[0], [CREATED]], [[6], []], [[1], [`${COMPLETED} delay`]]],
  ],
  [
    "a delay with times 2 delays two deliveries, and none twice",
    [["delay", { delay_ms: 1_000, times: 2 }]],
    [[[0], []], [[1, 1, 1], [`${CREATED} delay`, `${COMPLETED} delay`]]],
  ],
  [
    "reorder with times 2 comes after its successor, and does not undo itself",
    [["reorder", { times: 2 }]],
    [[[0], [COMPLETED, `${CREATED} reorder`]]],
    1,
  ],
  [
    "the successor of a reordered delivery has a fault of its own",
    [["reorder", of("payment.created")], ["duplicate", of("payment.completed")]],
    [[[0], [`${COMPLETED} duplicate`, `${COMPLETED} duplicate`, `${CREATED} reorder`]]],
  ],
  [
    "a reordered delivery follows its delayed successor",
    [["reorder", of("payment.created")], [
      "delay",
      { delay_ms: 5_000, ...of("payment.completed") },
    ]],
    [[[0], []], [[5, 1], [`${COMPLETED} delay`, `${CREATED} reorder`]]],
  ],
  [
    "reorder waits for a successor that does not exist yet",
    [["reorder", of("payment.completed")]],
    [[[0], [CREATED]], [[2], []], [
      ["chargeback", 0],
      ["dispute.created 1", "payment.chargeback 1", `${COMPLETED} reorder`],
    ]],
  ],
  [
    "reorder without a successor comes after a minute",
    [["reorder", of("payment.completed")]],
    [[[0], [CREATED]], [[59], []], [[1], [`${COMPLETED} reorder`]]],
  ],
  [
    "a dropped successor makes the reordered delivery due",
    [["reorder", of("payment.completed")], ["drop_until_recovered", of("dispute.created")]],
    // An inbox gets both at once.
    [[[0], [CREATED]], [
      ["chargeback", 0],
      new Set(["payment.chargeback 1", `${COMPLETED} reorder`]),
    ]],
  ],
];

for (const clock of ["real", "frozen"]) {
  for (const [way, open] of [["url", openUrl], ["inbox", openInbox]] as const) {
    webhookCase(`faults by ${way}, the clock is ${clock}`, async (t, service, hooks) => {
      const { take } = await open(service, hooks);
      let now = AT;
      if (clock === "frozen") await commandClock(service, { mode: "frozen" });
      else await service.setClock(now);
      const pass = async (seconds: number) => {
        if (clock === "real") return await service.setClock(now += seconds * 1000);
        if (seconds > 0) await commandClock(service, { advance: seconds });
      };
      for (const [name, faults, arrive, unused = 0] of SCHEDULES) {
        await t.step(name, async () => {
          const declared = [];
          for (const [fault, more] of faults) declared.push(await faulty(service, fault, more));
          const { body: { id } } = await service.make({ outcome: "success" });
          for (const [after, expected] of arrive) {
            const received: string[] = [];
            for (const passing of after) {
              if (passing === "chargeback") await advance(service, id, passing);
              else {
                await pass(passing);
                received.push(...shown(await take()));
              }
            }
            const got = expected instanceof Set ? new Set(received) : received;
            assert.deepEqual(got, expected, `after ${after}`);
          }
          let rest = 0;
          for (const fault of declared) {
            rest += await left(service, fault);
            await service.call("DELETE", `${FAULTS}/${fault.id}`);
          }
          assert.equal(rest, unused);
        });
      }
      await t.step("the invariants hold", () => assertSilent(service.sql));
    });
  }
}

for (const [way, open] of [["url", openUrl], ["inbox", openInbox]] as const) {
  webhookCase(`a delivery with a fault, by ${way}`, async (t, service, hooks) => {
    const { id: endpoint_id, secret, take } = await open(service, hooks);
    let now = AT;
    await service.setClock(now);
    const pay = async () => (await service.make({ outcome: "success" })).body.id as string;
    const verify = ({ text, headers }: Received) =>
      verifyWebhook(text, headers.get("Payment-Signature"), secret, { now_ms: now });
    const deliveryOf = async (id: string) =>
      (await deliveriesOf(service, `&payment_id=${id}`))
        .find(({ event_type }) => event_type === "payment.created");

    await t.step("duplicate arrives twice, with the same id and one attempt", async () => {
      await faulty(service, "duplicate");
      const id = await pay();
      const received = await take();
      const twice = `${CREATED} duplicate`;
      assert.deepEqual(shown(received), [twice, twice, COMPLETED]);
      const [first, second] = received.map(({ text, headers }) => [
        text,
        headers.get("Webhook-Id"),
        headers.get("Payment-Signature"),
      ]);
      assert.deepEqual(first, second);
      const { status, attempts } = await deliveryOf(id);
      assert.deepEqual([status, attempts.length], ["delivered", way === "url" ? 1 : 0]);
    });
    await t.step("wrong_signature is refused, and signed when it is sent again", async () => {
      await faulty(service, "wrong_signature");
      hooks.judge = ({ headers }) => headers.has("Sandbox-Fault") ? 400 : 200;
      const id = await pay();
      // An inbox gives the same delivery at each read without a cursor.
      const [read] = way === "url"
        ? []
        : receivedIn((await readInbox(service, endpoint_id)).body.data);
      const received = await take();
      assert.deepEqual(shown(received), [
        `${CREATED} wrong_signature`,
        ...way === "url" ? [] : [COMPLETED],
      ]);
      for (const wrong of [received[0]!, ...read ? [read] : []]) {
        await assert.rejects(verify(wrong), { reason: "no_matching_signature" });
      }
      if (way === "url") await service.setClock(now += 5_000);
      else await redeliver(service, (await deliveryOf(id)).id);
      const again = await take();
      assert.deepEqual(shown(again), ["payment.created 2", ...way === "url" ? [COMPLETED] : []]);
      await verify(again[0]!);
      hooks.judge = () => 200;
    });
    await t.step("drop_until_recovered comes only when it is sent again", async () => {
      await faulty(service, "drop_until_recovered");
      const id = await pay();
      assert.deepEqual(shown(await take()), [COMPLETED]);
      await service.setClock(now += 86_400_000);
      assert.deepEqual(await take(), []);
      const { status, attempts, next_attempt_at, id: dropped } = await deliveryOf(id);
      assert.deepEqual([status, attempts, next_attempt_at], ["failed", [], null]);
      // A fault that is still open does not drop it again.
      const open = await faulty(service, "drop_until_recovered", { times: 5 });
      assert.equal((await redeliver(service, dropped)).status, 200);
      assert.deepEqual(shown(await take()), [`${CREATED} drop_until_recovered`]);
      await service.call("DELETE", `${FAULTS}/${open.id}`);
    });
    await t.step("a recovery sends what was dropped", async () => {
      await faulty(service, "drop_until_recovered", { times: 2 });
      await pay();
      assert.deepEqual(await take(), []);
      const body = { since: new Date(now - 1000).toISOString() };
      const url = `${ENDPOINTS}/${endpoint_id}/recover`;
      assert.equal((await service.post(url, body)).count, 2);
      assert.deepEqual(
        shown(await take()),
        [CREATED, COMPLETED].map((text) => `${text} drop_until_recovered`),
      );
    });
    await t.step("a triggered event has no fault", async () => {
      const payment_id = await pay();
      await take();
      const fault = await faulty(service, "drop_until_recovered");
      const body = { endpoint_id, event: "payment.completed", payment_id };
      await service.call("POST", TRIGGER, { body });
      assert.deepEqual(shown(await take()), [COMPLETED]);
      assert.equal(await left(service, fault), 1);
    });
    await t.step("the invariants hold", () => assertSilent(service.sql));
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

webhookCase("a waiting read gets a delayed delivery at its time", async (_t, service) => {
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

webhookCase("a reordered delivery follows its successor's retry", async (_t, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"));
  await faulty(service, "reorder");
  hooks.judge = ({ headers }) => headers.get("Webhook-Attempt") === "1" ? 500 : 200;
  await service.make({ outcome: "success" });
  await settle(service);
  assert.deepEqual(shown(hooks.arrivals), [COMPLETED]);
  await service.setClock(AT + 5_000);
  await settle(service);
  assert.deepEqual(shown(hooks.arrivals).slice(1), [
    "payment.completed 2",
    `${CREATED} reorder`,
  ]);
});

/** Each row: a fault, and how many of 64 deliveries are read or arrive if it happens to 7. */
const RACES: [way: "url" | "inbox", fault: string, arrive: number, marked: number][] = [
  ["url", "drop_until_recovered", 57, 0],
  ["inbox", "duplicate", 71, 14],
  ["inbox", "wrong_signature", 64, 7],
  ["inbox", "drop_until_recovered", 57, 0],
];

for (const [way, fault, arrive, marked] of RACES) {
  webhookCase(`${fault} happens to 7 of 64 racing ones by ${way}`, async (_t, service, hooks) => {
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
    assert.equal(await service.count(`webhook_deliveries where fault = '${fault}'`), 7);
    const pages = way === "url"
      ? [hooks.arrivals]
      : await Promise.all(endpoints.map(({ id }) => takeFrom(service, id)));
    const received = shown(pages.flat());
    assert.equal(received.length, arrive);
    assert.equal(received.filter((text) => text.endsWith(` ${fault}`)).length, marked);
  });
}
