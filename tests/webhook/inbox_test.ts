/**
 * Endpoints with an inbox (contract §4): reads, cursors and acknowledgement, their refusals, and
 * changes between a URL and an inbox.
 */

import assert from "node:assert/strict";
import { verifyWebhook } from "../../packages/client/mod.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { addInbox, readInbox, typesIn } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  deliveriesOf,
  ENDPOINTS,
  EVENTS,
  holdResponses,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const HOOKS = "https://example.com/hooks";
const TYPES = ["payment.created", "payment.completed"];

serviceCase("GET /inbox gives the deliveries in order, and signed", async (t, service) => {
  const { id, secret } = await addInbox(service);
  const paid = await service.make({ outcome: "success" });
  const { status, body } = await readInbox(service, id);
  assert.equal(status, 200);
  await t.step("each delivery has the headers and the body of a webhook", async () => {
    assert.deepEqual(typesIn(body), ["payment.created", "payment.completed"]);
    for (const delivery of body.data) {
      const signature = delivery.headers["Payment-Signature"];
      const event = await verifyWebhook(delivery.body, signature, secret);
      assert.equal(event.id, delivery.event_id);
      assert.equal(event.data.object.id, paid.body.id);
      const { text } = await service.call("GET", `${EVENTS}/${delivery.event_id}`);
      assert.equal(delivery.body, text);
      assert.deepEqual(Object.keys(delivery.headers), [
        "Content-Type",
        "User-Agent",
        "Payment-Signature",
        "Webhook-Id",
        "Webhook-Timestamp",
        "Webhook-Signature",
        "Webhook-Attempt",
      ]);
      assert.equal(delivery.headers["Webhook-Attempt"], "1");
    }
  });
  await t.step("the deliveries are available, without attempts", async () => {
    for (const delivery of await deliveriesOf(service)) {
      const { status, attempts, next_attempt_at } = delivery;
      assert.deepEqual([status, attempts, next_attempt_at], ["available", [], null]);
    }
  });
  await t.step("without a cursor a read gives the same again", async () => {
    const again = await readInbox(service, id);
    assert.deepEqual(typesIn(again.body), typesIn(body));
    assert.equal(again.body.next_cursor, body.next_cursor);
  });
  await t.step("the cursor acknowledges", async () => {
    const after = await readInbox(service, id, `after=${body.next_cursor}`);
    assert.deepEqual([after.body.data, after.body.has_more], [[], false]);
    assert.equal(after.body.next_cursor, body.next_cursor);
    const statuses = (await deliveriesOf(service)).map(({ status }) => status);
    assert.deepEqual(statuses, ["delivered", "delivered"]);
    assert.deepEqual((await readInbox(service, id)).body.data, []);
  });
  await t.step("an older cursor shows the deliveries again and takes nothing back", async () => {
    const zero = body.next_cursor.replace(/_\d+$/, "_0");
    assert.deepEqual(typesIn((await readInbox(service, id, `after=${zero}`)).body), typesIn(body));
    assert.deepEqual((await readInbox(service, id)).body.data, []);
  });
});

serviceCase("GET /inbox pages", async (_, service) => {
  const { id } = await addInbox(service);
  for (let i = 0; i < 4; i++) await service.make({ outcome: "success" });
  const idsIn = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);
  const whole = (await readInbox(service, id, "limit=100")).body;
  const seen: string[] = [];
  for (let after = "", more = true; more;) {
    const { body } = await readInbox(service, id, `limit=3${after}`);
    seen.push(...idsIn(body));
    after = `&after=${body.next_cursor}`;
    more = body.has_more;
  }
  assert.deepEqual([seen, seen.length], [idsIn(whole), 8]);
  // Only the pages before the last read are acknowledged.
  assert.equal((await deliveriesOf(service, "&status=available")).length, 2);
});

serviceCase("an inbox with events, a trigger and a rotated secret", async (_, service) => {
  const { id, secret } = await addInbox(service, { events: ["payment.completed"] });
  const { body: payment } = await service.make({ outcome: "success" });
  const body = { endpoint_id: id, event: "payment.failed", payment_id: payment.id };
  const triggered = await service.call("POST", TRIGGER, { body });
  assert.deepEqual([triggered.status, triggered.body.status], [200, "available"]);
  const rotated = await service.post(`${ENDPOINTS}/${id}/rotate_secret`, { expires_in: 3600 });
  const { data } = (await readInbox(service, id)).body;
  assert.deepEqual(typesIn({ data }), ["payment.completed", "payment.failed"]);
  assert.equal(JSON.parse(data[1].body).triggered, true);
  // A delivery from before the rotation is signed with all secrets that are valid at the read.
  for (const valid of [secret, rotated.secret]) {
    await verifyWebhook(data[0].body, data[0].headers["Payment-Signature"], valid);
  }
});

