/**
 * Seeded sandboxes: their runs repeat byte for byte (ADR 0023). A run sends the catalogue with the
 * ids of earlier responses, and mistakes. Its requests have no random value.
 */

import assert from "node:assert/strict";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { PAYMENTS_FUNCTION_ROUTES } from "../../shared/functions/payments_function.ts";
import { SANDBOX_ROUTES } from "../../shared/sandbox/sandbox_routes.ts";
import { bodyInParts } from "../../shared/http/body_in_parts.ts";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { CATALOGUE } from "../support/catalogue/requests.ts";
import { fill, saveId } from "../support/catalogue/run_catalogue.ts";
import { accessWith } from "../support/database/store_access.ts";
import type { Route } from "../../shared/http/route.ts";
import { callAsPayer, challengePath, CHECKOUT_URL } from "../support/service/payer_page.ts";
import { startService, type TestResponse, type TestService } from "../support/service/service.ts";
import { assertRefused, PAYMENTS, SANDBOX, serviceCase } from "../support/service/service_case.ts";

const SANDBOXES = `${SANDBOX}/sandboxes`;
const TRANSCRIPT = `${SANDBOX}/transcript`;
const ENDPOINTS = "/api-v1-payments/v1/webhook_endpoints";
/** The transcript of the long run. `UPDATE_TRANSCRIPT=1` writes it again. */
const KEPT = new URL("../vectors/seeded_run.ndjson.gz", import.meta.url);
const REQUESTS = 400;

/** Sends one request of the run with the key of its sandbox, and counts it. */
type Send = (
  method: string,
  path: string,
  options?: { body?: unknown; idempotency_key?: string },
) => Promise<TestResponse>;

const V1 = "/api-v1-payments/v1";

/** Operations of the catalogue that a run leaves out. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  listRequests: "it has real times, and requests are written behind their responses",
  getRequest: "it is an entry of that list",
  readTranscript: "it is no part of a run",
  readChanges: "it is no part of a run",
  resetSandbox: "it begins the run again, so no transcript has it",
};
/** Requests of the catalogue whose responses depend on real time or the speed of a receiver. */
const WITH_REAL_TIME = [
  "createWebhookEndpoint receiver",
  "triggerWebhook inbox",
  "createFault late_webhooks",
  "createFault provider_timeout",
  "setClock advance",
  "setClock real",
];

const CARD = { exp_month: 12, exp_year: 2034, cvc: "123" };
/** Instruments that the catalogue does not have. */
const INSTRUMENTS = [
  { card: { ...CARD, number: "4100 0000 0000 0019" } },
  { card: { ...CARD, number: "4000 0000 0000 0069" } },
  {
    iban: "DE89 3704 0044 0532 0130 00",
    mandate: { id: "M-1", signed_at: "2029-12-01", sequence: "recurring" },
  },
  {
    ...{ iban: "DE89 3704 0044 0532 0130 00", mandate: { signed_at: "2029-12-01" } },
    ...{ customer: { id: "customer-8", email: "b@example.com" }, save: "off_session" },
  },
  { wallet: "0x000000000000000000000000000000000000dEaD" },
];

/** Lists whose items follow from the requests. */
const LISTS = [
  "payments",
  "instruments",
  "checkouts",
  "refunds",
  "transfers",
  "disputes",
  "events",
  "ledger_entries",
  "webhook_endpoints",
  "webhook_deliveries",
  "api_keys",
];

/** An id of each kind that no run has. */
const UNKNOWN = "0".repeat(26);

