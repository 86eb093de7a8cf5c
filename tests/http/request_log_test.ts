/**
 * `GET /requests` (contract §5): the log of the requests of a sandbox. It is written behind the
 * responses, belongs to one sandbox, and has no text of the client but the idempotency key.
 */

import assert from "node:assert/strict";
import { untilWaiting } from "../support/database/lock_waits.ts";
import { purgeAll } from "../support/database/purge.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import {
  assertRefused,
  card,
  paymentIn,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import { ENDPOINTS } from "../support/webhook/recording_receiver.ts";

const V1 = "/api-v1-payments/v1";
const LOG = `${SANDBOX}/requests`;
const CREATE = { amount: 700, currency: "EUR" };
const LOGGED = { request_log: true };
const UNKNOWN = "pay_" + "0".repeat(26);
const ID = /[a-z]+_[0-9a-z]{26}/;
/** The resource at the beginning of a response, or in the error of a decline. */
const MADE = /(^|"payment":)\{"id":"[^"]+/;

// deno-lint-ignore no-explicit-any
async function read(service: TestService, query = "", key = service.key.text): Promise<any[]> {
  return (await service.get(`${LOG}${query}`, { key })).data;
}

/** The parts of a line that are not those of a read that succeeds. */
interface Line {
  method?: string;
  path: string;
  query?: string;
  status?: number;
  error_code?: string;
  idempotency_key?: string;
  idempotent_replay?: boolean;
}

serviceCase("GET /requests has a line for each response, newest first", async (t, service) => {
  const { id } = await paymentIn(service, "completed");
  const { text: narrow } = await service.issueKey(service.key.environment_id, {
    scopes: ["payments:read"],
  });
  const get = (path: string) => () => service.call("GET", path);
  const pay = (body: Record<string, unknown>, idempotency_key?: string) => () =>
    service.pay(body, idempotency_key ? { idempotency_key } : {});
  const made = { method: "POST", path: PAYMENTS };
  const missing = { status: 404, error_code: "not_found" };
  const cases: [name: string, ask: () => Promise<TestResponse>, line: Line][] = [
    ["create", pay(CREATE, "k-1"), { ...made, status: 201, idempotency_key: "k-1" }],
    ["replay", pay(CREATE, "k-1"), {
      ...{ ...made, status: 201, idempotency_key: "k-1", idempotent_replay: true },
    }],
    ["conflict", pay({ amount: 1 }, "k-1"), {
      ...{ ...made, status: 409, error_code: "idempotency_conflict", idempotency_key: "k-1" },
    }],
    ["decline", pay(card("4000 0000 0000 0002")), {
      ...{ ...made, status: 402, error_code: "payment_declined" },
    }],
    ["bad body", pay({ amount: -1 }, "k-2"), {
      ...{ ...made, status: 400, error_code: "invalid_parameter", idempotency_key: "k-2" },
    }],
    ["scope", () => service.pay(CREATE, { key: narrow }), {
      ...{ ...made, status: 403, error_code: "permission_denied" },
    }],
    ["get", get(`${PAYMENTS}/${id}`), { path: `${PAYMENTS}/${id}` }],
    ["not found", get(`${PAYMENTS}/${UNKNOWN}`), { path: `${PAYMENTS}/${UNKNOWN}`, ...missing }],
    ["bad id", get(`${PAYMENTS}/4242424242424242`), { path: `${PAYMENTS}/{id}`, ...missing }],
    ["no route", get(`${V1}/paymets/Jane.Doe/4242?x=1`), {
      ...{ path: `${V1}/paymets/***/***`, ...missing },
    }],
    ["encoded key", get(`${V1}/idempotency_keys/k-1`), { path: `${V1}/idempotency_keys/{key}` }],
    ["no customer", get(`${PAYMENTS}?customer=jane`), {
      ...{ path: PAYMENTS, query: "customer=***", status: 400, error_code: "invalid_parameter" },
    }],
    ...[
      ["limit=3&status=completed&reference=jane%20doe", "limit=3&status=completed&reference=***"],
      ["search=jane", "search=***"],
      ["customer=jane%40example.com&limit=3", "customer=***&limit=3"],
      ["customer_id=jane", "customer_id=***"],
    ].map(([sent, query]): [string, () => Promise<TestResponse>, Line] => [
      `query ${query}`,
      get(`${PAYMENTS}?${sent}`),
      { path: PAYMENTS, query: query! },
    ]),
  ];
  for (const [name, ask, line] of cases) {
    await t.step(name, async () => {
      const response = await ask();
      const [shown] = await read(service, "?limit=1");
      const { created_at, duration_ms, api_key_id, ...rest } = shown;
      assert.deepEqual(rest, {
        id: response.headers.get("Request-Id"),
        object: "request",
        method: "GET",
        query: null,
        status: 200,
        error_code: null,
        idempotency_key: null,
        idempotent_replay: false,
        source: "program",
        resource_id: ID.exec(response.text.match(MADE)?.[0] ?? line.path)?.[0] ?? null,
        fault: null,
        fault_id: null,
        ...line,
      });
      assert.equal(response.status, rest.status);
      assert.ok(duration_ms > 0 && duration_ms < 60_000);
      assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
      assert.equal(api_key_id === service.key.id, name !== "scope");
    });
  }
  await t.step("reading the log is not in it", async () => {
    assert.ok((await read(service, "?limit=100")).every(({ path }) => path !== LOG));
  });
  await t.step("reading an inbox is not in it", async () => {
    const { id } = await addInbox(service);
    for (const query of ["", "wait=99", "after=inb_1"]) await readInbox(service, id, query);
    await readInbox(service, `whe_${"0".repeat(26)}`);
    const paths: string[] = (await read(service, "?limit=100")).map(({ path }) => path);
    assert.equal(paths[0], ENDPOINTS);
    assert.ok(paths.every((path) => !path.endsWith("/inbox")));
  });
}, LOGGED);

