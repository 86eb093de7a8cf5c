/**
 * The internal routes: those that wake the dispatcher and retention, and the metrics. A token
 * guards them, and without it they reveal nothing.
 */

import assert from "node:assert/strict";
import type { Settings } from "../../shared/functions/settings.ts";
import { assertRefused, PAYMENTS, serviceCase } from "../support/service/service_case.ts";
import { RELAY_TOKEN } from "../support/service/service.ts";
import {
  addEndpoint,
  deliveriesOf,
  RETENTION,
  settle,
  WAKE,
} from "../support/webhook/recording_receiver.ts";
import { NO_DISPATCHER } from "../support/webhook/dispatcher_polls.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { until } from "../support/common/until.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
const METRICS = "/api-v1-payments/internal/metrics";
const ROUTES = [["POST", WAKE], ["POST", RETENTION], ["GET", METRICS]] as const;

/** Headers without the token, with texts of the same length and of others; null: no header. */
const WRONG: (string | null)[] = [
  null,
  "",
  RELAY_TOKEN,
  `Basic ${RELAY_TOKEN}`,
  "Bearer ",
  `Bearer ${RELAY_TOKEN.slice(0, -1)}`,
  `Bearer ${RELAY_TOKEN}x`,
  `Bearer ${RELAY_TOKEN.toUpperCase()}`,
  `Bearer ${RELAY_TOKEN}, Bearer ${RELAY_TOKEN}`,
  "Bearer null",
];

serviceCase("/internal/… needs its token", async (t, service) => {
  const call = (method: string, path: string, header: string | null) =>
    service.call(method, path, {
      key: null,
      headers: header === null ? {} : { Authorization: header },
    });
  const TOKEN = `Bearer ${RELAY_TOKEN}`;
  for (const [method, path] of ROUTES) {
    for (const header of WRONG) {
      await t.step(`${path}, ${header}: 401`, async () => {
        service.forgetStatements();
        const response = await call(method, path, header);
        assertRefused(response, "unauthorized");
        assert.equal(response.headers.get("WWW-Authenticate"), "Bearer");
        service.assertStatements(0);
      });
    }
    await t.step(`${path} with an API key, or the token in the query: 401`, async () => {
      for (const { text } of [service.key, service.live]) {
        assertRefused(await service.call(method, path, { key: text }), "unauthorized");
      }
      assertRefused(await call(method, `${path}?token=${RELAY_TOKEN}`, null), "unauthorized");
    });
    const others: [method: string, path: string][] = [
      [method, path.replace("inter", "%69nter")],
      [method, path.replace("nal/", "nal%2f")],
      [method === "GET" ? "POST" : "GET", path],
      [method, path.replace("payments", "sandbox")],
    ];
    for (const [method, path] of others) {
      await t.step(`${method} ${path}: 401 with the token, 404 with a key`, async () => {
        assertRefused(await call(method, path, TOKEN), "unauthorized");
        assertRefused(await service.call(method, path), "not_found");
      });
    }
  }
  await t.step("the token is refused on other routes", async () => {
    assertRefused(await call("GET", PAYMENTS, TOKEN), "unauthorized");
  });
  await t.step("no log line contains the token", () => {
    assert.ok(!JSON.stringify(service.logs).includes(RELAY_TOKEN));
    assert.ok(service.logs.some(({ route }) => route === `POST ${WAKE}`));
  });
});

webhookCase("POST /internal/relay delivers due events", async (_, service, hooks) => {
  await service.setClock(AT);
  await addEndpoint(service, hooks.url("/"));
  // The alarm of the dispatcher itself rings after ten seconds of the machine.
  hooks.judge = () => new Response(null, { status: 503, headers: { "Retry-After": "10" } });
  await service.make({ outcome: "pending" });
  await settle(service);
  hooks.judge = () => 200;
  await service.setClock(AT + 10_000);
  // pg_net sends a body. A person may send none.
  for (const body of [{}, undefined]) {
    const response = await service.call("POST", WAKE, { key: RELAY_TOKEN, body });
    assert.deepEqual([response.status, response.body], [202, { status: "awake" }]);
  }
  await until("it has arrived", () => hooks.arrivals.length === 2, 5_000);
  await settle(service);
  assert.equal((await deliveriesOf(service))[0].status, "delivered");
});

const UNSET = { relay_token: undefined } as unknown as Partial<Settings>;
serviceCase("/internal/… without a configured token is 401", async (t, service) => {
  for (const [method, path] of ROUTES) {
    for (const token of ["null", "undefined", "", RELAY_TOKEN]) {
      await t.step(`${path}, "${token}"`, async () => {
        const headers = { Authorization: `Bearer ${token}` };
        const response = await service.call(method, path, { key: null, headers });
        assertRefused(response, "unauthorized");
      });
    }
  }
}, UNSET);

const statements: string[] = [];

serviceCase("without a master secret the relay says why it is 503", async (_, service) => {
  const response = await service.call("POST", WAKE, { key: RELAY_TOKEN });
  assertRefused(response, "service_unavailable");
  assert.match(response.body.error.message, /WEBHOOK_MASTER_SECRET/);
  assert.ok(response.headers.has("Retry-After"));
  await until(
    "the work of providers goes on",
    () => statements.some((text) => text.includes("pay.lease_provider_work")),
  );
}, { ...NO_DISPATCHER, on_statement: (text) => void statements.push(text) });
