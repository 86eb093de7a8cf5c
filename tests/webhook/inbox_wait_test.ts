/** Reads of an inbox that wait for deliveries (contract §4, ADR 0017). */

import assert from "node:assert/strict";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { startSecondService } from "../support/service/second_service.ts";
import { withServedService } from "../support/service/served_service.ts";
import { assertRefused, SANDBOX, serviceCase } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import { ENDPOINTS } from "../support/webhook/recording_receiver.ts";

const LONG_WAITS = PLACE_BOUNDS.long_waits;
const waiting = ({ deps }: TestService) => deps.webhooks!.inboxes.readers.size;

/** Returns the result of some work and its duration. */
async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const began = performance.now();
  return [await work, performance.now() - began];
}

serviceCase("GET /inbox?wait= waits only without a delivery", async (_, service) => {
  const { id } = await addInbox(service);
  const [{ status, body }, took_ms] = await timed(readInbox(service, id, "wait=1"));
  assert.deepEqual([status, body.data, body.has_more], [200, [], false]);
  assert.match(body.next_cursor, /_0$/);
  assert.ok(took_ms >= 990 && took_ms < 3_000, `${took_ms} ms`);
  await service.make({ outcome: "pending" });
  const [full, full_ms] = await timed(readInbox(service, id, "wait=20"));
  assert.deepEqual(typesIn(full.body), ["payment.created"]);
  assert.ok(full_ms < 1_000, `${full_ms} ms`);
});

serviceCase("GET /inbox?wait= ends when a payment is made", async (t, service) => {
  const { id } = await addInbox(service);
  await t.step("in the same isolate: within 250 ms", async () => {
    const reading = readInbox(service, id, "wait=20");
    await until("the read waits", () => waiting(service) === 1);
    const [, took_ms] = await timed(Promise.all([service.make({ outcome: "pending" }), reading]));
    assert.deepEqual(typesIn((await reading).body), ["payment.created"]);
    assert.ok(took_ms < 250, `${took_ms} ms`);
  });
  await t.step("in another isolate: within a second", async () => {
    const { body: { next_cursor } } = await readInbox(service, id);
    const second = startSecondService(service);
    const reading = readInbox(service, id, `wait=20&after=${next_cursor}`);
    await until("the read waits", () => waiting(service) === 1);
    const body = { amount_minor: 1000, currency: "EUR", outcome: "pending" };
    const [, took_ms] = await timed(
      Promise.all([second.call("POST", `${SANDBOX}/payments`, { body }), reading]),
    );
    await second.close();
    assert.deepEqual(typesIn((await reading).body), ["payment.created"]);
    assert.ok(took_ms < 1_000, `${took_ms} ms`);
  });
  assert.equal(waiting(service), 0);
});

serviceCase("100 waiting reads share a statement and hold no connection", async (t, service) => {
  const inboxes = await Promise.all(Array.from({ length: 10 }, () => addInbox(service)));
  const readings = Array.from(
    { length: 100 },
    (_, i) => readInbox(service, inboxes[i % 10]!.id, "wait=4"),
  );
  await until("all reads wait", () => waiting(service) === 100);
  service.forgetStatements();
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const statements = service.takeStatements();
  await t.step("2 seconds cost at most 6 statements", () => {
    assert.ok(statements.length >= 2 && statements.length <= 6, `${statements.length}`);
    for (const text of statements) assert.match(text, /pay\.changed_inboxes/);
  });
  await t.step("no session of the service is in a transaction or waits", async () => {
    const rows = await service.sql`
      select state from pg_stat_activity
      where application_name = 'payments' and datname = current_database() and state <> 'idle'`;
    assert.deepEqual([...rows], []);
  });
  const [, took_ms] = await timed(service.make({ outcome: "pending" }));
  await t.step("a payment does not wait for them", () => {
    assert.ok(took_ms < 500, `${took_ms} ms`);
  });
  await t.step("every read gets the delivery", async () => {
    for (const { body } of await Promise.all(readings)) {
      assert.deepEqual(typesIn(body), ["payment.created"]);
    }
  });
});

Deno.test("a read whose client goes away stops waiting", () =>
  withServedService(async ({ service, base_url }) => {
    const { id } = await addInbox(service);
    const abort = new AbortController();
    const reading = fetch(`${base_url}${ENDPOINTS}/${id}/inbox?wait=20`, {
      headers: { Authorization: `Bearer ${service.key.text}` },
      signal: abort.signal,
    }).catch(() => "aborted");
    await until("the read waits", () => waiting(service) === 1);
    abort.abort();
    assert.equal(await reading, "aborted");
    await until("nothing waits", () => waiting(service) === 0, 2_000);
  }));

serviceCase("a stop ends waiting reads with an empty response", async (_, service) => {
  const { id } = await addInbox(service);
  const reading = readInbox(service, id, "wait=20");
  await until("the read waits", () => waiting(service) === 1);
  service.deps.webhooks!.inboxes.close();
  const [{ status, body }, took_ms] = await timed(reading);
  assert.deepEqual([status, body.data], [200, []]);
  assert.ok(took_ms < 1_000, `${took_ms} ms`);
});

serviceCase("more waiting reads than an account may have", async (t, service) => {
  const { id } = await addInbox(service);
  const reads = Array.from({ length: LONG_WAITS.of_owner }, () => readInbox(service, id, "wait=3"));
  await until("all reads wait", () => waiting(service) === LONG_WAITS.of_owner);
  await t.step("are refused with 429", async () => {
    const refused = await readInbox(service, id, "wait=1");
    assertRefused(refused, "rate_limited");
    assert.equal(refused.headers.get("Retry-After"), "1");
  });
  await t.step("another account can wait", async () => {
    const key = service.other.text;
    const other = await addInbox(service, {}, { key });
    assert.equal((await readInbox(service, other.id, "wait=1", { key })).status, 200);
  });
  await t.step("a read without a wait gets a response", async () => {
    assert.equal((await readInbox(service, id)).status, 200);
  });
  await Promise.all(reads);
});