serviceCase("GET /requests has filters and a cursor", async (t, service) => {
  for (let i = 0; i < 5; i++) await service.pay(CREATE, { idempotency_key: `key-${i % 2}` });
  await service.call("GET", `${PAYMENTS}/${UNKNOWN}`);
  await service.pay(CREATE, { headers: { "Sec-Fetch-Site": "same-origin" } });
  const all = await read(service, "?limit=100");
  // Requests of one millisecond stand in any order.
  const sources = all.map(({ source }) => source).sort();
  assert.deepEqual(sources, [...Array(6).fill("program"), "web_page"]);
  /** [query, member of the lines that match, its value, their number] */
  const filters: [query: string, member: string, value: unknown, count: number][] = [
    ["status=4xx", "status", 404, 1],
    ["status=5xx", "status", 500, 0],
    ["status=error", "status", 404, 1],
    ["source=program", "source", "program", 6],
    ["source=web_page", "source", "web_page", 1],
  ];
  for (const [query, member, value, count] of filters) {
    await t.step(query, async () => {
      const found = await read(service, `?limit=100&${query}`);
      assert.deepEqual(found, all.filter((line) => line[member] === value));
      assert.equal(found.length, count);
    });
  }
  for (const query of ["status=4XX", "status=99", "method=get"]) {
    const refused = await service.call("GET", `${LOG}?${query}`);
    assertRefused(refused, "invalid_parameter", query.split("=")[0]);
  }
}, LOGGED);

serviceCase("GET /requests/{id} shows the bodies without secrets", async (t, service) => {
  /** Sends a request and reads it from the log. */
  const logged = async (sent: ReturnType<typeof service.call>) => {
    const response = await sent;
    const id = response.headers.get("Request-Id")!;
    const { status, body, text } = await service.call("GET", `${LOG}/${id}`);
    assert.equal(status, 200, text);
    return { response, body, text };
  };
  const CARD = { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "987" };
  await t.step("a create by card", async () => {
    const { response, body } = await logged(service.pay({
      ...CREATE,
      description: "Two chairs",
      metadata: { cart: "7" },
      card: CARD,
      unknwn_member: "secret",
    }, { idempotency_key: "k-1" }));
    assert.deepEqual(body.request_body, {
      ...CREATE,
      description: "Two chairs",
      metadata: { cart: "7" },
      card: { ...CARD, number: "…", cvc: "…" },
      unknwn_member: "…",
    });
    assert.deepEqual(body.response_body, response.body);
    const { request_body: _, response_body: __, ...line } = body;
    assert.deepEqual(line, (await read(service, "?limit=1"))[0]);
  });
  await t.step("an idempotency key that is an IBAN, and one that is a UUID", async () => {
    for (const idempotency_key of ["NL91ABNA0417164300", "ad12cdef-3456-4789-8abc-def012345678"]) {
      const { body } = await logged(service.pay({}, { idempotency_key }));
      const shown = idempotency_key.startsWith("NL") ? "…" : idempotency_key;
      assert.equal(body.idempotency_key, shown);
    }
  });
  await t.step("secrets of endpoints and keys", async () => {
    const { response, body, text } = await logged(
      service.call("POST", ENDPOINTS, { body: { delivery: "inbox" } }),
    );
    assert.match(response.body.secret, /^whsec_/);
    assert.equal(body.response_body.secret, "…");
    assert.ok(!text.includes(response.body.secret));
    const made = await logged(service.call("POST", `${SANDBOX}/sandboxes`, { body: {} }));
    assert.ok(!made.text.includes(made.response.body.test_key));
    assert.equal(made.body.response_body.test_key, "…");
  });
  await t.step("a body of more than 16 KiB is not stored", async () => {
    const metadata = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => [`name_${i}`, "é".repeat(450)]),
    );
    const { body } = await logged(service.pay({ ...CREATE, metadata }));
    assert.deepEqual([body.request_body, body.response_body], [null, null]);
  });
  await t.step("of a second, those of the first 20 requests are stored", async () => {
    await service.setClock(Date.now() + 60_000);
    for (let i = 0; i < 22; i++) await service.pay(CREATE);
    await service.deps.request_log.flush();
    const rows = await service.sql`select request_body is not null as has_body from pay.requests
      where environment_id = ${service.key.environment_id} order by id desc limit 22`;
    assert.equal(rows.filter(({ has_body }) => has_body).length, 20);
  });
}, LOGGED);

