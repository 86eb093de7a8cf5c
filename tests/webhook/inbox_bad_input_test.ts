/** Bad input for inboxes and recovery: a clear error that names the field, and no change. */

import assert from "node:assert/strict";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import { addEndpoint, deliveriesOf, ENDPOINTS } from "../support/webhook/recording_receiver.ts";

const HOOKS = "https://example.com/hooks";
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const time = (at_ms: number) => new Date(at_ms).toISOString();

serviceCase("POST /webhook_endpoints with a wrong delivery", async (t, service) => {
  const cases: [name: string, body: Record<string, unknown>, param: string][] = [
    ["neither a URL nor an inbox", {}, "url"],
    ["delivery url without a URL", { delivery: "url" }, "url"],
    ["a URL together with an inbox", { delivery: "inbox", url: HOOKS }, "url"],
    ["a null URL", { delivery: "inbox", url: null }, "url"],
    ["an unknown delivery", { delivery: "queue" }, "delivery"],
    ["a null delivery", { delivery: null, url: HOOKS }, "delivery"],
  ];
  for (const [name, body, param] of cases) {
    await t.step(`${name}: ${param}`, async () => {
      const refused = await service.call("POST", ENDPOINTS, { body });
      assertRefused(refused, 400, "invalid_parameter", param);
      assert.match(refused.body.error.message, new RegExp(`^"${param}" `));
    });
  }
  assert.deepEqual((await service.call("GET", ENDPOINTS)).body.data, []);
});

serviceCase("PUT /webhook_endpoints/{id} with a wrong delivery", async (t, service) => {
  const inbox = await addInbox(service);
  const url = await addEndpoint(service, HOOKS);
  const cases: [name: string, id: string, body: Record<string, unknown>][] = [
    ["a URL for an inbox", inbox.id, { url: HOOKS }],
    ["a URL together with an inbox", url.id, { delivery: "inbox", url: HOOKS }],
    ["delivery url without a URL", inbox.id, { delivery: "url" }],
  ];
  for (const [name, id, body] of cases) {
    await t.step(`${name}: url`, async () => {
      const before = await service.call("GET", `${ENDPOINTS}/${id}`);
      const refused = await service.call("PUT", `${ENDPOINTS}/${id}`, { body });
      assertRefused(refused, 400, "invalid_parameter", "url");
      assert.equal((await service.call("GET", `${ENDPOINTS}/${id}`)).text, before.text);
    });
  }
});

serviceCase("GET /inbox with a wrong query", async (t, service) => {
  const { id } = await addInbox(service);
  const other = await addInbox(service);
  await service.make({ outcome: "success" });
  const mine = (await readInbox(service, id)).body.next_cursor;
  const theirs = (await readInbox(service, other.id)).body.next_cursor;
  const cases: [name: string, query: string, param: string][] = [
    ["wait=21", "wait=21", "wait"],
    ["wait=-1", "wait=-1", "wait"],
    ["wait=1.5", "wait=1.5", "wait"],
    ["wait=", "wait=", "wait"],
    ["limit=0", "limit=0", "limit"],
    ["limit=101", "limit=101", "limit"],
    ["text that is no cursor", "after=abc", "after"],
    ["an empty cursor", "after=", "after"],
    ["the id of a delivery", `after=${(await deliveriesOf(service))[0].id}`, "after"],
    ["a cursor of another endpoint", `after=${theirs}`, "after"],
    ["a cursor beyond the newest delivery", `after=${mine.replace(/2$/, "3")}`, "after"],
    ["a cursor with 15 digits", `after=${mine.replace(/2$/, "9".repeat(15))}`, "after"],
    ["a cursor with 16 digits", `after=${mine.replace(/2$/, "9".repeat(16))}`, "after"],
  ];
  for (const [name, query, param] of cases) {
    await t.step(`${name}: ${param}`, async () => {
      const refused = await readInbox(service, id, query);
      assertRefused(refused, 400, "invalid_parameter", param);
    });
  }
  await t.step("none of them acknowledges anything", async () => {
    assert.equal((await readInbox(service, id)).body.data.length, 2);
  });
});

