/**
 * The commands that show and change payments, events, endpoints and the clock, open the console,
 * and trigger events: which endpoint `trigger` chooses, which objects it makes, which response it
 * shows.
 */

import assert from "node:assert/strict";
import type { PaymentsClient } from "../../packages/client/mod.ts";
import { OPEN } from "../../packages/sandbox/commands/open.ts";
import { parseDuration } from "../../packages/sandbox/duration.ts";
import { TRIGGER_TYPES } from "../../packages/sandbox/trigger_objects.ts";
import { generateApiKey } from "../../shared/core/api_key.ts";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import { call, withCommands } from "../support/package/command_line.ts";
import { onlyEndpoint, withListenCase } from "../support/package/listen_case.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

const CARD = { token: "pm_card_visa" };

Deno.test("payments capture, refund, cancel, get and list do what the API does", () =>
  withCommands(async ({ client, command }) => {
    const run = (...args: string[]) => command("payments", ...args);
    const authorize = (reference: string) =>
      client.payments.create({
        amount: 1999,
        currency: "EUR",
        card: CARD,
        capture: "manual",
        reference,
        customer: { email: "ada@example.com", id: "user-7" },
      });
    const { id } = await authorize("order-7");
    const captured = await run("capture", id, "--amount", "1500");
    assert.equal(captured.stdout, `${id}  completed  19.99 EUR, captured 15.00 EUR\n`);
    assert.equal((await client.payments.retrieve(id)).amount_captured, 1500);

    const part = ["refund", id, "--amount", "500", "--reason", "duplicate"];
    const first = await run(...part, "--idempotency-key", "refund-7");
    assert.match(first.stdout, /^re_\w+ +completed +5\.00 EUR +pay_\w+ +partially_refunded\n$/);
    const again = await run(...part, "--idempotency-key", "refund-7");
    assert.equal(again.stdout, first.stdout);
    const { data: [refund] } = await client.refunds.list({ payment_id: id });
    assert.equal(refund!.reason, "duplicate");
    const rest = await run("refund", id, "--json");
    assert.equal(JSON.parse(rest.stdout).amount, 1000);
    const nothing = await run("refund", id, "--json");
    assert.deepEqual([nothing.code, JSON.parse(nothing.stdout).error.code], [1, "invalid_state"]);
    const wrong = await run("refund", id, "--reason", "boredom", "--json");
    assert.deepEqual([wrong.code, JSON.parse(wrong.stdout).error.param], [2, "reason"]);

    const other = await authorize("order-\u001b[31m8");
    assert.equal((await run("cancel", other.id)).stdout, `${other.id}  cancelled  19.99 EUR\n`);
    const unknown = await run("cancel", "pay_00000000000000000000000000");
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /\(not_found\)\n$/);

    const shown = await run("get", id);
    assert.deepEqual(JSON.parse(shown.stdout), await client.payments.retrieve(id));
    const page = await run("list", "--limit", "1");
    // The reference cannot control the terminal.
    const line = `${other.id}  cancelled  19.99 EUR  ${other.created_at}  order- [31m8\n`;
    assert.deepEqual([page.stdout, page.stderr], [line, `More: --starting-after ${other.id}\n`]);
    const next = await run("list", "--limit", "1", "--starting-after", other.id, "--json");
    assert.deepEqual(JSON.parse(next.stdout).data.map(({ id }: { id: string }) => id), [id]);
    const filters = ["--status", "refunded", "--currency", "EUR", "--method-kind", "card"];
    const more = ["--reference", "order-7", "--created-after", "2020-01-01T00:00:00Z"];
    const found = await run("list", ...filters, ...more, "--customer-id", "user-7");
    assert.match(found.stdout, new RegExp(`^${id}  refunded .*  order-7\n$`));
    for (const filter of [["--customer", "nobody@example.com"], ["--customer-id", "user-8"]]) {
      assert.equal((await run("list", ...filter)).stdout, "");
    }
    assert.equal((await run("list", "--status", "paid")).code, 2);
  }));

