/** Webhook endpoints over HTTP (contract §4): create, read, update, delete, and their refusals. */

import assert from "node:assert/strict";
import type { Settings } from "../../shared/functions/settings.ts";
import { BASE_URL, type TestService } from "../support/service/service.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import {
  addEndpoint,
  DELIVERIES,
  ENDPOINTS,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";

const AT = "2026-08-09T10:11:12.013Z";
const LATER = "2026-08-09T10:11:13.000Z";
const URL = "https://hooks.example.com/payments";

/** All operations on one endpoint, with a valid body for each. */
const OPERATIONS: [method: string, suffix: string, body?: unknown][] = [
  ["GET", ""],
  ["PUT", "", { description: "x" }],
  ["DELETE", ""],
  ["POST", "/rotate_secret", {}],
];

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
    assert.equal(
      made.headers.get("Location"),
      `${BASE_URL}/api-v1-payments/v1/webhook_endpoints/${id}`,
    );
    const read = await service.call("GET", `${ENDPOINTS}/${id}`);
    assert.deepEqual([read.status, read.body], [200, { id, ...rest }]);
    const { body: list } = await service.call("GET", ENDPOINTS);
    assert.deepEqual(list.data, [{ id, ...rest }]);
  });
  await t.step("sets the defaults", async () => {
    const { body } = await service.call("POST", ENDPOINTS, { body: { url: URL } });
    const { events, description, metadata } = body;
    assert.deepEqual([events, description, metadata], [["*"], null, {}]);
  });
  await t.step("accepts every type and pattern, and lists a repeated type once", async () => {
    const events = [...EVENT_TYPES, "*", "payment.*", "refund.*", "transfer.*", "payment.created"];
    const { body } = await service.call("POST", ENDPOINTS, { body: { url: URL, events } });
    assert.deepEqual(body.events, events.slice(0, -1));
  });
});

const BAD_BODIES: [name: string, body: Record<string, unknown>, param: string][] = [
  ["no url", {}, "url"],
  ["a url that is no text", { url: 5 }, "url"],
  ["an unknown kind", { url: URL, events: ["payment.paid"] }, "events[0]"],
  ["an unknown pattern", { url: URL, events: ["payment.completed", "pay.*"] }, "events[1]"],
  ["a pattern within a name", { url: URL, events: ["payment.re*"] }, "events[0]"],
  ["an upper-case kind", { url: URL, events: ["PAYMENT.*"] }, "events[0]"],
  ["an empty kind", { url: URL, events: [""] }, "events[0]"],
  ["no kind", { url: URL, events: [] }, "events"],
  ["kinds that are no list", { url: URL, events: "*" }, "events"],
  ["too many kinds", { url: URL, events: Array(100).fill("*") }, "events"],
  ["a long description", { url: URL, description: "x".repeat(501) }, "description"],
  ["metadata that is no text", { url: URL, metadata: { a: 1 } }, "metadata.a"],
];
serviceCase("POST and PUT /v1/webhook_endpoints refuse invalid bodies", async (t, service) => {
  const { id } = await addEndpoint(service, URL);
  for (const [name, body, param] of BAD_BODIES) {
    await t.step(name, async () => {
      assertRefused(
        await service.call("POST", ENDPOINTS, { body }),
        400,
        "invalid_parameter",
        param,
      );
      if (name === "no url") return;
      const updated = await service.call("PUT", `${ENDPOINTS}/${id}`, { body });
      assertRefused(updated, 400, "invalid_parameter", param);
    });
  }
  await t.step("an unknown status", async () => {
    const updated = await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { status: "off" } });
    assertRefused(updated, 400, "invalid_parameter", "status");
  });
  await t.step("nothing was written", async () => {
    const rows = await service.sql`select revision from pay.webhook_endpoints`;
    assert.deepEqual(rows.map(({ revision }) => revision), [1]);
  });
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
  ];
serviceCase("PUT /v1/webhook_endpoints/{id} changes the given fields", async (t, service) => {
  await service.setClock(Date.parse(AT));
  const first = { description: "old", metadata: { a: "1" }, events: ["payment.*"] };
  const { id } = await addEndpoint(service, URL, first);
  let { body: before } = await service.call("GET", `${ENDPOINTS}/${id}`);
  await service.setClock(Date.parse(LATER));
  for (const [name, body, changed = body] of UPDATES) {
    await t.step(name, async () => {
      const response = await service.call("PUT", `${ENDPOINTS}/${id}`, { body });
      assert.equal(response.status, 200, response.text);
      assert.deepEqual(response.body, { ...before, ...changed, updated_at: LATER });
      const read = await service.call("GET", `${ENDPOINTS}/${id}`);
      assert.equal(read.text, response.text);
      before = response.body;
    });
  }
});