serviceCase("reset of a sandbox with an inbox", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const before = (await readInbox(service, id)).body;
  await service.make({ outcome: "success" });
  await service.call("POST", "/api-v1-sandbox/reset");
  await t.step("empties the inbox", async () => {
    const { body } = await readInbox(service, id);
    assert.deepEqual([body.data, body.has_more], [[], false]);
  });
  await t.step("a cursor from before stays valid, and new deliveries come", async () => {
    await service.make({ outcome: "pending" });
    const { body } = await readInbox(service, id, `after=${before.next_cursor}`);
    assert.deepEqual(typesIn(body), ["payment.created"]);
  });
});

/** Refused changes of the delivery of an endpoint; null: of a new one. */
const REFUSED: [of: "inbox" | "url" | null, body: object, param: string][] = [
  [null, { delivery: "url" }, "url"],
  [null, { delivery: "inbox", url: HOOKS }, "url"],
  [null, { delivery: "inbox", url: null }, "url"],
  [null, { delivery: null, url: HOOKS }, "delivery"],
  ["inbox", { url: HOOKS }, "url"],
  ["url", { delivery: "inbox", url: HOOKS }, "url"],
  ["inbox", { delivery: "url" }, "url"],
];

serviceCase("POST and PUT /webhook_endpoints with a wrong delivery", async (t, service) => {
  const paths = {
    inbox: `${ENDPOINTS}/${(await addInbox(service)).id}`,
    url: `${ENDPOINTS}/${(await addEndpoint(service, HOOKS)).id}`,
  };
  const before = (await service.call("GET", ENDPOINTS)).text;
  for (const [of, body, param] of REFUSED) {
    await t.step(`${of}: ${JSON.stringify(body)}`, async () => {
      const [method, path] = of === null ? ["POST", ENDPOINTS] : ["PUT", paths[of]];
      assertRefused(await service.call(method!, path!, { body }), "invalid_parameter", param);
      assert.equal((await service.call("GET", ENDPOINTS)).text, before);
    });
  }
});

serviceCase("GET /inbox refuses what would acknowledge something else", async (t, service) => {
  const { id } = await addInbox(service);
  const other = await addInbox(service);
  await service.make({ outcome: "success" });
  const mine = (await readInbox(service, id)).body.next_cursor;
  const theirs = (await readInbox(service, other.id)).body.next_cursor;
  const cursors: [name: string, cursor: string][] = [
    ["the id of a delivery", (await deliveriesOf(service))[0].id],
    ["a cursor of another endpoint", theirs],
    ["a cursor beyond the newest delivery", mine.replace(/2$/, "3")],
    ["a cursor with 15 digits", mine.replace(/2$/, "9".repeat(15))],
    ["a cursor with 16 digits", mine.replace(/2$/, "9".repeat(16))],
  ];
  for (const [name, cursor] of cursors) {
    await t.step(name, async () => {
      const refused = await readInbox(service, id, `after=${cursor}`);
      assertRefused(refused, "invalid_parameter", "after");
    });
  }
  await t.step("a limit or a wait out of its range", async () => {
    for (const query of ["wait=21", "wait=-1", "wait=1.5", "limit=0", "limit=101"]) {
      const refused = await readInbox(service, id, `after=${mine}&${query}`);
      assertRefused(refused, "invalid_parameter", query.split("=")[0]);
    }
  });
  await t.step("a key with webhooks:read reads, but does not acknowledge", async () => {
    const scopes = ["webhooks:read"];
    const { text: key } = await service.issueKey(service.key.environment_id, { scopes });
    assert.equal((await readInbox(service, id, "", { key })).body.data.length, 2);
    for (const after of [mine, "", "x", `${mine}&limit=x`]) {
      const refused = await readInbox(service, id, `after=${after}`, { key });
      assertRefused(refused, "permission_denied");
      assert.equal(refused.body.error.required_scope, "webhooks:write");
    }
  });
  await t.step("the key of the other mode", async () => {
    const live = { key: service.live.text };
    const { id: live_id } = await addInbox(service, {}, live);
    assert.deepEqual((await readInbox(service, live_id, "", live)).body.data, []);
    assertRefused(await readInbox(service, live_id), "not_found");
    assertRefused(await readInbox(service, id, "", live), "not_found");
  });
  await t.step("none of them acknowledges anything", async () => {
    assert.equal((await readInbox(service, id)).body.data.length, 2);
  });
  await t.step("a key with webhooks:write acknowledges", async () => {
    const scopes = ["webhooks:write"];
    const { text: key } = await service.issueKey(service.key.environment_id, { scopes });
    const { status, body } = await readInbox(service, id, `after=${mine}`, { key });
    assert.deepEqual([status, body.data], [200, []]);
    assertRefused(await readInbox(service, id, "", { key }), "permission_denied");
  });
});

