/** Reads of changes, which can wait (contract §7). */

import assert from "node:assert/strict";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { assertRefused, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import type { CallOptions, TestService } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import { ENDPOINTS, holdResponses, openRecorder } from "../support/webhook/recording_receiver.ts";

const { page_waits, long_waits } = PLACE_BOUNDS;
const waiting = ({ deps }: TestService) => deps.sandbox.changes.readers.size;

function readChanges(
  service: Pick<TestService, "call">,
  after: string | null,
  wait = 0,
  options: CallOptions = {},
) {
  const query = new URLSearchParams({ ...(after && { after }), wait: String(wait) });
  return service.call("GET", `${SANDBOX}/changes?${query}`, options);
}

async function cursorOf(service: TestService): Promise<string> {
  const { status, body, text } = await readChanges(service, null);
  assert.deepEqual([status, body.changed], [200, true], text);
  return body.next_cursor;
}

/** Changes, each with the requests that come before it. */
const CHANGES: [name: string, change: (service: TestService) => Promise<unknown>][] = [
  ["a payment", ({ pay }) => pay()],
  ["a refused request", ({ pay }) => pay({ amount: 0 })],
  [
    "a declared fault",
    ({ call }) =>
      call("POST", `${SANDBOX}/faults`, { body: { on: "delivery", fault: "duplicate" } }),
  ],
  ["the clock", ({ call }) => call("POST", `${SANDBOX}/clock`, { body: { advance: 60 } })],
  ["an endpoint", (service) => addInbox(service)],
  [
    "a new key",
    ({ call }) => call("POST", "/api-v1-payments/v1/api_keys", { body: { name: "second" } }),
  ],
  ["a disposable sandbox", ({ call }) => call("POST", `${SANDBOX}/sandboxes`)],
  ["a reset", ({ call }) => call("POST", `${SANDBOX}/reset`)],
];

serviceCase("GET /changes ends its wait within two seconds of", async (t, service) => {
  for (const [name, change] of CHANGES) {
    await t.step(name, async () => {
      const after = await cursorOf(service);
      const reading = readChanges(service, after, 20);
      await until("the read waits", () => waiting(service) === 1);
      const began = performance.now();
      await change(service);
      const { body } = await reading;
      assert.equal(body.changed, true);
      assert.notEqual(body.next_cursor, after);
      assert.ok(performance.now() - began < 2_000);
      await service.deps.request_log.flush();
    });
  }
  await t.step("a payment that another isolate makes", async () => {
    const second = startSecondService(service);
    const reading = readChanges(service, await cursorOf(service), 20);
    await until("the read waits", () => waiting(service) === 1);
    await second.call("POST", PAYMENTS, { body: { amount: 1000, currency: "EUR" } });
    assert.equal((await reading).body.changed, true);
    await second.close();
  });
}, { request_log: true });

serviceCase("GET /changes notices what makes no event", async (t, service) => {
  const receiver = openRecorder();
  const endpoint = { url: receiver.url("/hooks") };
  await service.post(ENDPOINTS, endpoint);
  const inbox = await addInbox(service);
  const held = holdResponses(receiver);
  await service.make({ outcome: "pending" });
  const ended = service.deps.webhooks!.notify();
  await until("the receiver has the event", () => receiver.arrivals.length > 0);
  const cursor = await cursorOf(service);
  await t.step("the end of an attempt", async () => {
    const reading = readChanges(service, cursor, 20);
    held.release();
    await ended;
    assert.equal((await reading).body.changed, true);
  });
  await t.step("the reading of an inbox", async () => {
    const { body: { next_cursor } } = await readInbox(service, inbox.id);
    const after = await cursorOf(service);
    await readInbox(service, inbox.id, `after=${next_cursor}`);
    assert.equal((await readChanges(service, after)).body.changed, true);
  });
  await receiver.close();
});

serviceCase("GET /changes without a change", async (t, service) => {
  const { other } = service;
  const after = await cursorOf(service);
  const readings = Array.from({ length: 20 }, () => readChanges(service, after, 3));
  await until("all reads wait", () => waiting(service) === 20);
  service.forgetStatements();
  await service.pay({}, { key: other.text });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const polls = service.takeStatements().filter((text) => /pay\.sandbox_positions/.test(text));
  await t.step("waiting reads share a statement", () => {
    assert.ok(polls.length >= 1 && polls.length <= 3, `${polls.length}`);
  });
  await t.step("ends with the same cursor, whatever another account does", async () => {
    for (const { body } of await Promise.all(readings)) {
      assert.deepEqual(body, { object: "changes", changed: false, next_cursor: after });
    }
  });
  await t.step("and is no change itself, nor are other reads of a page", async () => {
    await service.call("GET", PAYMENTS, { headers: { "Sec-Fetch-Site": "same-origin" } });
    await service.deps.request_log.flush();
    assert.equal(await cursorOf(service), after);
  });
  await t.step("a stop of the service ends a wait at once", async () => {
    const reading = readChanges(service, after, 20);
    await until("the read waits", () => waiting(service) === 1);
    const began = performance.now();
    service.deps.sandbox.changes.close();
    assert.equal((await reading).body.changed, false);
    assert.ok(performance.now() - began < 1_000);
  });
}, { request_log: true });

serviceCase("GET /changes leaves half of the waits of an account to others", async (t, service) => {
  assert.equal(page_waits.of_owner * 2, long_waits.of_owner);
  const after = await cursorOf(service);
  const { id } = await addInbox(service);
  const cursor = await cursorOf(service);
  const readings = Array.from(
    { length: page_waits.of_owner },
    () => readChanges(service, cursor, 4),
  );
  await until("all reads wait", () => waiting(service) === page_waits.of_owner);
  await t.step("one more is 429", async () => {
    assertRefused(await readChanges(service, cursor, 1), "rate_limited");
  });
  await t.step("one that has not to wait gets its response", async () => {
    assert.equal((await readChanges(service, after, 1)).body.changed, true);
    assert.equal((await readChanges(service, cursor)).status, 200);
  });
  await t.step("inboxes and other accounts can wait", async () => {
    const key = service.other.text;
    const { body: { next_cursor } } = await readChanges(service, null, 0, { key });
    const found = await Promise.all([
      readInbox(service, id, "wait=1"),
      readChanges(service, next_cursor, 1, { key }),
    ]);
    assert.deepEqual(found.map(({ status }) => status), [200, 200]);
  });
  await Promise.all(readings);
});