/** Sends the requests of one round. */
async function runRound(send: Send, round: number): Promise<void> {
  const clock = await send("GET", `${SANDBOX}/clock`);
  const saved = new Map([["since", clock.body.now]]);
  for (const { key, ...request } of CATALOGUE) {
    const { operation, name } = request;
    if (operation in LEFT_OUT || WITH_REAL_TIME.includes(`${operation} ${name}`)) continue;
    // The older of two secrets of the same time is not known.
    if (operation === "rotateApiKey") await advance(send, 1);
    const { method, path, options } = fill(
      key === undefined ? request : { ...request, key: `${key}-${round}` },
      saved,
    );
    const response = await send(method, path, options);
    if (response.status < 300) saveId(request, response.body, saved);
  }
  await send("GET", `${V1}/events?instrument_id=${saved.get("instrument")}`);
  const paid = { amount: 1000 + round, currency: "EUR" };
  for (const instrument of INSTRUMENTS) {
    await send("POST", `${V1}/payments`, { body: { ...paid, ...instrument } });
  }
  const twice = { body: paid, idempotency_key: `twice-${round}` };
  for (const body of [paid, paid, { ...paid, amount: 1 }]) {
    await send("POST", `${V1}/payments`, { ...twice, body });
  }
  await mistakes(send);
  await declaredFault(send, paid);
  // A payment that waits for the payer expires.
  await advance(send, 86_400);
  for (const list of LISTS) {
    const page = await send("GET", `${V1}/${list}?limit=3`);
    const { next_cursor } = page.body;
    if (next_cursor !== null) {
      await send("GET", `${V1}/${list}?limit=2&starting_after=${next_cursor}`);
    }
  }
}

async function advance(send: Send, seconds: number): Promise<void> {
  await send("POST", `${SANDBOX}/clock`, { body: { advance: seconds } });
}

/** A fault that happens once: the first of two creates is refused. */
async function declaredFault(send: Send, body: unknown): Promise<void> {
  const where = { method: "POST", path: "/v1/payments" };
  const declared = await send("POST", `${SANDBOX}/faults`, {
    body: { on: "request", fault: "rate_limited", where },
  });
  for (let i = 0; i < 2; i++) await send("POST", `${V1}/payments`, { body });
  await send("GET", `${SANDBOX}/faults/${declared.body.id}`);
}

async function mistakes(send: Send): Promise<void> {
  await send("POST", `${V1}/payments`, { body: { amount: -1, currency: "EUR" } });
  await send("POST", `${V1}/payments`, { body: "not an object" });
  await send("GET", `${V1}/payments/pay_${UNKNOWN}`);
  await send("GET", `${V1}/nothing`);
  await send("POST", `${SANDBOX}/sandboxes`, { body: { seed: "another" } });
}

async function makeSeeded(service: TestService, seed: string): Promise<string> {
  const made = await service.post(SANDBOXES, { seed, expires_in: 3600 });
  assert.equal(made.seed, seed);
  return made.test_key;
}

/** Sends rounds of requests until there are `count`. Returns their methods and paths. */
async function run(service: TestService, key: string, count: number): Promise<string[]> {
  const sent: string[] = [];
  const send: Send = (method, path, options = {}) => {
    sent.push(`${method} ${path.split("?")[0]}`);
    // As most clients do. A transcript has the responses as they were before.
    const headers = { "Accept-Encoding": "gzip" };
    return service.call(method, path, { ...options, key, headers });
  };
  for (let round = 1; sent.length < count; round++) await runRound(send, round);
  return sent;
}

async function transcriptOf(service: TestService, key: string): Promise<string> {
  const { status, text } = await service.call("GET", TRANSCRIPT, { key });
  assert.equal(status, 200, text);
  return text;
}

async function linesOf(service: TestService, key: string): Promise<string[]> {
  return (await transcriptOf(service, key)).trimEnd().split("\n");
}

/** The numbers of the lines of a transcript. */
async function numbersOf(service: TestService, key: string): Promise<number[]> {
  return (await linesOf(service, key)).map((line) => JSON.parse(line).n);
}

/** Stores lines of 500 characters, about 1 000 bytes. */
async function fillTranscript({ sql }: TestService, seed: string, lines: number): Promise<void> {
  await sql`
    insert into pay.transcript_lines (environment_id, n, line)
    select w.environment_id, n, rpad(n || ' ', 500, 'é')
    from pay.sandbox_settings w cross join generate_series(1, ${lines}::int) n
    where w.seed = ${seed}`;
}