serviceCase("a text that looks like a stored secret stays as it is", async (_, service) => {
  const description = "whsec_reference:1:00ff";
  const made = await service.call("POST", ENDPOINTS, {
    body: { url: URL, description, metadata: { secret: description } },
  });
  assert.deepEqual([made.body.description, made.body.metadata], [description, {
    secret: description,
  }]);
  assert.match(made.body.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  const path = `${ENDPOINTS}/${made.body.id}`;
  const updated = await service.call("PUT", path, { body: {}, idempotency_key: "u" });
  assert.equal(updated.body.description, description);
  const replayed = await service.call("PUT", path, { body: {}, idempotency_key: "u" });
  assert.equal(replayed.text, updated.text);
});

serviceCase("GET /v1/webhook_endpoints pages, newest first", async (_, service) => {
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.unshift((await addEndpoint(service, `${URL}/${i}`)).id);
  const first = await service.call("GET", `${ENDPOINTS}?limit=3`);
  const { data, has_more, next_cursor } = first.body;
  assert.deepEqual([data.map(({ id }: { id: string }) => id), has_more], [ids.slice(0, 3), true]);
  const { body: rest } = await service.call(
    "GET",
    `${ENDPOINTS}?limit=3&starting_after=${next_cursor}`,
  );
  assert.deepEqual(rest.data.map(({ id }: { id: string }) => id), ids.slice(3));
  assert.deepEqual([rest.has_more, rest.next_cursor], [false, null]);
});

serviceCase("DELETE /v1/webhook_endpoints/{id} removes the endpoint", async (t, service) => {
  const { id } = await addEndpoint(service, URL);
  const { body: payment } = await service.make({ outcome: "pending" });
  await t.step("returns the deleted endpoint", async () => {
    const gone = await service.call("DELETE", `${ENDPOINTS}/${id}`);
    assert.deepEqual([gone.status, gone.body], [200, {
      id,
      object: "webhook_endpoint",
      deleted: true,
    }]);
  });
  for (const [method, suffix, body] of OPERATIONS) {
    await t.step(`${method} …${suffix} is 404`, async () => {
      assertRefused(
        await service.call(method, `${ENDPOINTS}/${id}${suffix}`, { body }),
        404,
        "not_found",
      );
    });
  }
  await t.step("a trigger is 404", async () => {
    const body = { endpoint_id: id, event: "ping", payment_id: payment.id };
    assertRefused(await service.call("POST", TRIGGER, { body }), 404, "not_found");
  });
  await t.step("no list contains it", async () => {
    assert.deepEqual((await service.call("GET", ENDPOINTS)).body.data, []);
  });
});

serviceCase(
  "a foreign endpoint id gets the same response as an unknown one",
  async (t, service) => {
    const { id } = await addEndpoint(service, URL, {}, { key: service.other.text });
    const { body: payment } = await service.make({ outcome: "pending" });
    const unknown = `whe_${"0".repeat(26)}`;
    const cases: [name: string, send: (id: string) => ReturnType<TestService["call"]>][] = [
      ...OPERATIONS.map(([method, suffix, body]) =>
        [
          `${method} …${suffix}`,
          (id: string) => service.call(method, `${ENDPOINTS}/${id}${suffix}`, { body }),
        ] as [string, (id: string) => ReturnType<TestService["call"]>]
      ),
      ["trigger", (id) =>
        service.call("POST", TRIGGER, {
          body: { endpoint_id: id, event: "ping", payment_id: payment.id },
        })],
      ["cursor", (id) => service.call("GET", `${ENDPOINTS}?starting_after=${id}`)],
      ["filter", (id) => service.call("GET", `${DELIVERIES}?endpoint_id=${id}`)],
    ];
    const timeless = (text: string, id: string) =>
      text.replace(/"request_id":"[^"]+"/, "").replaceAll(id, "{id}");
    for (const [name, send] of cases) {
      await t.step(name, async () => {
        const [foreign, none] = [await send(id), await send(unknown)];
        assert.equal(foreign.status, none.status);
        assert.equal(timeless(foreign.text, id), timeless(none.text, unknown));
      });
    }
    await t.step("the foreign endpoint has not changed", async () => {
      const read = await service.call("GET", `${ENDPOINTS}/${id}`, { key: service.other.text });
      assert.deepEqual([read.body.status, read.body.description], ["enabled", null]);
    });
  },
);

serviceCase("the API without a webhook master secret", async (t, service) => {
  const id = `whe_${"0".repeat(26)}`;
  const cases: [string, string, unknown][] = [
    ["POST", ENDPOINTS, { url: URL }],
    ["PUT", `${ENDPOINTS}/${id}`, {}],
    ["DELETE", `${ENDPOINTS}/${id}`, {}],
    ["POST", `${ENDPOINTS}/${id}/rotate_secret`, {}],
    ["POST", TRIGGER, { endpoint_id: id, event: "ping", payment_id: `pay_${"0".repeat(26)}` }],
  ];
  for (const [method, path, body] of cases) {
    await t.step(`${method} ${path.replace(id, "{id}")} is 503`, async () => {
      const response = await service.call(method, path, { body });
      assertRefused(response, 503, "service_unavailable");
      assert.match(response.headers.get("Retry-After") ?? "", /^[1-9]\d*$/);
    });
  }
  await t.step("endpoints and deliveries are readable, and payments can be created", async () => {
    assert.equal((await service.call("GET", ENDPOINTS)).status, 200);
    assert.equal((await service.call("GET", DELIVERIES)).status, 200);
    assert.equal((await service.pay()).status, 201);
  });
  await t.step("a request without a key is still 401", async () => {
    const response = await service.call("POST", ENDPOINTS, { body: { url: URL }, key: null });
    assertRefused(response, 401, "unauthorized");
  });
}, { webhook_master_secret: undefined } as unknown as Partial<Settings>);
