/** The double of Stripe: idempotency keys, faults, kills and notifications. */

import assert from "node:assert/strict";
import Stripe from "stripe";
import { freePort } from "../support/common/free_port.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { until } from "../support/common/until.ts";
import { assertLost, doubleTest } from "../support/stripe/double_case.ts";
import { Journal } from "../support/stripe/journal.ts";
import { signatureHeader } from "../support/stripe/notifications.ts";

doubleTest("an idempotency key keeps the first response, also after a kill", async (given) => {
  const { create, double, books } = given;
  const first = await create({}, "pc_1");
  await double.restart();
  const second = await create({}, "pc_1");
  assert.equal(second.text, first.text);
  assert.equal(second.headers.get("idempotent-replayed"), "true");
  const other = await create({ amount: "1100" }, "pc_1");
  assert.equal(other.status, 400);
  assert.equal(other.body.error.type, "idempotency_error");
  assert.equal((await books()).payment_intent.length, 1);
});

doubleTest("an idempotency key keeps a decline, but no invalid request", async ({ create }) => {
  const declined = () => create({ payment_method: "pm_card_chargeDeclined" }, "pc_1");
  await declined();
  assert.equal((await declined()).headers.get("idempotent-replayed"), "true");
  await create({ amount: "0" }, "pc_2");
  assert.equal((await create({}, "pc_2")).status, 200);
});

doubleTest("an idempotency key under way gets 409", async ({ create, double }) => {
  await double.plant({ at: "engine", act: "delay", delay_ms: 1_000 });
  const duplicates = await Promise.all([create({}, "pc_1"), create({}, "pc_1")]);
  assert.deepEqual(duplicates.map(({ status }) => status).sort(), [200, 409]);
  const refused = duplicates.find(({ status }) => status === 409)!;
  assert.equal(refused.body.error.code, "idempotency_key_in_use");
});

// The number of charges in the books after the kill, before the retry.
for (const [at, charges] of [["before", 0], ["engine", 0], ["after", 1]] as const) {
  doubleTest(`a kill ${at} the commit charges once under one key`, async (given) => {
    const { create, double, books } = given;
    await double.plant({ at, act: "kill" });
    await assertLost(create({}, "pc_1"));
    await double.restart();
    assert.equal((await books()).charge.length, charges);
    assert.equal((await create({}, "pc_1")).body.status, "succeeded");
    assert.equal((await books()).charge.length, 1);
  });
}

doubleTest("a kill between localstripe's work and the commit leaves a capture possible", async (
  { create, post, double },
) => {
  const { body: { id } } = await create({ capture_method: "manual" });
  const capture = () => post(`payment_intents/${id}/capture`, {}, "pc_1");
  await double.plant({ at: "engine", act: "kill" });
  await assertLost(capture());
  await double.restart();
  assert.equal((await capture()).body.status, "succeeded");
});

Deno.test("Journal cuts off a torn line, and continues after the last whole one", async () => {
  await withTemporaryFolder(async (path) => {
    const object = { id: "pi_1", object: "payment_intent", created: 1 };
    const commit = (id: string) =>
      new Journal(path).commit({ owner: "sk_test_1", objects: [{ ...object, id }] });
    commit("pi_1");
    await Deno.writeTextFile(path, '{"owner":"sk_test_1","objects":[{"id":"pi_2"', {
      append: true,
    });
    commit("pi_3");
    const found = new Journal(path).list("sk_test_1", "payment_intent").map(({ id }) => id);
    assert.deepEqual(found, ["pi_1", "pi_3"]);
  });
});

doubleTest("faults take the place of responses", async ({ create, double, books }) => {
  for (const [act, status] of [["rate_limit", 429], ["error", 500], ["html", 200]] as const) {
    await double.plant({ at: "before", act });
    assert.equal((await create()).status, status);
  }
  assert.equal((await books()).charge.length, 0);
  await double.plant({ at: "after", act: "huge" });
  assert.ok((await create()).text.length > 10_000_000);
  for (const act of ["lose", "cut"] as const) {
    await double.plant({ at: "after", act });
    await assertLost(create({}, act));
    assert.equal((await create({}, act)).body.status, "succeeded");
  }
  await double.plant({ at: "before", act: "hang", path: "/balance$", method: "GET" });
  const hanging = new AbortController();
  const url = `${double.base_url}/v1/balance`;
  const headers = { authorization: "Bearer sk_test_1" };
  const call = fetch(url, { headers, signal: hanging.signal });
  assert.equal((await create()).status, 200);
  hanging.abort();
  await assert.rejects(call, { name: "AbortError" });
  await double.plant({ at: "before", act: "error", times: 100 });
  await double.clearFaults();
  assert.equal((await create()).status, 200);
  assert.equal((await books()).charge.length, 5);
});