/** Makes a run in a new database. */
async function freshRun(count: number): Promise<{ transcript: string; sent: string[] }> {
  const service = await startService();
  try {
    const key = await makeSeeded(service, "a run of many requests");
    const sent = await run(service, key, count);
    return { transcript: await transcriptOf(service, key), sent };
  } finally {
    await service.close();
  }
}

function assertSameLines(actual: string, expected: string): void {
  const [lines, others] = [actual.split("\n"), expected.split("\n")];
  for (const [at, line] of others.entries()) {
    assert.deepEqual(JSON.parse(lines[at] || "null"), JSON.parse(line || "null"), `line ${at + 1}`);
  }
  assert.ok(actual === expected);
}

async function through(bytes: Uint8Array<ArrayBuffer>, stream: TransformStream) {
  return await new Response(new Blob([bytes]).stream().pipeThrough(stream)).bytes();
}

Deno.test(`a run of ${REQUESTS} requests`, async (t) => {
  const { transcript, sent } = await freshRun(REQUESTS);
  await t.step("is complete", () => {
    const lines = transcript.trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(lines.map(({ n }) => n), sent.map((_, at) => at + 1));
    assert.deepEqual(
      lines.map(({ request }) => `${request.method} ${request.path.split("?")[0]}`),
      sent.map((name) => name.replace(/key_[0-9a-z]{26}/, "key_…")),
    );
    const failed = lines.filter(({ answer }) => answer.status >= 500);
    assert.deepEqual(failed, []);
  });
  await t.step("covers every operation", () => {
    const covers = ({ method, paths }: Route, name: string) =>
      sent.some((request) =>
        paths.some((path) =>
          new RegExp(`^${method} /${name}${path.replaceAll(/:\w+/g, "[^/]+")}$`).test(request)
        )
      );
    const uncovered = [
      ...PAYMENTS_FUNCTION_ROUTES.filter((each) => !covers(each, "api-v1-payments")),
      ...SANDBOX_ROUTES.filter((each) => !covers(each, "api-v1-sandbox")),
    ];
    assert.deepEqual(uncovered.map(({ id }) => id).sort(), Object.keys(LEFT_OUT).sort());
  });
  await t.step("gives the bytes of the kept file", async () => {
    if (Deno.env.get("UPDATE_TRANSCRIPT") === "1") {
      const bytes = new TextEncoder().encode(transcript);
      await Deno.writeFile(KEPT, await through(bytes, new CompressionStream("gzip")));
    }
    const kept = await through(await Deno.readFile(KEPT), new DecompressionStream("gzip"));
    assertSameLines(transcript, new TextDecoder().decode(kept));
  });
  await t.step("has no card number, security code or key", () => {
    assert.doesNotMatch(transcript, /"cvc":"1|"number":"4|key_[0-9a-z]{26}|_test_[0-9A-Za-z]{49}/);
  });
});

