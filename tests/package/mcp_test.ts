/** `mcp`: its tools, called by the client of the protocol's SDK, and the keys that it refuses. */

import assert from "node:assert/strict";
import type * as z from "zod";
import { TOOLS } from "../../packages/sandbox/mcp/tools.ts";
import { MAX_RESULT_CHARACTERS } from "../../packages/sandbox/mcp/tool_result.ts";
import { memberOf, namesOf, requirementOf } from "../../shared/schema/requirement.ts";
import { runCommand } from "../support/common/running_command.ts";
import { until } from "../support/common/until.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { type Agent, connectAgent } from "../support/package/agent_client.ts";
import { call, NO_SERVICE, PROGRAM, variablesOf } from "../support/package/command_line.ts";
import { type ServedService, withServedService } from "../support/service/served_service.ts";

/** Runs a test with an agent in a sandbox that the environment names. */
function withAgent(run: (agent: Agent, served: ServedService) => Promise<void>): Promise<void> {
  return withServedService(async (served) => {
    const env = { ...NO_SERVICE, ...variablesOf(served) };
    const args = [...PROGRAM, "mcp"];
    const agent = await connectAgent({ command: Deno.execPath(), args, env });
    try {
      await run(agent, served);
    } finally {
      await agent.close();
    }
  }, { request_log: true });
}

Deno.test("mcp describes its tools as docs/agents.md does, and refuses unknown fields", () =>
  withAgent(async ({ client }) => {
    const { tools } = await client.listTools();
    const page = await readProjectFile("docs/agents.md");
    const hinted = [0, 1, 2].map((column) =>
      tableRows(page, "Tools for").flatMap((cells) => codeTexts(cells[column + 1]!)).sort()
    );
    const named: string[][] = [[], [], []];
    for (const { name, annotations: { readOnlyHint, destructiveHint } = {} } of tools) {
      named[readOnlyHint ? 0 : destructiveHint ? 2 : 1]!.push(name);
    }
    assert.deepEqual(hinted, named.map((names) => names.sort()));
    for (const { name, title, description, annotations, inputSchema } of tools) {
      assert.ok(title && description && description.length > 20, name);
      assert.equal(annotations!.openWorldHint, false, name);
      for (const object of objectsIn(inputSchema)) {
        assert.equal(object.additionalProperties, false, `${name} ${JSON.stringify(object)}`);
      }
      for (const [field, schema] of Object.entries(inputSchema.properties ?? {})) {
        assert.ok("description" in schema, `${name}.${field} has no description`);
      }
    }
  }));

/** Every JSON schema of an object with named members in a schema. */
function objectsIn(schema: unknown): Record<string, unknown>[] {
  if (typeof schema !== "object" || schema === null) return [];
  const inner = Object.values(schema).flatMap(objectsIn);
  return "properties" in schema ? [schema as Record<string, unknown>, ...inner] : inner;
}

Deno.test("mcp has words for every value that a tool refuses", () => {
  const inWords = (schema: z.ZodType): unknown =>
    namesOf(schema).map((name) => [
      requirementOf(memberOf(schema, name)!),
      inWords(memberOf(schema, name)!),
    ]);
  for (const { input } of TOOLS) inWords(input);
});