doubleTest("a request that arrives twice charges once, and the list names waiting faults", async ({
  create,
  double,
  books,
}) => {
  await double.plant({ name: "twice", at: "before", act: "twice" });
  assert.deepEqual(await double.waitingFaults(), ["twice"]);
  const { status, headers } = await create({}, "pc_1");
  assert.equal(status, 200);
  assert.equal(headers.get("idempotent-replayed"), "true");
  assert.deepEqual(await double.waitingFaults(), []);
  assert.equal((await books()).charge.length, 1);
});

doubleTest("a 500 is replayed although the charge was made", async ({ create, double, books }) => {
  await double.plant({ at: "after", act: "error", keep: true });
  assert.equal((await create({}, "pc_1")).status, 500);
  const again = await create({}, "pc_1");
  assert.equal(again.status, 500);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  assert.equal((await books()).charge.length, 1);
});

doubleTest("payments survive a localstripe that has lost everything", async (given) => {
  const { create, post, double } = given;
  const { body: { id } } = await create();
  await double.restartEngine();
  assert.equal((await create()).status, 200);
  assert.equal((await post("refunds", { payment_intent: id })).status, 200);
});

Deno.test("signatureHeader() signs for a given time, as Stripe's package reads it", async () => {
  const { webhooks } = new Stripe("sk_test_1");
  const read = (age_ms: number, secret: string) => {
    const header = signatureHeader("{}", ["whsec_1"], Date.now() - age_ms);
    return webhooks.constructEventAsync("{}", header, secret);
  };
  assert.deepEqual(await read(0, "whsec_1"), {});
  await assert.rejects(read(400_000, "whsec_1"), /outside the tolerance zone/);
  await assert.rejects(read(0, "whsec_2"), /No signatures found matching/);
});

doubleTest("notifications are signed twice, repeated, doubled and reversed", async (given) => {
  const { create, double, books } = given;
  const received: Stripe.Event[] = [];
  const stripe = new Stripe("sk_test_1");
  const secrets = ["whsec_old", "whsec_new"];
  let refusals = 2;
  await using receiver = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (request) => {
      const header = request.headers.get("stripe-signature")!;
      const text = await request.text();
      for (const secret of secrets) {
        await stripe.webhooks.constructEventAsync(text, header, secret);
      }
      if (--refusals >= 0) return new Response(null, { status: 500 });
      received.push(JSON.parse(text));
      return new Response(null);
    },
  );
  const url = `http://127.0.0.1:${receiver.addr.port}/`;
  await double.notify({ url, secrets, retry_ms: 20, lose: 2 });
  await create();
  const expected = (await books()).event.map(({ id }) => id).sort();
  await until("every event arrives", () => received.length === expected.length);
  assert.deepEqual(received.map(({ id }) => id).sort(), expected);
  received.splice(0);
  await double.notify({ copies: 2, reverse_ms: 100 });
  await create();
  await until("every event arrives twice", () => received.length === 6);
  assert.equal(received[0]!.type, "payment_intent.succeeded");
  await double.notify({ url: null, copies: 1, reverse_ms: 0 });
});

doubleTest("notifications that nobody accepted are sent after a kill", async (given) => {
  const { create, double, books } = given;
  const port = freePort();
  const url = `http://127.0.0.1:${port}/`;
  await double.notify({ url, secrets: ["whsec_1"], retry_ms: 60_000 });
  await create();
  const expected = (await books()).event.map(({ id }) => id);
  await double.kill();
  const received = new Set<string>();
  await using _receiver = Deno.serve(
    { hostname: "127.0.0.1", port, onListen() {} },
    async (request) => {
      received.add((await request.json()).id);
      return new Response(null);
    },
  );
  await double.restart();
  await until("every event arrives", () => expected.every((id) => received.has(id)));
  await double.notify({ url: null });
});