Deno.test("payments create saves an instrument and uses it, and instruments list and end show it", () =>
  withCommands(async ({ client, command }) => {
    const person = ["--customer-id", "u1", "--email", "ada@example.com"];
    const create = async (...args: string[]) => {
      const { code, stdout, stderr } = await command("payments", "create", "--json", ...args);
      return { code, body: JSON.parse(stdout), stderr };
    };
    const save = ["--save", "off_session", ...person];
    const card = await create("--amount", "0", ...save, "--return-url", "https://shop.example/");
    const debit = [...save, "--iban", "DE89 3704 0044 0532 0130 00"];
    const mandate = await create("--amount", "900", ...debit, "--mandate-signed-at", "2026-01-31");
    assert.deepEqual([card.body.status, mandate.body.status], ["completed", "processing"]);
    const { instrument_id: id } = card.body;
    const used = await create("--amount", "500", "--instrument", id, "--off-session");
    assert.deepEqual([used.body.instrument_id, used.body.off_session], [id, true]);

    const line = `${id}  active  card  off_session  visa …4242  u1\n`;
    const list = (...args: string[]) => command("instruments", "list", ...args);
    const all = await list("--customer", "u1");
    const other = `${mandate.body.instrument_id}  active  sepa  off_session  …3000  u1\n`;
    assert.equal(all.stdout, other + line, all.stderr);
    assert.equal((await list("--method-kind", "card", "--status", "active")).stdout, line);
    assert.equal((await list("--customer", "u2")).stdout, "");
    const ended = await command("instruments", "end", id);
    assert.equal(ended.stdout, line.replace("active", "ended deleted"));
    assert.equal((await client.instruments.retrieve(id)).status, "ended");
    const late = await create("--amount", "500", "--instrument", id, "--off-session");
    assert.deepEqual([late.code, late.body.error.code], [1, "invalid_state"]);
    for (
      const [args, param] of [
        [["--amount", "0"], undefined],
        [["--amount", "1", "--save", "always", ...person], "save"],
        [["--amount", "1", "--save", "off_session"], "customer.id"],
        [["--amount", "1", "--off-session"], "off_session"],
      ] as const
    ) {
      const { code, body } = await create(...args);
      assert.deepEqual([code, body.error.param], [2, param], JSON.stringify(body));
    }
  }));

Deno.test("checkouts create, pay, get, list and cancel do what the API does", () =>
  withCommands(async ({ client, command }) => {
    const run = (...args: string[]) => command("checkouts", ...args);
    const texts = ["--reference", "order-7", "--metadata", "shop=berlin,sum=1=1", "--locale", "de"];
    const prices = ["--amount", "1999", "--other-prices", "2199USD, 21990000 USDC"];
    const made = await run("create", ...prices, ...texts, "--json");
    const { id, methods, other_prices, metadata, locale } = JSON.parse(made.stdout);
    assert.deepEqual(methods, ["card", "sepa_debit", "sepa", "swift", "stablecoin"]);
    assert.deepEqual([other_prices, metadata, locale], [
      [{ amount_minor: 2199, currency: "USD" }, { amount_minor: 21_990_000, currency: "USDC" }],
      ...[{ shop: "berlin", sum: "1=1" }, "de"],
    ]);
    const declined = await run("pay", id, "--card", "4000 0000 0000 9995");
    assert.match(declined.stdout, /^pay_\w+ {2}declined insufficient_funds {2}19\.99 EUR\nchk_/);
    assert.equal(declined.code, 1);
    const secure = ["--card", "4000 0025 0000 3155", "--authenticate", "success"];
    const paid = await run("pay", id, ...secure, "--json");
    const { status, payment } = JSON.parse(paid.stdout);
    assert.deepEqual([paid.code, status, payment.status], [0, "completed", "completed"]);
    const late = await run("pay", id, "--json");
    assert.deepEqual([late.code, JSON.parse(late.stdout).error.code], [1, "invalid_state"]);
    assert.deepEqual(
      JSON.parse((await run("get", id)).stdout),
      await client.checkouts.retrieve(id),
    );

    const link =
      (await run("create", "--amount", "500", "--link", "--methods", "card,sepa")).stdout;
    const [link_id = ""] = link.split("  ");
    const transfer = await run("pay", link_id, "--method", "sepa");
    assert.match(transfer.stdout, /^pay_\w+ {2}pending/, transfer.stderr);
    assert.equal((await run("pay", link_id)).code, 0);
    const line = `${link_id}  open  5.00 EUR  link, 1 paid\n`;
    const order = `${id}  completed  19.99 EUR  order-7\n`;
    assert.equal((await run("list")).stdout, line + order);
    assert.equal((await run("list", "--reference", "order-7")).stdout, order);
    assert.equal((await run("cancel", link_id)).stdout, line.replace("open", "cancelled"));
    for (
      const [option, value, code] of [
        ["--methods", "cash", "invalid_parameter"],
        ["--other-prices", "USD", "invalid_arguments"],
        ["--metadata", "berlin", "invalid_arguments"],
      ] as const
    ) {
      const wrong = await run("create", "--amount", "1", option, value, "--json");
      assert.deepEqual([wrong.code, JSON.parse(wrong.stdout).error.code], [2, code]);
    }
  }));