serviceCase("GET /inbox of something else", async (t, service) => {
  const { id } = await addInbox(service);
  const url = await addEndpoint(service, HOOKS);
  const live = await addInbox(service, {}, { key: service.live.text });
  const reader = await service.issueKey(service.key.environment_id, { scopes: ["webhooks:read"] });
  const payer = await service.issueKey(service.key.environment_id, { scopes: ["payments:read"] });
  await t.step("an endpoint with a URL: 409", async () => {
    assertRefused(await readInbox(service, url.id), 409, "invalid_state");
  });
  for (
    const [name, key, endpoint] of [
      ["another sandbox's key", service.other.text, id],
      ["a live key for a sandbox's inbox", service.live.text, id],
      ["a test key for a live inbox", service.key.text, live.id],
      ["an unknown id", service.key.text, `whe_${"0".repeat(26)}`],
    ] as const
  ) {
    await t.step(`${name}: 404`, async () => {
      assertRefused(await readInbox(service, endpoint, "", { key }), 404, "not_found");
      const since = time(Date.now() - HOUR_MS);
      const recovered = await service.call("POST", `${ENDPOINTS}/${endpoint}/recover`, {
        key,
        body: { since },
      });
      assertRefused(recovered, 404, "not_found");
    });
  }
  await t.step("a key without webhooks:read: 403", async () => {
    const refused = await readInbox(service, id, "", { key: payer.text });
    assertRefused(refused, 403, "permission_denied");
    assert.equal(refused.body.error.required_scope, "webhooks:read");
  });
  await t.step("a key with webhooks:read reads, but does not acknowledge", async () => {
    await service.make({ outcome: "success" });
    const { status, body } = await readInbox(service, id, "", { key: reader.text });
    assert.deepEqual([status, body.data.length > 0], [200, true]);
    const others = [body.next_cursor, "", "x"].map((after) => `after=${after}`);
    for (const query of [...others, `after=${body.next_cursor}&limit=x`]) {
      const refused = await readInbox(service, id, query, { key: reader.text });
      assertRefused(refused, 403, "permission_denied");
      assert.equal(refused.body.error.required_scope, "webhooks:write");
    }
    const again = await readInbox(service, id, "", { key: reader.text });
    assert.deepEqual(
      again.body.data.map((delivery: { id: string }) => delivery.id),
      body.data.map((delivery: { id: string }) => delivery.id),
    );
  });
  await t.step("a key with webhooks:write acknowledges", async () => {
    const scopes = ["webhooks:write"];
    const { text: key } = await service.issueKey(service.key.environment_id, { scopes });
    const { next_cursor } = (await readInbox(service, id)).body;
    const { status, body } = await readInbox(service, id, `after=${next_cursor}`, { key });
    assert.deepEqual([status, body.data], [200, []]);
    assertRefused(await readInbox(service, id, "", { key }), 403, "permission_denied");
  });
  await t.step("a key with webhooks:read does not recover", async () => {
    const refused = await service.call("POST", `${ENDPOINTS}/${id}/recover`, {
      key: reader.text,
      body: { since: time(Date.now() - HOUR_MS) },
    });
    assertRefused(refused, 403, "permission_denied");
    assert.equal(refused.body.error.required_scope, "webhooks:write");
  });
  await t.step("without a key: 401", async () => {
    assertRefused(await readInbox(service, id, "", { key: null }), 401, "unauthorized");
  });
});

serviceCase("POST /recover with a wrong body", async (t, service) => {
  const { id } = await addInbox(service);
  await service.make({ outcome: "success" });
  const { next_cursor } = (await readInbox(service, id)).body;
  await readInbox(service, id, `after=${next_cursor}`);
  const now = Date.now();
  const hour_ago = time(now - HOUR_MS);
  const cases: [name: string, body: Record<string, unknown>, param: string][] = [
    ["no since", {}, "since"],
    ["since in the future", { since: time(now + HOUR_MS) }, "since"],
    ["since before the retention", { since: time(now - 30 * DAY_MS - HOUR_MS) }, "since"],
    ["since is no time", { since: "yesterday" }, "since"],
    ["since without a time zone", { since: "2026-01-01T00:00:00" }, "since"],
    ["until before since", { since: hour_ago, until: time(now - 2 * HOUR_MS) }, "until"],
    ["an unknown status", { since: hour_ago, status: "pending" }, "status"],
    ["a wrong cursor", { since: hour_ago, starting_after: "pay_1" }, "starting_after"],
  ];
  for (const [name, body, param] of cases) {
    await t.step(`${name}: ${param}`, async () => {
      const path = `${ENDPOINTS}/${id}/recover`;
      const refused = await service.call("POST", path, { body: { status: "all", ...body } });
      assertRefused(refused, 400, "invalid_parameter", param);
    });
  }
  await t.step("none of them recovers anything", async () => {
    assert.deepEqual((await readInbox(service, id)).body.data, []);
  });
});
