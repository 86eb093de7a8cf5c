/**
 * Webhook endpoints over HTTP (contract §4): create, read, update, delete, their refusals, and how
 * many an environment may have.
 */

import assert from "node:assert/strict";
import { idPattern } from "../../shared/core/ids.ts";
import { BASE_URL } from "../support/service/service.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { NO_DISPATCHER } from "../support/webhook/dispatcher_polls.ts";
import {
  addEndpoint,
  DELIVERIES,
  ENDPOINTS,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";

const AT = "2026-08-09T10:11:12.013Z";
const LATER = "2026-08-09T10:11:13.000Z";
const URL = "https://hooks.example.com/payments";
const MAX_ENDPOINTS = 64;
const MAX_LIVE_ENDPOINTS = 16;

serviceCase("POST /v1/webhook_endpoints", async (t, service) => {
  await service.setClock(Date.parse(AT));
  await t.step("returns every field, and shows the secret", async () => {
    const requested = {
      url: "https://hooks.example.com/a/../b",
      events: ["payment.*", "refund.completed"],
      description: "Größe",
      metadata: { shop: "1" },
    };
    const made = await service.call("POST", ENDPOINTS, { body: requested });
    assert.equal(made.status, 201, made.text);
    const { id, secret, ...rest } = made.body;
    assert.match(id, /^whe_[0-9a-hjkmnp-tv-z]{26}$/);
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.deepEqual(rest, {
      object: "webhook_endpoint",
      delivery: "url",
      ...requested,
      url: "https://hooks.example.com/b",
      status: "enabled",
      disabled_reason: null,
      livemode: false,
      created_at: AT,
      updated_at: AT,
    });
    const location = `${BASE_URL}/api-v1-payments/v1/webhook_endpoints/${id}`;
    assert.equal(made.headers.get("Location"), location);
    const read = await service.call("GET", `${ENDPOINTS}/${id}`);
    assert.deepEqual([read.status, read.body], [200, { id, ...rest }]);
    const list = await service.get(ENDPOINTS);
    assert.deepEqual(list.data, [{ id, ...rest }]);
  });
  await t.step("sets the defaults", async () => {
    const body = await service.post(ENDPOINTS, { url: URL });
    const { events, description, metadata } = body;
    assert.deepEqual([events, description, metadata], [["*"], null, {}]);
  });
  await t.step("accepts every type and pattern, and lists a repeated type once", async () => {
    const events = [...EVENT_TYPES, "*", "payment.*", "refund.*", "transfer.*", "payment.created"];
    const body = await service.post(ENDPOINTS, { url: URL, events });
    assert.deepEqual(body.events, events.slice(0, -1));
  });
});

/** Refused fields. endpoint_url_test.ts in tests/core has all refused URLs. */
const REFUSED: [body: Record<string, unknown>, param: string, code?: string][] = [
  [{ events: ["payment.completed", "pay.*"] }, "events[1]"],
  [{ events: ["payment.re*"] }, "events[0]"],
  [{ events: ["PAYMENT.*"] }, "events[0]"],
  [{ url: "http://hooks.example.com/" }, "url"],
  [{ url: "https://10.1.2.3/" }, "url"],
  [{ url: "https://payments.example.com/functions/v1/api-v1-payments/internal/relay" }, "url"],
  // Before the URL is checked.
  [{ url: "https://hooks.example.com/\0" }, "url", "invalid_json"],
];

serviceCase("POST and PUT /v1/webhook_endpoints refuse invalid bodies", async (t, service) => {
  const { id } = await addEndpoint(service, URL);
  for (const [body, param, code = "invalid_parameter"] of REFUSED) {
    await t.step(JSON.stringify(body), async () => {
      const made = await service.call("POST", ENDPOINTS, { body: { url: URL, ...body } });
      assertRefused(made, code, param);
      const updated = await service.call("PUT", `${ENDPOINTS}/${id}`, { body });
      assertRefused(updated, code, param);
    });
  }
  await t.step("nothing was written", async () => {
    const rows = await service.sql`select revision from pay.webhook_endpoints`;
    assert.deepEqual(rows.map(({ revision }) => revision), [1]);
  });
}, { allow_private_webhooks: false, base_url: "https://payments.example.com/functions/v1" });

serviceCase("only test keys may use private addresses, if allowed", async (_, service) => {
  const live = { key: service.live.text };
  const { id } = await addEndpoint(service, URL, {}, live);
  const body = { url: "http://127.0.0.1:3000/hook" };
  await addEndpoint(service, body.url);
  for (
    const refused of [
      await service.call("POST", ENDPOINTS, { body, ...live }),
      await service.call("PUT", `${ENDPOINTS}/${id}`, { body, ...live }),
    ]
  ) assertRefused(refused, "invalid_parameter", "url");
});

const UPDATES: [name: string, body: Record<string, unknown>, changed?: Record<string, unknown>][] =
  [
    ["nothing", {}],
    ["the url", { url: "https://HOOKS.example.com:443/x" }, { url: "https://hooks.example.com/x" }],
    ["the events", { events: ["ping"] }],
    ["the description", { description: "new" }],
    ["no description", { description: null }],
    ["the metadata", { metadata: { b: "2" } }],
    ["off", { status: "disabled" }, { status: "disabled", disabled_reason: "manual" }],
    ["off again", { status: "disabled" }, { status: "disabled", disabled_reason: "manual" }],
    ["another field while disabled", { description: "off" }],
    ["on", { status: "enabled" }, { status: "enabled", disabled_reason: null }],
    ["a description that looks like a stored secret", { description: "whsec_reference:1:00ff" }],
  ];

serviceCase("PUT /v1/webhook_endpoints/{id} changes the given fields", async (t, service) => {
  await service.setClock(Date.parse(AT));
  const first = {
    description: "whsec_reference:1:00ff",
    metadata: { a: "1", secret: "whsec_reference:1:00ff" },
    events: ["payment.*"],
  };
  const { id, secret, ...made } = await addEndpoint(service, URL, first);
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.deepEqual({ ...made, ...first }, made);
  let before = await service.get(`${ENDPOINTS}/${id}`);
  await service.setClock(Date.parse(LATER));
  for (const [name, body, changed = body] of UPDATES) {
    await t.step(name, async () => {
      const idempotency_key = name.replaceAll(" ", "-");
      const put = () => service.call("PUT", `${ENDPOINTS}/${id}`, { body, idempotency_key });
      const response = await put();
      assert.equal(response.status, 200, response.text);
      assert.deepEqual(response.body, { ...before, ...changed, updated_at: LATER });
      const read = await service.call("GET", `${ENDPOINTS}/${id}`);
      assert.equal(read.text, response.text);
      assert.equal((await put()).text, response.text);
      before = response.body;
    });
  }
});

/** The operations on one endpoint, with a valid body for each. */
function operationsOn(id: string, payment_id: string): [string, string, unknown?][] {
  return [
    ["GET", `${ENDPOINTS}/${id}`],
    ["PUT", `${ENDPOINTS}/${id}`, { description: "x" }],
    ["DELETE", `${ENDPOINTS}/${id}`],
    ["POST", `${ENDPOINTS}/${id}/rotate_secret`, {}],
    ["POST", TRIGGER, { endpoint_id: id, event: "ping", payment_id }],
  ];
}

serviceCase("DELETE /v1/webhook_endpoints/{id} removes the endpoint", async (t, service) => {
  const { id } = await addEndpoint(service, URL);
  const { body: payment } = await service.make({ outcome: "pending" });
  const { status, body } = await service.call("DELETE", `${ENDPOINTS}/${id}`);
  assert.deepEqual([status, body], [200, { id, object: "webhook_endpoint", deleted: true }]);
  for (const [method, path, body] of operationsOn(id, payment.id)) {
    await t.step(`${method} ${path.replace(id, "{id}")} is 404`, async () => {
      assertRefused(await service.call(method, path, { body }), "not_found");
    });
  }
  assert.deepEqual((await service.get(ENDPOINTS)).data, []);
});

serviceCase("the API without a webhook master secret", async (t, service) => {
  const id = `whe_${"0".repeat(26)}`;
  const [, ...changes] = operationsOn(id, `pay_${"0".repeat(26)}`);
  changes.push(["POST", ENDPOINTS, { url: URL }]);
  for (const [method, path, body] of changes) {
    await t.step(`${method} ${path.replace(id, "{id}")} is 503`, async () => {
      const response = await service.call(method, path, { body });
      assertRefused(response, "service_unavailable");
      assert.match(response.headers.get("Retry-After") ?? "", /^[1-9]\d*$/);
    });
  }
  await t.step("endpoints and deliveries are readable, and payments can be created", async () => {
    await service.get(ENDPOINTS);
    await service.get(DELIVERIES);
    assert.equal((await service.pay()).status, 201);
  });
}, NO_DISPATCHER);

serviceCase("a sandbox has at most 64 endpoints, a live environment 16", async (t, service) => {
  const create = (options = {}) =>
    service.call("POST", ENDPOINTS, { body: { url: URL }, ...options });
  await t.step("however many are created at once", async () => {
    const responses = await Promise.all(
      Array.from({ length: 70 }, (_, i) => create(i % 2 ? { idempotency_key: `create-${i}` } : {})),
    );
    const statuses = responses.map(({ status }) => status);
    assert.equal(statuses.filter((status) => status === 201).length, MAX_ENDPOINTS, `${statuses}`);
    assert.equal(statuses.filter((status) => status === 400).length, 6, `${statuses}`);
    const rows = await service.sql`select slot from pay.webhook_endpoints order by slot`;
    assert.deepEqual(rows.map(({ slot }) => slot), rows.map((_, i) => i));
    assert.equal(rows.length, MAX_ENDPOINTS);
  });
  await t.step("one more is 400 and stores nothing, also in other environments", async () => {
    const key = service.live.text;
    for (let i = 0; i < MAX_LIVE_ENDPOINTS; i++) await addEndpoint(service, URL, {}, { key });
    for (const [most, options] of [[MAX_ENDPOINTS, {}], [MAX_LIVE_ENDPOINTS, { key }]] as const) {
      const refused = await create({ idempotency_key: "too-many", ...options });
      assertRefused(refused, "invalid_parameter", "url");
      assert.match(refused.body.error.message, new RegExp(`${most}`));
    }
    assert.equal(await service.count("idempotency_keys where key = 'too-many'"), 0);
    await addEndpoint(service, URL, {}, { key: service.other.text });
  });
  await t.step("an event has a delivery with an id of its own for each", async () => {
    const stem_of_first = /^whd_[0-9a-hjkmnp-tv-z]{24}/;
    await service.pay({ amount: 1000 });
    const rows = await service.sql<{ id: string; event_id: string }[]>`
      select id, event_id from pay.webhook_deliveries where event_type = 'payment.created'`;
    assert.equal(new Set(rows.map(({ id }) => id)).size, MAX_ENDPOINTS);
    assert.equal(new Set(rows.map(({ event_id }) => event_id)).size, 1);
    for (const { id } of rows) assert.match(id, idPattern("whd_"));
    assert.equal(new Set(rows.map(({ id }) => stem_of_first.exec(id)![0])).size, 1);
  });
  await t.step("deleting one makes room, and the refused key can be used", async () => {
    const { id } = (await service.get(`${ENDPOINTS}?limit=1`)).data[0];
    assert.equal((await service.call("DELETE", `${ENDPOINTS}/${id}`)).status, 200);
    assert.equal((await create({ idempotency_key: "too-many" })).status, 201);
  });
});

serviceCase("the disposable sandboxes of an account have 2 000 endpoints", async (t, service) => {
  const { sql } = service;
  const SANDBOXES = "/api-v1-sandbox/v1/sandboxes";
  const open = async () => await service.post(SANDBOXES, {});
  const [first, second] = [await open(), await open()];
  await sql`alter table pay.webhook_endpoints drop constraint webhook_endpoints_slot_key`;
  await sql`
    insert into pay.webhook_endpoints (environment_id, id, slot, url, events, status, secrets,
      revision, created_at, body)
    select ${first.id}, 'whe_' || n, 63, ${URL}, '{*}', 'enabled', '[]', 1, now(), '{}'
    from generate_series(1, 1998) n`;
  const create = () =>
    service.call("POST", ENDPOINTS, { key: second.test_key, body: { url: URL } });
  await t.step("two more are taken, and the next are refused", async () => {
    const responses = await Promise.all([create(), create(), create(), create()]);
    const statuses = responses.map(({ status }) => status);
    assert.deepEqual(statuses.toSorted(), [201, 201, 400, 400]);
    const refused = responses.find(({ status }) => status === 400)!;
    assertRefused(refused, "invalid_parameter", "url");
    assert.match(refused.body.error.message, /2000 webhook endpoints/);
  });
  await t.step("the sandbox that made them has its own limit", async () => {
    await addEndpoint(service, URL);
  });
  await t.step("the end of a sandbox makes room", async () => {
    await service.call("DELETE", `${SANDBOXES}/${first.id}`);
    const made = await create();
    assert.equal(made.status, 201, made.text);
  });
});