Deno.test("mcp makes, captures, refunds and advances payments, and shows what happened", () =>
  withAgent(async (agent, { base_url, client }) => {
    const use = async (name: string, input: Record<string, unknown> = {}) => {
      const { is_error, text, value } = await agent.call(name, input);
      assert.equal(is_error, false, text);
      return value;
    };
    const refused = async (name: string, input: Record<string, unknown>) => {
      const { is_error, text, value } = await agent.call(name, input);
      assert.equal(is_error, true, text);
      return value;
    };
    // The agent gets no key that is not its own.
    const place = { base_url, test_key: null, console_url: null };
    assert.deepEqual(await use("get_sandbox"), place);
    const inbox = await use("create_inbox", { events: ["payment.completed", "refund.*"] });

    const order = { amount: 1999, currency: "eur", card: { token: "pm_card_visa" } };
    const held = { ...order, capture: "manual", reference: "order-7", "Idempotency-Key": "7" };
    const { id } = await use("create_payment", held);
    assert.equal((await use("create_payment", held)).id, id);
    assert.equal((await use("capture_payment", { id })).status, "completed");
    const refund = await use("refund_payment", { id, amount: 500, reason: "duplicate" });
    assert.equal(refund.payment_status, "partially_refunded");
    assert.deepEqual(await use("get_payment", { id }), await client.payments.retrieve(id));
    const { data } = await use("list_payments", { reference: "order-7" });
    assert.deepEqual(data.map((one: { id: string }) => one.id), [id]);

    const decline = await refused("create_payment", {
      ...order,
      card: { token: "pm_card_chargeDeclinedInsufficientFunds" },
    });
    assert.deepEqual([decline.status, decline.error.code], [402, "insufficient_funds"]);
    assert.equal(decline.error.payment.status, "declined");
    const { text } = await agent.call("explain_error", { code: decline.error.code });
    assert.match(text, /^## insufficient_funds\n/);
    const page = await readProjectFile("docs/errors.md");
    assert.ok(page.includes(text), "the section is that of the page");
    assert.match((await agent.call("explain_error", { code: "invalid_parameter" })).text, /3155/);
    const { error } = await refused("explain_error", { code: "card_declined" });
    assert.match(error.message, /^"code" must be one of invalid_parameter, .*payment_declined/);
    const state = await refused("cancel_payment", { id });
    assert.equal(state.error.current_status, "partially_refunded");
    for (
      const [input, param, message] of [
        [{ ...order, amount: 19.99 }, "amount", /19\.99 EUR is 1999/],
        [{ ...order, crad: {} }, "crad", /did you mean "card"/],
        [{ ...order, idempotency_key: "7" }, "idempotency_key", /did you mean "Idempotency-Key"/],
        [{ ...order, card: { number: "4242424242424242" } }, "card.exp_month", /is required/],
        [{ amount: 1 }, "currency", /is required/],
        [{ ...order, "Idempotency-Key": "a b" }, "Idempotency-Key", /without spaces/],
      ] as const
    ) {
      const { status, error } = await refused("create_payment", input);
      assert.deepEqual([status, error.type], [undefined, "command_line"]);
      assert.deepEqual([error.code, error.param], ["invalid_arguments", param]);
      assert.match(error.message, message);
    }
    const unknown = await refused("make_payment", order);
    assert.equal(unknown.error.code, "invalid_arguments");

    const customer = { id: "u1", email: "ada@example.com" };
    const saved = await use("create_payment", { ...order, customer, save: "off_session" });
    const { instrument_id } = saved;
    const by_instrument = { amount: 500, currency: "EUR", instrument: instrument_id };
    const charge = await use("create_payment", { ...by_instrument, off_session: true });
    assert.deepEqual([charge.status, charge.off_session], ["completed", true]);
    const kept = await use("list_instruments", { customer_id: "u1", status: "active" });
    assert.deepEqual(kept.data.map((one: { id: string }) => one.id), [instrument_id]);
    assert.equal((await use("end_instrument", { id: instrument_id })).ended_reason, "deleted");
    const over = await refused("create_payment", by_instrument);
    assert.equal(over.error.current_status, "ended");

    const sold = { amount: 700, currency: "EUR", methods: ["card", "sepa"], max_payments: null };
    const { id: link } = await use("create_checkout", sold);
    const attempt = await use("pay_checkout", { id: link, method: "sepa" });
    assert.deepEqual([attempt.status, attempt.payment.status], ["open", "pending"]);
    await use("pay_checkout", { id: link, card: order.card });
    assert.equal((await use("get_checkout", { id: link })).payments_count, 1);
    const open = await use("list_checkouts", { status: "open" });
    assert.deepEqual(open.data.map((one: { id: string }) => one.id), [link]);
    assert.equal((await use("cancel_checkout", { id: link })).status, "cancelled");
    const ended = await refused("pay_checkout", { id: link, card: order.card });
    assert.equal(ended.error.current_status, "cancelled");

    const pending = await use("create_payment", { ...order, settlement: "manual" });
    const late = await use("refund_payment", { id: pending.id });
    const failed = await use("advance_refund", { id: late.id, to: "failed" });
    assert.equal(failed.status, "failed");
    const disputed = { id: pending.id, to: "chargeback", reason: "fraudulent" };
    assert.equal((await use("advance_payment", disputed)).status, "chargeback");

    const { next_cursor, data: deliveries } = await use("read_inbox", { endpoint_id: inbox.id });
    const all = deliveries.map(({ body }: { body: string }) => JSON.parse(body).type);
    assert.deepEqual(all.slice(0, 3), ["payment.completed", "refund.created", "refund.completed"]);
    const rest = { endpoint_id: inbox.id, after: next_cursor, wait: 0 };
    assert.deepEqual((await use("read_inbox", rest)).data, []);
    const events = await use("list_events", { payment_id: id, limit: 1 });
    assert.deepEqual([events.data.length, events.has_more], [1, true]);

    const body = { on: "request", fault: "rate_limited", times: 9, where: { path: "/v1/refunds" } };
    const declared = await use("declare_fault", body);
    assert.deepEqual((await use("list_faults")).data[0], declared);
    assert.equal((await use("delete_fault", { id: declared.id })).deleted, true);
    const wrong = await refused("declare_fault", { on: "request", fault: "delay" });
    assert.equal(wrong.error.param, "delay_ms");

    const { now } = await use("set_clock", { mode: "frozen", advance: 86_400 });
    assert.equal((await use("get_clock")).now, now);
    assert.equal((await use("set_clock", { to: now.replace("Z", "+00:00") })).now, now);
    // A request is in the log up to a second after its response.
    await until("the log has the decline", async () => {
      const { data } = await use("list_requests", { status: "402" });
      return data.length === 1 && data[0].error_code === "insufficient_funds";
    });
    const { deleted } = await use("reset_sandbox");
    assert.ok(deleted.payments >= 3);
    assert.equal((await use("get_clock")).mode, "real");
  }));

Deno.test("mcp bounds its results: a long page has fewer items, and a long object is cut", () =>
  withAgent(async (agent, { client }) => {
    const metadata = (length: number, letter: string) =>
      Object.fromEntries(Array.from({ length }, (_, i) => [`key_${i}`, letter.repeat(500)]));
    const payment = { amount: 1, currency: "EUR", outcome: "success" } as const;
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      ids.unshift((await client.payments.create({ ...payment, metadata: metadata(50, "a") })).id);
    }
    const first = await agent.call("list_payments", { limit: 20 });
    assert.ok(first.text.length <= MAX_RESULT_CHARACTERS);
    const { data, has_more, next_cursor } = first.value;
    assert.deepEqual([data.length, data[0].id, has_more], [1, ids[0], true]);
    const next = await agent.call("list_payments", { limit: 1, starting_after: next_cursor });
    assert.equal(next.value.data[0].id, ids[1]);
    // Each of these characters is six in JSON.
    const long = await client.payments.create({ ...payment, metadata: metadata(20, "\u0001") });
    const { content } = await agent.client.callTool({
      name: "get_payment",
      arguments: { id: long.id },
    });
    const [{ text }] = content as [{ text: string }];
    assert.equal(text.length, MAX_RESULT_CHARACTERS);
    assert.match(text, /\n\[Cut: \d{5} characters, of which this is the beginning\]$/);
    const over = await agent.call("list_payments", { limit: 21 });
    assert.equal(over.value.error.param, "limit");
  }));

Deno.test("mcp ends with 0 when its client closes the input, and prints nothing of its own", async () => {
  const env = { PAYMENTS_BASE_URL: "http://127.0.0.1:9", PAYMENTS_API_KEY: "sk_test_1" };
  const args = [Deno.execPath(), ...PROGRAM, "mcp"];
  const { code, output } = await runCommand({ args, cwd: "/", env });
  assert.deepEqual([code, output], [0, ""]);
});

for (
  const [env, code, message] of [
    [{ PAYMENTS_BASE_URL: "http://127.0.0.1:9", PAYMENTS_API_KEY: "sk_live_1" }, 2, /test key/],
    [{ PAYMENTS_BASE_URL: "http://127.0.0.1:9", PAYMENTS_API_KEY: "secret" }, 2, /test key/],
    [{ PAYMENTS_API_KEY: "sk_test_1" }, 1, /Set both/],
  ] as const
) {
  Deno.test(`mcp exits with ${code} at the start with ${JSON.stringify(env)}`, async () => {
    const ended = await call(["mcp"], env);
    assert.deepEqual([ended.code, ended.stdout], [code, ""]);
    assert.match(ended.stderr, message);
    assert.doesNotMatch(ended.stderr, /sk_live_1|secret/);
  });
}
