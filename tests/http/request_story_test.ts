/**
 * The resource that a request has made, the declared fault that decided it, and its events
 * (contract §5): also of a request whose response is an error, by any clock of the sandbox.
 */

import assert from "node:assert/strict";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { declare } from "../support/service/declared_faults.ts";
import type { CallOptions, TestService } from "../support/service/service.ts";
import {
  assertRefused,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { addInbox } from "../support/webhook/inbox_reader.ts";

const V1 = "/api-v1-payments/v1";
const EVENTS = `${V1}/events`;
const LOG = `${SANDBOX}/requests`;
const UNPAID = { amount: 700, currency: "EUR" };
const PAID = { ...UNPAID, outcome: "success" };
/** The body of the event of the request, among thousands. */
const EVENT = '{"n":0}';
const LOGGED = { request_log: true };

// deno-lint-ignore no-explicit-any
async function list(service: TestService, path: string): Promise<any[]> {
  const body = await service.get(path);
  assert.equal(body.has_more, false);
  return body.data;
}

/** A request, and its entry in the log. */
interface Story {
  name: string;
  method?: string;
  path: string;
  body?: object;
  options?: CallOptions;
  /** What is declared before. `Sandbox-Fault` among the headers asks for one too. */
  fault?: { on: string; fault: string; where?: object; delay_ms?: number };
  /** The beginning of the id of the resource. */
  makes: string | null;
  /** The types of its events, oldest first. */
  events: string[];
}

const CREATED = ["payment.created", "payment.completed"];

async function storiesOf(service: TestService): Promise<Story[]> {
  const { id: paid } = await paymentIn(service, "completed");
  const { id: open } = await paymentIn(service, "pending");
  const { id: endpoint_id } = await addInbox(service);
  const create = { path: PAYMENTS, body: PAID, makes: "pay_", events: CREATED };
  const after = { on: "request", fault: "server_error_after" };
  return [
    { ...create, name: "a create" },
    { ...create, name: "a server error after it", fault: after },
    { ...create, name: "a lost connection", fault: { ...after, fault: "connection_lost_after" } },
    { ...create, name: "a delay", fault: { on: "request", fault: "delay", delay_ms: 20 } },
    {
      ...{ ...create, name: "a server error before it", makes: null, events: [] },
      fault: { on: "request", fault: "server_error_before" },
    },
    {
      ...{ ...create, name: "a fault of its own" },
      options: { headers: { "Sandbox-Fault": "server_error_after" } },
    },
    {
      ...{
        ...create,
        name: "a decline by a fault",
        events: ["payment.created", "payment.declined"],
      },
      ...{ body: { ...UNPAID, ...card("4242 4242 4242 4242") } },
      fault: { on: "provider", fault: "declined" },
    },
    {
      ...{
        ...create,
        name: "a decline by a card",
        events: ["payment.created", "payment.declined"],
      },
      body: { ...UNPAID, ...card("4000 0000 0000 0002") },
    },
    { ...create, name: "a refusal", body: { amount: -1 }, makes: null, events: [] },
    {
      ...{
        name: "a refund",
        path: `${PAYMENTS}/${paid}/refund`,
        body: { amount: 1 },
        makes: "re_",
      },
      events: ["refund.created", "refund.completed", "payment.partially_refunded"],
    },
    {
      ...{ name: "a cancel", path: `${PAYMENTS}/${open}/cancel`, body: {}, makes: open },
      ...{ events: ["payment.cancelled"], fault: after },
    },
    { name: "a read", method: "GET", path: `${PAYMENTS}/${paid}`, makes: paid, events: [] },
    { name: "a key", path: `${V1}/api_keys`, body: { name: "CI" }, makes: "key_", events: [] },
    {
      ...{ name: "a trigger", path: `${SANDBOX}/webhooks/trigger`, makes: "whd_" },
      body: { payment_id: paid, event: "payment.completed", endpoint_id },
      events: ["payment.completed"],
    },
  ];
}

async function tell(service: TestService, story: Story): Promise<void> {
  const { method = "POST", path, body, options, fault, makes, events } = story;
  const declared = fault && await declare(service, { ...fault });
  const name = fault?.fault ?? options?.headers?.["Sandbox-Fault"] ?? null;
  const sent = service.call(method, path, { body, ...options });
  if (name === "connection_lost_after") await assert.rejects(sent, /connection is lost/);
  else assert.equal((await sent).headers.get("Sandbox-Fault"), name);
  const { data: [logged] } = await service.get(`${LOG}?limit=1`);
  assert.deepEqual([logged.fault, logged.fault_id], [name, declared?.id ?? null]);
  const { id: request_id, resource_id } = logged;
  assert.equal(resource_id?.slice(0, makes?.length), makes ?? undefined);
  const caused = await list(service, `${EVENTS}?request_id=${request_id}`);
  assert.deepEqual(caused.map(({ type }) => type).toReversed(), events);
  for (const event of caused) assert.equal(event.request.id, request_id);
  if (declared) {
    const found = await list(service, `${LOG}?fault_id=${declared.id}`);
    assert.deepEqual(found.map(({ id }) => id), [request_id]);
  }
  if (makes !== null) {
    const [newest] = await list(service, `${LOG}?resource_id=${resource_id}&limit=100`);
    assert.equal(newest.id, request_id);
  }
}

serviceCase("the story of a request", async (t, service) => {
  for (
    const [clock, body] of [
      ["by the real clock", null],
      ["by a clock that stands", { mode: "frozen" }],
      ["by a clock that was advanced", { mode: "real", advance: 86_400 }],
    ] as const
  ) {
    if (body) await service.call("POST", `${SANDBOX}/clock`, { body });
    for (const story of await storiesOf(service)) {
      await t.step(`${story.name} ${clock}`, () => tell(service, story));
    }
  }
  await t.step("the requests of a payment are those that name it too", async () => {
    const { body: { id } } = await service.pay(PAID);
    await service.call("POST", `${PAYMENTS}/${id}/refund`, { body: { amount: 1 } });
    await service.call("GET", `${PAYMENTS}/${id}/refunds`);
    const found = await list(service, `${LOG}?resource_id=${id}&limit=100`);
    assert.deepEqual(found.map(({ method }) => method), ["GET", "POST", "POST"]);
  });
  await t.step("events of a request and a payment", async () => {
    const { headers, body } = await service.pay(PAID);
    const request_id = headers.get("Request-Id");
    const found = await list(service, `${EVENTS}?request_id=${request_id}&payment_id=${body.id}`);
    assert.equal(found.length, 2);
  });
  await t.step("a wrong id is refused", async () => {
    const response = await service.call("GET", `${EVENTS}?request_id=pay_1`);
    assertRefused(response, "invalid_parameter", "request_id");
  });
}, LOGGED);

serviceCase("GET /v1/events?request_id= reads only the time of the request", async (t, service) => {
  const { sql, key, live } = service;
  /** Events before and after that of the request, each more than a page reads. */
  const fill = (environment_id: string, request_id: string, at: Date) =>
    sql`insert into pay.events (environment_id, id, type, subject_id, created_at, body, request_id)
      select ${environment_id}, left(pay_internal.id_floor('evt_', at), 13) || lpad(n::text, 17, '0'),
        'payment.completed', 'pay_1', at, '{"n":' || n || '}', case n when 0 then ${request_id} end
      from generate_series(-2500, 2500) n,
        lateral (select ${at}::timestamptz + n * interval '1 ms' as at) t`;
  const found = async (request_id: string, key_text: string) => {
    const [page] = await sql`select data, has_more from json_build_array(
      json_build_object('n', 1, 'key_hash', ${parseApiKey(key_text)!.hash}::text, 'at', now(),
        'kind', 'events', 'limit', 10,
        'filters', json_build_object('request_id', ${request_id}::text))) as sent (request),
      pay.list(request::text, request::text)`;
    return [page!.data, page!.has_more];
  };
  const at = new Date(Date.now() - 60_000);
  const [{ id }] = await sql`select pay_internal.id_floor('req_', ${at}) as id` as [{ id: string }];
  await t.step("of a live environment, by the id of the request", async () => {
    await fill(live.environment_id, id, at);
    assert.deepEqual(await found(id, live.text), [EVENT, false]);
  });
  await t.step("of a sandbox, by its log", async () => {
    await fill(key.environment_id, id, at);
    assert.deepEqual(await found(id, key.text), ["", true]);
    await sql`insert into pay.requests (environment_id, id, api_key_id, method, path, status,
        is_replay, duration_us, created_at, decided_at)
      values (${key.environment_id}, ${id}, ${key.id}, 'POST', ${PAYMENTS}, 201, false, 1,
        ${at}, ${at})`;
    assert.deepEqual(await found(id, key.text), [EVENT, false]);
  });
});