Deno.test("events list and resend, endpoints list and reset work on what the sandbox has", () =>
  withCommands(async ({ client, command }) => {
    const receiver = openRecorder();
    try {
      const url = receiver.url("/hooks");
      const first = await client.webhookEndpoints.create({ url, events: ["payment.completed"] });
      const { id: inbox_id } = await client.webhookEndpoints.create({ delivery: "inbox" });
      const payment = await client.payments.create({ amount: 1, currency: "EUR", card: CARD });
      const listed = await command("events", "list", "--type", "payment.completed");
      const [event_id = ""] = listed.stdout.split("  ");
      const { created_at } = await client.events.retrieve(event_id);
      assert.equal(listed.stdout, `${event_id}  payment.completed  ${payment.id}  ${created_at}\n`);
      const json = await command("events", "list", "--payment", payment.id, "--json");
      assert.equal(JSON.parse(json.stdout).data.length, 2);

      const endpoints = await command("endpoints", "list");
      assert.equal(
        endpoints.stdout,
        `${inbox_id}  enabled  inbox  *\n${first.id}  enabled  ${url}  payment.completed\n`,
      );
      await until("the event has arrived", () => receiver.arrivals.length === 1);
      const resent = await command("events", "resend", event_id, "--endpoint", first.id);
      assert.match(resent.stdout, new RegExp(`^whd_.+  payment.completed  \\w+  ${first.id}\n$`));
      await until("the event has arrived again", () => receiver.arrivals.length === 2);
      assert.deepEqual(receiver.arrivals.map(({ event }) => event.id), [event_id, event_id]);

      // Another endpoint gets the event, although one is disabled.
      await client.webhookEndpoints.update(first.id, { status: "disabled" });
      const both = await command("events", "resend", event_id);
      assert.equal(both.code, 0);
      assert.match(
        both.stdout,
        new RegExp(`^whd_\\w+  payment\\.completed  available  ${inbox_id}\n$`),
      );
      assert.match(both.stderr, new RegExp(`^${first.id}: `));
      const alone = await command("events", "resend", event_id, "--endpoint", first.id);
      assert.deepEqual([alone.code, alone.stdout], [1, ""]);
      assert.match((await command("endpoints", "list")).stdout, /disabled \(manual\)/);
      const [created] = (await client.events.list({ type: "payment.created" })).data;
      const none = ["events", "resend", created!.id, "--endpoint", first.id];
      assert.match((await command(...none)).stderr, /^No endpoint has a delivery of evt_/);

      const reset = await command("reset", "--yes");
      const counts = "1 payment, 0 refunds, 0 transfers, 2 events";
      assert.equal(reset.stdout, `Deleted ${counts}, 0 webhook endpoints\n`, reset.stderr);
      const all = await command("reset", "--yes", "--endpoints", "--json");
      assert.equal(JSON.parse(all.stdout).deleted.webhook_endpoints, 2);
    } finally {
      await receiver.close();
    }
  }));

/** Texts by their seconds. */
const DURATIONS: [seconds: number | null, ...texts: string[]][] = [
  [0, "0s"],
  [45, "45s"],
  [5_400, "90m", "1h30m"],
  [43_200, "12h"],
  [604_800, "1w"],
  [2_592_000, "30d"],
  [34_560_000, "400d"],
  [null, "30", "", "1.5h", "-1d", "1 d", "1M", "1y"],
];
for (const [seconds, ...texts] of DURATIONS) {
  Deno.test(`parseDuration() of ${texts.join(", ")} is ${seconds}`, () => {
    for (const text of texts) assert.equal(parseDuration(text), seconds, text);
  });
}