serviceCase("POST /sandboxes with a seed", async (t, service) => {
  await t.step("makes a key with the prefix of seeded sandboxes, and shows the seed", async () => {
    const made = await service.post(SANDBOXES, { seed: "shown" });
    assert.match(made.test_key, /^skseeded_test_/);
    const { test_key: _, ...shown } = made;
    const read = await service.get(`${SANDBOXES}/${made.id}`);
    assert.deepEqual(read, shown);
    const list = await service.get(SANDBOXES);
    assert.deepEqual(list.data, [shown]);
  });
  await t.step("the clock stands at the start of 2030", async () => {
    const key = await makeSeeded(service, "clock");
    const clock = await service.get(`${SANDBOX}/clock`, { key });
    assert.deepEqual([clock.now, clock.mode], ["2030-01-01T00:00:00.000Z", "frozen"]);
    const paid = await service.pay({}, { key });
    assert.equal(paid.body.created_at, "2030-01-01T00:00:00.000Z");
  });
  await t.step("the same seed a second time is 409, and free after the end", async () => {
    const body = { seed: "twice" };
    const first = await service.post(SANDBOXES, body);
    const paid = await service.pay({}, { key: first.test_key });
    assertRefused(await service.call("POST", SANDBOXES, { body }), "invalid_state", "seed");
    await service.call("DELETE", `${SANDBOXES}/${first.id}`);
    const again = await service.post(SANDBOXES, body);
    const repeated = await service.pay({}, { key: again.test_key });
    assert.equal(repeated.text, paid.text);
  });
  await t.step("a sandbox whose time has come frees its seed at once", async () => {
    const body = { seed: "ended", expires_in: 60 };
    const first = await service.post(SANDBOXES, body);
    await service.sql`update pay.environments set ends_at = now() - interval '1 s'
      where public_id = ${first.id}`;
    await service.post(SANDBOXES, body);
  });
  await t.step("another account has the seed for itself, with other ids", async () => {
    const own = await makeSeeded(service, "shared");
    const { text: key } = service.other;
    const made = await service.post(SANDBOXES, { seed: "shared" }, { key });
    const [one, two] = await Promise.all([
      service.pay({}, { key: own }),
      service.pay({}, { key: made.test_key }),
    ]);
    assert.notEqual(one.body.id, two.body.id);
    assert.doesNotMatch(await transcriptOf(service, made.test_key), new RegExp(one.body.id));
    const foreign = `${PAYMENTS}/${one.body.id}`;
    assertRefused(await service.call("GET", foreign, { key: made.test_key }), "not_found");
  });
});

