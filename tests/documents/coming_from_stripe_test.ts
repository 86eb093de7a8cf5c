/**
 * docs/coming-from-stripe.md: its tables have every status, event and code of ours, its code runs,
 * Stripe's with the real package at stripe-mock and ours at the service, and so do its commands.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Stripe from "stripe";
import { signWebhook } from "../../packages/client/mod.ts";
import { COMMANDS, findCommand } from "../../packages/sandbox/commands.ts";
import {
  DISPUTE_STATUSES,
  EVENT_TYPES,
  PAYMENT_STATUSES,
  REFUND_STATUSES,
} from "../../shared/core/vocabulary.ts";
import { ERROR_CODES } from "../../shared/schema/error.ts";
import { outputOf } from "../support/common/running_command.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { codeBlocks, codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { call, wordsOf } from "../support/package/command_line.ts";
import { withServedService } from "../support/service/served_service.ts";
import { no_stripe_mock, startStripeMock } from "../support/stripe/stripe_mock.ts";

const CONFIG = fileURLToPath(new URL("../../deno.json", import.meta.url));
const SECRET = "whsec_of_a_test";
const EVENT = JSON.stringify({ id: "evt_1", object: "event", type: "an.event" });
/** The line of the page that makes Stripe's client, whose address the test replaces. */
const STRIPE_CLIENT = "new Stripe(process.env.STRIPE_SECRET_KEY!)";
/** Values in the words of the page, for commands that need real ones. */
const PAGE = await readProjectFile("docs/coming-from-stripe.md");

/** Codes that Stripe has no word for, or that no integration provokes by itself. */
const CODES_LEFT_OUT = ["invalid_json", "method_not_allowed", "origin_not_allowed"]
  .concat("payload_too_large", "provider_refused", "unsupported_media_type");
/** Tables by their first header cell, and the words that their last column has. */
const TABLES: [header: string, words: readonly string[]][] = [
  ["PaymentIntent at Stripe", PAYMENT_STATUSES],
  ["Refund at Stripe", REFUND_STATUSES],
  ["Dispute at Stripe", DISPUTE_STATUSES],
  ["Stripe", [...EVENT_TYPES, ...ERROR_CODES.filter((code) => !CODES_LEFT_OUT.includes(code))]],
];

for (const [header, words] of TABLES) {
  Deno.test(`the table "${header}" has every word of ours`, () => {
    const shown = tableRows(PAGE, header).flatMap((row) => codeTexts(row.at(-1)!));
    assert.deepEqual(words.filter((word) => !shown.includes(word)), []);
    // The tables of words of all kinds name other things too.
    if (header !== "Stripe") assert.deepEqual(shown.filter((word) => !words.includes(word)), []);
  });
}

/** The blocks of one side, as one module. A paragraph above each names the side. */
function moduleOf(side: "With Stripe:" | "Here:"): string {
  const lines = PAGE.split("\n");
  return codeBlocks(PAGE)
    .filter(({ language, line }) => language === "ts" && lines[line - 4] === side)
    .map(({ text }) => text).join("\n");
}

/** Runs a module with the imports of the project. Returns the lines that it prints. */
function runModule(text: string, env: Record<string, string>): Promise<string[]> {
  return withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder, { recursive: true });
    const path = join(folder, "page.ts");
    await Deno.writeTextFile(path, text);
    const args = [Deno.execPath(), "run", "-A", "--no-check", `--config=${CONFIG}`, path];
    return (await outputOf(args, { cwd: folder, env })).trimEnd().split("\n");
  });
}

Deno.test({
  name: "Stripe's code runs with the package stripe at stripe-mock",
  ignore: no_stripe_mock,
  async fn() {
    const mock = await startStripeMock();
    assert.ok(mock, "stripe-mock is not installed");
    try {
      const { hostname, port } = new URL(mock.base_url);
      const address = JSON.stringify({ host: hostname, port, protocol: "http", telemetry: false });
      const page = moduleOf("With Stripe:");
      assert.equal(page.split(STRIPE_CLIENT).length, 2);
      const signature = await new Stripe("sk_test_1").webhooks.generateTestHeaderStringAsync({
        payload: EVENT,
        secret: SECRET,
      });
      // stripe-mock declines no card, so nothing is printed about the decline.
      const printed = await runModule(
        page.replace(STRIPE_CLIENT, `new Stripe(process.env.STRIPE_SECRET_KEY!, ${address})`) +
          `\nconsole.log(await receiveStripe(${JSON.stringify(EVENT)}, "${signature}"));`,
        { STRIPE_SECRET_KEY: "sk_test_1", STRIPE_WEBHOOK_SECRET: SECRET },
      );
      assert.equal(printed.at(-1), "an.event");
      assert.ok(printed.length >= 6, printed.join("\n"));
    } finally {
      await mock.close();
    }
  },
});

Deno.test("our code runs at the service and prints what its comments say, and so do the commands", () =>
  withServedService(async ({ service, base_url, client }) => {
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    const page = moduleOf("Here:");
    const signature = await signWebhook({
      body: EVENT,
      secret: SECRET,
      timestamp_seconds: Math.floor(Date.now() / 1000),
    });
    const printed = await runModule(
      `${page}\nconsole.log(await receive(${JSON.stringify(EVENT)}, "${signature}"));`,
      { ...env, WEBHOOK_SECRET: SECRET },
    );
    const promised = [...page.matchAll(/console\.log\(.*\); \/\/ (.+)/g)].map(([, text]) => text!);
    assert.deepEqual(printed, [...promised, "an.event"]);

    await client.webhookEndpoints.create({ delivery: "inbox", events: ["*"] });
    const payment = await client.payments.create({ amount: 100, currency: "EUR" });
    const { id: authorized } = await client.payments.create({
      amount: 100,
      currency: "EUR",
      card: { token: "pm_card_visa" },
      capture: "manual",
    });
    const { instrument_id } = await client.payments.create({
      ...{ amount: 100, currency: "EUR", card: { token: "pm_card_visa" }, save: "off_session" },
      customer: { id: "u1", email: "ada@example.com" },
    });
    const { id: checkout } = await client.checkouts.create({ amount: 100, currency: "EUR" });
    const [event] = (await client.events.list({ limit: 1 })).data;
    /** Payments in the status that a command needs; the refund follows the capture. */
    const ids: Record<string, string> = { capture: authorized, refund: authorized };
    const commands = tableRows(PAGE, "Stripe CLI").map(([, ours]) => ours!)
      .filter((cell) => cell.startsWith("`payments-sandbox"))
      .map((cell) => wordsOf(codeTexts(cell)[0]!).slice(1));
    for (const words of commands) {
      assert.ok(findCommand(words), `no command "${words.join(" ")}"`);
      // The others wait for a receiver or a browser; their own tests run them.
      if (["listen", "trigger", "logs", "open"].includes(words[0]!)) continue;
      const args = words.map((word) =>
        word.replace("pay_…", ids[words[1]!] ?? payment.id).replace("evt_…", event!.id)
          .replace("ins_…", instrument_id!).replace("chk_…", checkout)
      );
      const { code, stderr } = await call(args, env);
      assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    }
    assert.ok(commands.length >= COMMANDS.length / 2);
  }));