Deno.test("clock advance moves the clock and prints what became due", () =>
  withCommands(async ({ client, command }) => {
    const { now } = await client.sandbox.setClock({ mode: "frozen" });
    const payment = await client.payments.create({
      amount: 1999,
      currency: "EUR",
      card: { token: "pm_card_authenticationRequired" },
    });
    const { code, stdout, stderr } = await command("clock", "advance", "1d1h");
    assert.equal(code, 0, stderr);
    const later = new Date(Date.parse(now) + 90_000_000).toISOString();
    // The keys of both requests were kept for 24 hours.
    const did = "0 webhook attempts, 1 expired payment, 0 closed disputes, 2 purged rows";
    assert.equal(stdout, `${later}  frozen\n  ${did}\n`);
    assert.equal((await client.payments.retrieve(payment.id)).failure_code, "expired");
    const json = await command("clock", "advance", "30s", "--json");
    const clock = JSON.parse(json.stdout);
    assert.equal(Date.parse(clock.now), Date.parse(later) + 30_000);
    assert.equal((await client.sandbox.clock()).now, clock.now);
  }));

for (
  const [args, message] of [
    [[], /^The duration is missing: 7d/],
    [["30"], /^"30" is not a duration from 1s to 400d/],
    [["0s"], /^"0s" is not a duration/],
    [["401d"], /^"401d" is not a duration/],
    [["1d", "2h"], /^Unexpected argument "2h"/],
  ] as const
) {
  Deno.test(`clock advance ${args.join(" ")} exits with 2`, async () => {
    const { code, stderr } = await call(["clock", "advance", ...args]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  });
}

const BASE_URL = "http://127.0.0.1:54321/functions/v1";

/** Returns what the command prints. */
async function printed(key: string, values: Record<string, boolean> = {}): Promise<string> {
  let text = "";
  const code = await OPEN.run({ print: true, "base-url": BASE_URL, key, ...values }, [], {
    env: () => undefined,
    cwd: "/",
    print: (line) => text += line,
    printMessage: () => {},
  });
  assert.equal(code, 0);
  return text;
}

Deno.test("open --print prints a link that carries a test key, and no live key", async () => {
  const key = generateApiKey("test");
  const url = `http://127.0.0.1:54321/console/#key=${key}`;
  assert.equal(await printed(key), `${url}\n`);
  assert.deepEqual(JSON.parse(await printed(key, { json: true })), { url });
  assert.equal(await printed(generateApiKey("live")), "http://127.0.0.1:54321/console/\n");
});

const EVENT = "payment.completed";

async function paymentOf(client: PaymentsClient): Promise<string> {
  return (await client.payments.create({ amount: 1, currency: "EUR", outcome: "success" })).id;
}

Deno.test("trigger sends the event to the only endpoint and shows its response", () =>
  withListenCase(async ({ client, env, folder, receiver }) => {
    const payment = await paymentOf(client);
    const trigger = (...args: string[]) =>
      call(["trigger", EVENT, "--payment", payment, ...args], env, folder);
    const nothing = await trigger();
    assert.equal(nothing.stderr, "There is no webhook endpoint: run listen, or register one\n");
    assert.equal(nothing.code, 1);

    const url = receiver.url("/hooks");
    const { id } = await client.webhookEndpoints.create({ url, events: ["transfer.created"] });
    const good = await trigger();
    assert.match(good.stdout, /^whd_\w+ {2}payment\.completed {2}delivered {2}200\n$/, good.stderr);
    assert.equal(good.code, 0);
    receiver.judge = () => new Response("unknown\norder", { status: 422 });
    const bad = await trigger();
    assert.match(bad.stdout, / {2}422\n {2}unknown order\n$/);
    assert.equal(bad.code, 1);
    const json = await trigger("--json");
    const { endpoint_id, answer } = JSON.parse(json.stdout);
    const told = { response_status: 422, error: null, response_body: "unknown\norder" };
    assert.deepEqual([json.code, endpoint_id, answer], [1, id, told]);
    assert.equal(receiver.arrivals.length, 3);

    const other = await client.webhookEndpoints.create({ url, events: ["transfer.created"] });
    const several = await trigger();
    assert.match(several.stderr, /^There are several webhook endpoints: name one with --endpoint/);
    for (const one of [id, other.id]) assert.ok(several.stderr.includes(`  ${one}  ${url}\n`));
    const unknown = await trigger("--endpoint", "whe_unknown");
    assert.match(unknown.stderr, /\(not_found\)\n$/);
  }));

Deno.test("trigger finds the endpoint of listen among others, and shows the response", () =>
  withListenCase(async ({ client, env, folder, listen, receiver }) => {
    const payment = await paymentOf(client);
    const trigger = (...args: string[]) =>
      call(["trigger", EVENT, "--payment", payment, ...args], env, folder);
    const command = await listen("--events", "transfer.created");
    const { id } = await onlyEndpoint(client);
    // Nothing listens there.
    const url = `http://127.0.0.1:${freePort()}/`;
    await client.webhookEndpoints.create({ url, events: ["transfer.created"] });

    receiver.judge = () => new Response("stored", { status: 200 });
    const good = await trigger();
    assert.match(good.stdout, /^whd_\w+ {2}payment\.completed {2}forwarded {2}200\n {2}stored\n$/);
    assert.deepEqual([good.code, good.stderr], [0, ""]);
    receiver.judge = () => new Response("unknown order", { status: 422 });
    const bad = await trigger("--json");
    const { endpoint_id, answer } = JSON.parse(bad.stdout);
    const told = { response_status: 422, error: null, response_body: "unknown order" };
    assert.deepEqual([bad.code, endpoint_id, answer], [1, id, told]);

    // Nobody forwards the deliveries any more, and the command does not wait.
    await command.end();
    const alone = await trigger();
    assert.ok(
      alone.stdout.endsWith(`  in the inbox of ${id}: no listen runs in this folder\n`),
      alone.stdout,
    );
    assert.equal(alone.code, 0);
    // A killed one leaves its file.
    await (await listen("--events", "transfer.created")).end("SIGKILL");
    assert.equal((await trigger()).code, 0);
  }));

/** Types that no payment by card of a sandbox has: the endpoint gets them by a trigger. */
const TRIGGERED: readonly string[] = ["payment.pending", "webhook_endpoint.disabled", "ping"];

Deno.test("trigger without a payment makes the objects of every event type", () =>
  withCommands(async ({ client, command }) => {
    for (const type of TRIGGER_TYPES) {
      const { code, stdout, stderr } = await command("trigger", type);
      const said = TRIGGERED.includes(type)
        ? `1 pay_\\w+ has no ${type}`
        : `0 evt_\\w+  ${type}  sent to nobody`;
      assert.match(
        `${code} ${stdout}${stderr}`,
        new RegExp(`^${said}\\. There is no webhook endpoint: run listen, or register one\n$`),
      );
    }
    const { id } = await client.webhookEndpoints.create({ delivery: "inbox" });
    for (const type of TRIGGER_TYPES) {
      const { code, stdout, stderr } = await command("trigger", type, "--json");
      assert.equal(code, 0, `${type}: ${stdout}${stderr}`);
      const { id: delivery_id, event_type } = JSON.parse(stdout);
      assert.equal(event_type, type);
      const page = await client.webhookEndpoints.inbox(id, { limit: 100 });
      const found = page.data.find((one) => one.id === delivery_id)!;
      const { triggered = false, data: { object } } = JSON.parse(found.body);
      assert.equal(triggered, TRIGGERED.includes(type), type);
      const [kind, status] = type.split(".");
      if (kind === "payment" && status !== "created") assert.equal(object.status, status, type);
      await client.webhookEndpoints.inbox(id, { after: page.next_cursor, limit: 1 });
    }
  }));

Deno.test("trigger without a payment sends the events of the objects in their order", () =>
  withListenCase(async ({ client, env, folder, receiver }) => {
    const trigger = (type: string) => call(["trigger", type], env, folder);
    const url = receiver.url("/hooks");
    const { id } = await client.webhookEndpoints.create({ url });
    const good = await trigger("payment.refunded");
    assert.match(good.stdout, /^whd_\w+ {2}payment\.refunded {2}delivered {2}200\n$/, good.stderr);
    const types = receiver.arrivals.map(({ event }) => event.type);
    assert.deepEqual(types.slice(0, 3), ["payment.created", "payment.completed", "refund.created"]);
    assert.equal(receiver.arrivals.filter(({ event }) => event.type === types.at(-1)).length, 1);

    // The receiver does not take the event before, so it gets no other.
    receiver.judge = ({ event }) => event.type === "payment.created" ? 500 : 200;
    const blocked = await trigger("payment.completed");
    assert.deepEqual([blocked.code, blocked.stdout], [1, ""]);
    assert.match(
      blocked.stderr,
      /^whd_\w+ waits until the endpoint takes an earlier event:\nwhd_\w+ {2}payment\.created .* 500\n$/,
    );
    await client.webhookEndpoints.update(id, { events: ["refund.failed"] });
    assert.equal((await trigger("payment.declined")).code, 0);
    assert.equal(receiver.arrivals.at(-1)!.event.triggered, true);
    const transfer = await trigger("transfer.completed");
    assert.match(transfer.stderr, /^tr_\w+ has the event, but whe_\w+ is not subscribed to /);
    assert.equal(transfer.code, 1);
  }));