serviceCase("a seeded sandbox", async (t, service) => {
  await t.step("a reset begins the run again, with endpoints", async () => {
    const key = await makeSeeded(service, "reset");
    await run(service, key, 1);
    const first = await transcriptOf(service, key);
    const endpoint = { url: "https://shop.example/left", events: ["payment.created"] };
    await service.post(ENDPOINTS, endpoint, { key });
    await service.post(`${SANDBOX}/reset`, undefined, { key });
    assert.equal(await transcriptOf(service, key), "");
    await run(service, key, 1);
    // The list of keys has the keys of the first run as well.
    const withoutKeys = (text: string) =>
      text.split("\n").filter((line) => !line.includes("/api_keys?")).join("\n");
    assertSameLines(withoutKeys(await transcriptOf(service, key)), withoutKeys(first));
  });
  await t.step("other master secrets sign with the same secret", async () => {
    const secrets = [];
    for (const webhook_master_secret of ["a".repeat(32), "b".repeat(32)]) {
      const installed = await startService({ webhook_master_secret });
      const key = await makeSeeded(installed, "secret");
      const made = await installed.post(ENDPOINTS, { url: "https://shop.example/hooks" }, { key });
      secrets.push(made.secret);
      await installed.close();
    }
    assert.match(secrets[0], /^whsec_/);
    assert.equal(secrets[0], secrets[1]);
  });
  await t.step("the page of 3-D Secure and the end of a payment make the same events", async () => {
    const events = [];
    for (let i = 0; i < 2; i++) {
      const installed = await startService({ checkout_url: CHECKOUT_URL });
      const key = await makeSeeded(installed, "payer");
      const card = { card: { token: "pm_card_authenticationRequired" } };
      const { body: payment } = await installed.pay(card, { key });
      const completed = await callAsPayer(installed, challengePath(payment), "success");
      assert.equal(completed.status, 200, completed.text);
      await installed.pay(card, { key });
      await installed.call("POST", `${SANDBOX}/clock`, { key, body: { advance: 90_000 } });
      const list = await installed.call("GET", "/api-v1-payments/v1/events", { key });
      const types = list.body.data.map(({ type }: { type: string }) => type);
      assert.ok(types.includes("payment.failed"), types.join(" "));
      assert.ok(types.includes("payment.completed"), types.join(" "));
      events.push(list.text);
      await installed.close();
    }
    assert.equal(events[0], events[1]);
  });
  await t.step("the same run with a page open gives the same bytes", async () => {
    const transcripts = [];
    for (
      const page of [null, { "Sec-Fetch-Site": "same-origin" }, {
        Origin: "https://console.example.com",
      }]
    ) {
      const key = await makeSeeded(service, "page");
      for (let round = 1; round <= 2; round++) {
        const { body: { id } } = await service.pay({}, { key });
        for (const path of page ? [PAYMENTS, `${PAYMENTS}/${id}`, `${SANDBOX}/clock`] : []) {
          await service.get(path, { key, headers: page! });
        }
      }
      transcripts.push(await transcriptOf(service, key));
      const list = await service.get(SANDBOXES);
      await service.call("DELETE", `${SANDBOXES}/${list.data[0].id}`);
    }
    assert.equal(transcripts[0]!.match(/\n/g)!.length, 2);
    assert.deepEqual(new Set(transcripts).size, 1);
  });
  await t.step("requests at the same time get numbers and lines of their own", async () => {
    const key = await makeSeeded(service, "parallel");
    const responses = await Promise.all(Array.from({ length: 40 }, () => service.pay({}, { key })));
    assert.ok(responses.every(({ status }) => status === 201));
    assert.equal(new Set(responses.map(({ body }) => body.id)).size, 40);
    assert.deepEqual(await numbersOf(service, key), Array.from({ length: 40 }, (_, at) => at + 1));
  });
  await t.step("a request gets its response, even if its line cannot be stored", async () => {
    const key = await makeSeeded(service, "unkept");
    await service.sql`alter table pay.transcript_lines
      add constraint no_lines check (line not like '%unkept%') not valid`;
    const reference = "unkept";
    assert.equal((await service.pay({ reference }, { key })).status, 201);
    assert.equal((await service.pay({}, { key })).status, 201);
    await service.sql`alter table pay.transcript_lines drop constraint no_lines`;
    assert.deepEqual(await numbersOf(service, key), [2]);
  });
  await t.step("a transcript has an end", async () => {
    const key = await makeSeeded(service, "long");
    await service
      .sql`update pay.sandbox_settings set requests = pay_internal.max_transcript_lines() - 1
      where seed = 'long'`;
    for (let i = 0; i < 2; i++) assert.equal((await service.pay({}, { key })).status, 201);
    assert.deepEqual(await numbersOf(service, key), [10_000]);
    const large = await makeSeeded(service, "large");
    await service.sql`update pay.sandbox_settings set transcript_bytes = 16 * 1024 * 1024 - 1
      where seed = 'large'`;
    for (let i = 0; i < 2; i++) assert.equal((await service.pay({}, { key: large })).status, 201);
    assert.match(await transcriptOf(service, large), /^\{"n":1,.*\n$/);
  });
  await t.step(
    "the id of a key is left out alone, even if it looks like a card number",
    async () => {
      const key = await makeSeeded(service, "key ids");
      const path = "/api-v1-payments/v1/api_keys/key_";
      await service.call("GET", `${path}aaaaa4242424242424242aaaaa`, { key });
      const { request } = JSON.parse((await transcriptOf(service, key)).trimEnd());
      assert.equal(request.path, `${path}…`);
    },
  );
  await t.step("secrets of payers and merchants in any place are left out", async () => {
    const key = await makeSeeded(service, "secrets");
    const number = "4111 1111 1111 1111";
    const card = { number: "5105 1051 0510 5100", exp_month: 12, exp_year: 2034, cvc: "987" };
    const iban = "DE89 3704 0044 0532 0130 00";
    /** Bodies, the texts that the transcript must not have, and one that it has. */
    const bodies: [Record<string, unknown>, RegExp, string][] = [
      [{ reference: `card ${number}` }, /4111/, "null"],
      [{ card: { ...card, number: "5105 1051 0510 5101" } }, /5105/, "2034"],
      [{ card: { ...card, cvv: "987" } }, /987/, "2034"],
      [{ card: { ...card, "security-code": 987, cvc2: "987" } }, /987/, "2034"],
      [{ card: { ...card, number: ["5105", "1051", "0510", "5100"] } }, /5105/, "2034"],
      [{ card: { ...card, number: { a: "51051051", b: "05105100" } } }, /5105/, "2034"],
      [{ card: "5105 1051 0510 5101" }, /5105/, "1000"],
      [{ card: { ...card, pan_1: "51051051", pan_2: "05105100" } }, /5105/, "2034"],
      [{ description: "5105a1051b0510c5100" }, /5105/, "1000"],
      [{ metadata: { note: "card 51051051 then 05105100" } }, /5105/, "note"],
      [{ description: "5105 1051", reference: "0510 5100" }, /5105/, "1000"],
      [{ metadata: { a: "5105", b: "1051", c: "0510-5100" } }, /5105/, "1000"],
      [{ metadata: { cvv: "987", CVC: "987", card_code: "x" } }, /987/, "card_code"],
      [{ iban }, /DE89|0532/, "3000"],
      [{ iban: { iban, bic: "COBADEFF" } }, /DE89|0532/, "COBADEFF"],
      [{ iban: { account: "0532013000" } }, /0532/, "account"],
      [{ iban: [iban] }, /0532/, "1000"],
      [{ description: `refund to ${iban}` }, /DE89|0532/, "1000"],
      [{ metadata: { from: iban, "DE89370400440532013000": "x" } }, /DE89|0532/, "from"],
      [{ metadata: { note: "x".repeat(16_384) } }, /xxx/, '"body":"…"'],
      [{ bank: { account_number: "0532013000" } }, /0532/, "bank"],
      [{ payer: { email: "a@shop.example", ssn: "078051120" } }, /0780/, "a@shop.example"],
    ];
    for (const [body] of bodies) await service.pay(body, { key });
    const queries: [string, RegExp, string][] = [
      ["?reference=4111111111111111", /4111/, "?reference="],
      [`?reference=${encodeURIComponent(iban)}`, /DE89|0532/, "?reference="],
      [`?limit=3&${"x&".repeat(64)}`, /&x/, '?…"'],
      ["?cursor=0532013000&limit=3", /0532/, "&limit=3"],
      ["/DE89370400440532013000", /DE89|0532/, "GET"],
    ];
    for (const [query] of queries) await service.call("GET", `${PAYMENTS}${query}`, { key });
    const lines = await linesOf(service, key);
    for (const [at, [, hidden, shown]] of [...bodies, ...queries].entries()) {
      assert.doesNotMatch(lines[at]!, hidden);
      assert.ok(lines[at]!.includes(shown), `${shown} in ${lines[at]}`);
    }
  });
  await t.step("secrets of endpoints are left out", async () => {
    const key = await makeSeeded(service, "endpoints");
    const made = await service.post(ENDPOINTS, { url: "https://shop.example/hooks" }, { key });
    assert.match(made.secret, /^whsec_/);
    await service.call("POST", `${ENDPOINTS}/${made.id}/rotate_secret`, { key, body: {} });
    const transcript = await transcriptOf(service, key);
    assert.doesNotMatch(transcript, /whsec_/);
    assert.match(transcript, /"secret":"…"/);
  });
});

serviceCase(
  "POST /clock of a seeded sandbox ends its advance, however slow",
  async (t, service) => {
    const seeded = await makeSeeded(service, "slow");
    const advances: [name: string, key: string, has_more: boolean, status: string][] = [
      ["a sandbox without a seed stops", service.key.text, true, "requires_action"],
      ["a seeded one goes on", seeded, false, "failed"],
    ];
    for (const [name, key, has_more, status] of advances) {
      await t.step(name, async () => {
        const { body: { id } } = await service.pay({
          card: { token: "pm_card_authenticationRequired" },
        }, { key });
        const clock = await service.post(`${SANDBOX}/clock`, { advance: 90_000 }, { key });
        assert.equal(clock.has_more, has_more);
        assert.equal((await service.get(`${PAYMENTS}/${id}`, { key })).status, status);
      });
    }
    // No time is left for the work of an advance, as on a machine that is too slow for it.
  },
  { advance_ms: 0 },
);

serviceCase("GET /transcript", async (t, service) => {
  await t.step("a sandbox without a seed is 409", async () => {
    assertRefused(await service.call("GET", TRANSCRIPT), "invalid_state");
  });
  await t.step("a request of a seeded sandbox makes three", async () => {
    const key = await makeSeeded(service, "cost");
    await service.pay({}, { key });
    service.forgetStatements();
    await service.pay({}, { key });
    service.assertStatements(3);
  });
});

/** The lines of a long transcript. */
const LINES = 3_000;

serviceCase("a transcript is read part by part, of one run", async (t, service) => {
  const { sql, deps } = service;
  const key = await makeSeeded(service, "long");
  await fillTranscript(service, "long", LINES);
  const [settings] = await sql`
    select version::int from pay.sandbox_settings where seed = 'long'`;
  const access = accessWith({ key_hash: parseApiKey(key)!.hash, version: settings!.version });
  const read = () => deps.sandbox.seeded_store.transcript(access);
  await t.step("nothing is read before it is taken", async () => {
    service.forgetStatements();
    const { begin, rest } = await read();
    service.assertStatements(1);
    assert.ok(begin.length < 300_000, `${begin.length} characters`);
    let [characters, parts] = [begin.length, 1];
    for await (const part of rest) {
      characters += part.length;
      parts++;
      assert.ok(part.length < 300_000, `${part.length} characters`);
    }
    assert.deepEqual([characters, parts], [LINES * 501, 12]);
    service.assertStatements(11);
  });
  const { of_owner } = PLACE_BOUNDS.long_waits;
  await t.step("one whose response a fault hides leaves its place", async () => {
    const hidden = { key, headers: { "Sandbox-Fault": "server_error_after" } };
    for (let i = 0; i < of_owner; i++) {
      const { status } = await service.call("GET", `${SANDBOX}/transcript`, hidden);
      assert.equal(status, 500);
    }
    await (await read()).rest.return(undefined);
  });
  await t.step("the transcripts that are sent to an account are limited", async () => {
    const sent = await Promise.all(Array.from({ length: of_owner }, read));
    await assert.rejects(read(), { code: "rate_limited" });
    const [first, ...others] = sent;
    // The time for the sending is over, or the client has left, or the end is reached.
    const lost = bodyInParts(first!.begin, first!.rest, 1).getReader();
    await assert.rejects(lost.closed, /not read the response in time/);
    const left = await read();
    await bodyInParts(left.begin, left.rest).cancel();
    const whole = await read();
    const text = await new Response(bodyInParts(whole.begin, whole.rest)).text();
    const lines = Array.from({ length: LINES }, (_, at) => `${at + 1} `.padEnd(500, "é"));
    assert.equal(text, `${lines.join("\n")}\n`);
    await (await read()).rest.return(undefined);
    await Promise.all(others.map(({ rest }) => rest.return(undefined)));
  });
  await t.step("a change of the settings does not end it", async () => {
    const { rest } = await read();
    const frozen = { key, body: { mode: "frozen" } };
    assert.equal((await service.call("POST", `${SANDBOX}/clock`, frozen)).status, 200);
    assert.equal((await Array.fromAsync(rest)).length, 11);
    const [changed] = await sql`
      select version::int from pay.sandbox_settings where seed = 'long'`;
    assert.notEqual(changed!.version, access.version);
    access.version = changed!.version;
  });
  await t.step("a reset ends it with an error", async () => {
    const { rest } = await read();
    const reset = { key, body: {} };
    assert.equal((await service.call("POST", `${SANDBOX}/reset`, reset)).status, 200);
    await assert.rejects(async () => {
      for await (const _ of rest);
    }, /was reset/);
  });
});