webhookCase("PUT delivery: url sends what is not acknowledged", async (t, service, hooks) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const { next_cursor } = (await readInbox(service, id)).body;
  await readInbox(service, id, `after=${next_cursor}`);
  await service.make({ outcome: "success" });
  await readInbox(service, id);
  await service.make({ outcome: "success" });
  const changed = await service.call("PUT", `${ENDPOINTS}/${id}`, {
    body: { delivery: "url", url: hooks.url("/") },
  });
  assert.deepEqual([changed.body.delivery, changed.body.url], ["url", hooks.url("/")]);
  await settle(service);
  await t.step("in the order of each payment, and each is delivered", async () => {
    const by_payment = Map.groupBy(hooks.arrivals, ({ event }) => event.data.object.id);
    assert.equal(by_payment.size, 2);
    for (const arrivals of by_payment.values()) {
      assert.deepEqual(arrivals.map(({ event }) => event.type), TYPES);
    }
    const statuses = (await deliveriesOf(service)).map(({ status }) => status);
    assert.deepEqual(statuses, Array(6).fill("delivered"));
  });
  await t.step("reads are 409 from now on", async () => {
    const refused = await readInbox(service, id, `after=${next_cursor}`);
    assertRefused(refused, "invalid_state");
    assert.deepEqual(refused.body.error.current_status, "url");
  });
  await t.step("a change back to an inbox keeps the cursor", async () => {
    await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { delivery: "inbox" } });
    await service.make({ outcome: "pending" });
    assert.deepEqual(typesIn((await readInbox(service, id)).body), ["payment.created"]);
  });
});

webhookCase("an inbox takes over what is pending, after an attempt", async (_, service, hooks) => {
  const { held, release } = holdResponses(hooks);
  const { id } = await addEndpoint(service, hooks.url("/"));
  await service.make({ outcome: "success" });
  const settled = settle(service);
  await until("the attempt is under way", () => held.length > 0);
  const changed = await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { delivery: "inbox" } });
  assert.deepEqual([changed.body.delivery, changed.body.url], ["inbox", null]);
  // The second event must not come before the first, whose attempt is under way.
  await service.sql`
    update pay.webhook_deliveries set leased_until = null where event_type = 'payment.completed'`;
  assert.deepEqual((await readInbox(service, id)).body.data, []);
  release(1, 500);
  await settled;
  const { data } = (await readInbox(service, id)).body;
  assert.deepEqual(typesIn({ data }), TYPES);
  assert.equal(data[0].headers["Webhook-Attempt"], "2");
  assert.equal(hooks.arrivals.length, 1);
});

webhookCase("PUT delivery: url with too much in the inbox", async (_, service, hooks) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "pending" });
  await readInbox(service, id);
  await service.sql`
    insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
      subject_id, sequence, status, created_at)
    select environment_id, 'whd_' || lpad(n::text, 26, '0'), event_id, event_type, endpoint_id,
      subject_id, sequence, 'available', created_at
    from pay.webhook_deliveries, generate_series(1, 5000) as n`;
  await service.sql`
    insert into pay.inbox_entries (environment_id, endpoint_id, delivery_id, position)
    select ${service.key.environment_id}, ${id}, 'whd_' || lpad(n::text, 26, '0'), n + 1
    from generate_series(1, 5000) as n`;
  await service.sql`update pay.webhook_endpoints set inbox_position = 5001 where id = ${id}`;
  const change = () =>
    service.call("PUT", `${ENDPOINTS}/${id}`, { body: { delivery: "url", url: hooks.url("/") } });
  assertRefused(await change(), "invalid_state");
  const endpoint = await service.get(`${ENDPOINTS}/${id}`);
  assert.equal(endpoint.delivery, "inbox");
  const { next_cursor } = (await readInbox(service, id, "limit=2")).body;
  await readInbox(service, id, `after=${next_cursor}`);
  assert.equal((await change()).status, 200);
});

webhookCase("the end of an inbox", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "disabled" } });
  await service.make({ outcome: "success" });
  await settle(service);
  await t.step("a disabled one keeps its deliveries and gets no new ones", async () => {
    assert.deepEqual(typesIn((await readInbox(service, id)).body), TYPES);
  });
  await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "enabled" } });
  await service.make({ outcome: "success" });
  assert.equal((await service.call("DELETE", `${ENDPOINTS}/${id}`)).status, 200);
  await t.step("a deleted one is 404, and its deliveries are cancelled", async () => {
    assertRefused(await readInbox(service, id), "not_found");
    await settle(service);
    const statuses = (await deliveriesOf(service)).map(({ status }) => status);
    assert.deepEqual(statuses, Array(4).fill("cancelled"));
  });
});