serviceCase("GET /requests shows one sandbox, and no live one", async (t, service) => {
  await service.pay(CREATE, { idempotency_key: "mine" });
  await service.pay(CREATE, { key: service.other.text, idempotency_key: "theirs" });
  await service.call("GET", PAYMENTS, { key: service.live.text });
  await t.step("a live key is refused, and nothing of it is logged", async () => {
    service.forgetStatements();
    const response = await service.call("GET", LOG, { key: service.live.text });
    assertRefused(response, "test_key_required");
    service.assertStatements(0);
    const { environment_id } = service.live;
    assert.equal(await service.count(`requests where environment_id = '${environment_id}'`), 0);
  });
  await t.step("the database refuses entries of live keys, and of keys elsewhere", async () => {
    const { key, other, live } = service;
    for (const [at, of] of [[live, live], [key, other], [live, key], [key, live]] as const) {
      service.deps.request_log.logRequest({
        environment_id: at.environment_id,
        api_key_id: of.id,
        id: `req_${"1".repeat(26)}`,
        method: "GET",
        path: PAYMENTS,
        status: 200,
        duration_us: 1,
        at: new Date().toISOString(),
      });
    }
    await service.deps.request_log.flush();
    assert.equal(await service.count("requests where id like 'req_111%'"), 0);
  });
  await t.step("a request without a valid key is nobody's", async () => {
    const before = await service.count("requests");
    await service.call("GET", PAYMENTS, { key: null });
    await service.call("GET", PAYMENTS, { key: "sk_test_wrong" });
    await service.deps.request_log.flush();
    assert.equal(await service.count("requests"), before);
  });
  await t.step("reads of web pages are left out, changes are not", async () => {
    const page = { Origin: "http://localhost:3000" };
    await service.call("GET", PAYMENTS, { headers: page });
    await service.call("GET", PAYMENTS, { headers: { "Sec-Fetch-Site": "same-origin" } });
    await service.pay(CREATE, { headers: page, idempotency_key: "page" });
    const lines = await read(service);
    assert.deepEqual(lines.map(({ idempotency_key }) => idempotency_key), ["page", "mine"]);
  });
  await t.step("a reset empties it, also of requests that wait", async () => {
    await service.call("POST", `${SANDBOX}/reset`);
    assert.deepEqual(await read(service), []);
    assert.equal((await read(service, "", service.other.text)).length, 1);
    await service.pay(CREATE, { idempotency_key: "after" });
    const lines = await read(service);
    assert.deepEqual(lines.map(({ idempotency_key }) => idempotency_key), ["after"]);
  });
}, LOGGED);

serviceCase("GET /requests has refusals by the rate limit", async (_, service) => {
  const responses = await Promise.all(
    Array.from({ length: 8 }, () => service.call("GET", PAYMENTS)),
  );
  const limited = responses.filter(({ status }) => status === 429).length;
  assert.ok(limited > 0);
  await service.deps.request_log.flush();
  const logged = "requests where status = 429 and error_code = 'rate_limited'";
  assert.equal(await service.count(logged), limited);
}, { ...LOGGED, rate_limit: 2 });

serviceCase("REQUEST_LOG=false writes no log", async (_, service) => {
  await service.pay(CREATE, { idempotency_key: "k" });
  await service.pay(CREATE, { idempotency_key: "k" });
  assert.deepEqual(await read(service), []);
  const shown = await service.get(`${V1}/idempotency_keys/k`);
  assert.equal(shown.replays, 1);
});

