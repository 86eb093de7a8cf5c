/**
 * The command line of the npm package, from its sources: its help, its completion, which service it
 * calls, and its exit codes.
 */

import assert from "node:assert/strict";
import { readArguments } from "../../package/command.ts";
import { COMMANDS, findCommand } from "../../package/commands.ts";
import { PACKAGE_NAME } from "../../package/package_name.ts";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { withServedService } from "../support/service/served_service.ts";
import { call, wordsOf, writeCredentials } from "../support/package/command_line.ts";
import { runCommand } from "../support/package/installed_package.ts";

Deno.test("each example of the help can be parsed by its command", () => {
  for (const command of COMMANDS) {
    assert.ok(command.examples.length > 0, command.name);
    for (const example of command.examples) {
      const found = findCommand(wordsOf(example));
      assert.equal(found?.command, command, example);
      readArguments(command, found!.args);
    }
  }
});

Deno.test("--help lists every command, and each command its options", async () => {
  const { code, stdout } = await call(["--help"]);
  assert.equal(code, 0);
  for (const { name, summary } of COMMANDS) {
    assert.ok(stdout.includes(`  ${name}`) && stdout.includes(summary), name);
  }
  const help = await call(["payments", "create", "--help"]);
  assert.match(help.stdout, /--amount N +in minor units/);
  assert.match(help.stdout, /Examples:\n {2}payments-sandbox payments create --amount 1999\n/);
});

Deno.test("docs/testing.md lists every command and no other", async () => {
  const page = await Deno.readTextFile(new URL("../../docs/testing.md", import.meta.url));
  const shown = tableRows(page, "Command").map(([command]) => codeTexts(command!)[0]);
  const calls = COMMANDS.map(({ name, args }) => args === undefined ? name : `${name} ${args}`);
  assert.deepEqual(shown.sort(), calls.sort());
});

for (
  const [line, expected] of [
    ["", COMMANDS.map(({ name }) => name.split(" ")[0]!)],
    ["payments ", ["create"]],
    ["start --t", ["--temporary"]],
    ["payments create --json --cur", ["--currency"]],
    ["listen --f", ["--forward-to"]],
    ["clock ", ["advance"]],
    ["logs tail --no", ["--no-follow"]],
  ] as const
) {
  Deno.test(`completion: "${line}" is followed by ${expected.join(", ")}`, async () => {
    const { stdout } = await call(["completion", "bash"]);
    const words = [PACKAGE_NAME, ...line.split(" ")].map((word) => `"${word}"`).join(" ");
    const script = `${stdout}
COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_${PACKAGE_NAME.replaceAll("-", "_")}; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const completed = await runCommand({ args: ["bash", "-c", script], cwd: "/", env: {} });
    const found = completed.stdout.trim().split("\n").filter((word) => word !== "--help");
    assert.deepEqual(found.sort(), [...new Set(expected)].sort());
  });
}

Deno.test("a command calls the service of its options, of the environment, or of the folder", () =>
  withServedService(async ({ service, base_url }) => {
    await withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder);
      const key = service.key.text;
      const create = ["payments", "create", "--amount", "1999"];
      const nothing = await call(create, {}, folder);
      assert.equal(nothing.code, 1);
      assert.match(nothing.stderr, /^No service: there is no ".*credentials\.json"/);

      const options = await call([...create, "--base-url", base_url, "--key", key], {}, folder);
      assert.match(options.stdout, /^pay_\w+ {2}completed {2}19\.99 EUR\n$/, options.stderr);
      const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: key };
      assert.equal((await call(create, env, folder)).code, 0);
      await writeCredentials(folder, { base_url, test_key: key });
      assert.equal((await call(create, {}, folder)).code, 0);

      // The key of the folder is not sent to another service.
      const half = await call([...create, "--base-url", "http://127.0.0.1:9"], {}, folder);
      assert.equal(half.code, 1);
      assert.equal(half.stderr, "Set both --base-url and --key, or neither\n");
    });
  }));

Deno.test("payments create passes each option on, and prints a refusal as JSON", () =>
  withServedService(async ({ service, base_url }) => {
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    const create = (...args: string[]) => call(["payments", "create", "--json", ...args], env);
    const given = ["--amount", "4200", "--currency", "USD", "--reference", "order-7"];
    const more = ["--capture", "manual", "--email", "ada@example.com"];
    const { stdout } = await create(...given, ...more, "--idempotency-key", "order-7");
    const { status, amount, currency, reference, customer, id } = JSON.parse(stdout);
    assert.deepEqual({ status, amount, currency, reference, email: customer.email }, {
      status: "authorized",
      amount: 4200,
      currency: "USD",
      reference: "order-7",
      email: "ada@example.com",
    });
    const again = await create(...given, ...more, "--idempotency-key", "order-7");
    assert.equal(JSON.parse(again.stdout).id, id);
    const forced = await create("--amount", "100", "--outcome", "refunded");
    assert.equal(JSON.parse(forced.stdout).status, "refunded");
    const iban = await create("--amount", "100", "--iban", "DE89 3704 0044 0532 0130 00");
    assert.equal(JSON.parse(iban.stdout).method_kind, "sepa");
    const refused = await create("--amount", "100", "--currency", "XXX");
    assert.equal(refused.code, 1);
    const { error } = JSON.parse(refused.stdout);
    assert.deepEqual([error.code, error.param], ["invalid_parameter", "currency"]);
  }));

Deno.test("trigger sends the event to the only endpoint and shows its answer", () =>
  withServedService(async ({ service, base_url, client }) => {
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    const { id } = await client.payments.create({ amount: 1, currency: "EUR", outcome: "success" });
    const trigger = (...args: string[]) =>
      call(["trigger", "payment.completed", "--payment", id, ...args], env);
    const nothing = await trigger();
    assert.equal(nothing.stderr, "There is no webhook endpoint: register one first\n");

    const answers = [204, 500];
    const received: string[] = [];
    const receiver = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      async (r) => {
        received.push((await r.json()).type);
        return new Response(null, { status: answers[received.length - 1]! });
      },
    );
    try {
      const url = `http://127.0.0.1:${receiver.addr.port}/`;
      await client.webhookEndpoints.create({ url, events: ["transfer.created"] });
      const good = await trigger();
      assert.match(good.stdout, /^whd_\w+ {2}payment\.completed {2}\w+ {2}204\n$/, good.stderr);
      assert.equal(good.code, 0);
      const bad = await trigger();
      assert.match(bad.stdout, /500\n$/);
      assert.equal(bad.code, 1);
      assert.deepEqual(received, ["payment.completed", "payment.completed"]);
      await client.webhookEndpoints.create({ url, events: ["transfer.created"] });
      assert.match((await trigger()).stderr, /several webhook endpoints/);
    } finally {
      await receiver.shutdown();
    }
  }));

Deno.test("sandbox new prints the key of an empty sandbox alone", () =>
  withServedService(async ({ service, base_url, clientWith }) => {
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    const { code, stdout, stderr } = await call(["sandbox", "new", "--expires-in", "60"], env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^sk_test_\w+\n$/);
    assert.match(stderr, /^env_\w+, until \d{4}-/);
    const made = clientWith({ apiKey: stdout.trim() });
    assert.deepEqual((await made.payments.list()).data, []);
    const wrong = await call(["sandbox", "new", "--expires-in", "59"], env);
    assert.equal(wrong.code, 2);
  }));