serviceCase("the log keeps the last 1000 requests and 30 days", async (t, service) => {
  const fill = (key: { environment_id: string; id: string }, count: number, prefix: string) =>
    service.sql`insert into pay.requests (environment_id, id, api_key_id, method, path, status,
        is_replay, duration_us, created_at)
      select ${key.environment_id}, ${prefix} || lpad(i::text, 17, '0'), ${key.id}, 'GET',
        ${PAYMENTS}, 200, false, 1, now()
      from generate_series(1, ${count}::int) i`;
  const purge = async () => Number((await service.sql`select pay.purge(now(), 100) as n`)[0]!.n);
  const kept = async ({ environment_id }: { environment_id: string }) => {
    const [row] = await service.sql`select count(*)::int as n, min(id) as oldest
      from pay.requests where environment_id = ${environment_id}`;
    return [row!.n, row!.oldest];
  };
  const [now] = await service.sql`select left(pay_internal.id_floor('req_', now()), 13) as prefix,
    left(pay_internal.id_floor('req_', now() - interval '31 days'), 13) as old`;
  await t.step("in steps, the oldest first", async () => {
    await fill(service.key, 1250, now!.prefix);
    assert.deepEqual([await purge(), await purge(), await purge(), await purge()], [
      ...[100, 100, 50, 0],
    ]);
    assert.deepEqual(await kept(service.key), [1000, `${now!.prefix}${"251".padStart(17, "0")}`]);
  });
  await t.step("no more of them are written together", async () => {
    await service.sql`delete from pay.requests`;
    const [{ stored }] = await service.sql<[{ stored: number }]>`
      select pay_internal.stored_requests() as stored`;
    for (let i = 0; i < stored + 5; i++) {
      service.deps.request_log.logRequest({
        ...{ environment_id: service.key.environment_id, api_key_id: service.key.id },
        ...{ id: `${now!.prefix}${String(i).padStart(17, "0")}`, method: "GET", path: PAYMENTS },
        ...{ status: 200, duration_us: 1, at: new Date().toISOString() },
      });
    }
    await service.deps.request_log.flush();
    assert.deepEqual(await kept(service.key), [stored, `${now!.prefix}${"5".padStart(17, "0")}`]);
  });
  await t.step("30 days", async () => {
    await service.sql`delete from pay.requests`;
    await fill(service.key, 30, now!.old);
    await fill(service.key, 5, now!.prefix);
    assert.equal(await purge(), 30);
  });
});

serviceCase("the log stays when the clock of its sandbox goes on", async (_, service) => {
  await service.pay(CREATE);
  await service.call("POST", `${SANDBOX}/clock`, { body: { advance: 31 * 86_400 } });
  await service.sql`select pay.purge()`;
  const paths = (await read(service)).map(({ path }) => path);
  assert.deepEqual(paths, [`${SANDBOX}/clock`, PAYMENTS]);
}, LOGGED);

serviceCase("no entry outlives its disposable sandbox", async (t, service) => {
  const made = await service.post(`${SANDBOX}/sandboxes`, {});
  const { id, test_key: key } = made;
  const [owner] = await service.sql`
    select k.id, k.environment_id from pay.api_keys k
    join pay.environments e on e.id = k.environment_id where e.public_id = ${id}`;
  const log = (sql: TestService["sql"], request: string) =>
    sql`select pay.log_requests(
      ${JSON.stringify([{ k: 0, environment_id: owner!.environment_id, api_key_id: owner!.id }])},
      array[(0, ${`req_${request.repeat(26)}`}, 'GET', ${PAYMENTS}, null, 200, null, null, null, 1,
        null, now(), null, null, null, null, null, null)::pay_internal.logged_request]::text, '[]')`;
  const left = () =>
    service.sql`select id from pay.requests where id like 'req_111%'
    or id like 'req_222%'`;
  await service.call("GET", PAYMENTS, { key });

  await t.step("the end of the sandbox waits for an entry under way, and purges it", async () => {
    let deleted: ReturnType<TestService["call"]>;
    await service.sql.begin(async (sql) => {
      await log(sql as unknown as TestService["sql"], "1");
      deleted = service.call("DELETE", `${SANDBOX}/sandboxes/${id}`);
      await untilWaiting(service.sql, { calls: "pay.end_sandbox" });
    });
    assert.equal((await deleted!).status, 200);
    assert.equal((await left()).length, 1);
  });
  await t.step("an entry that comes later is left out", async () => {
    await log(service.sql, "2");
    assert.deepEqual((await left()).map((row) => row["id"]), [`req_${"1".repeat(26)}`]);
    await purgeAll(service.sql);
    assert.deepEqual([...await left()], []);
  });
}, LOGGED);
