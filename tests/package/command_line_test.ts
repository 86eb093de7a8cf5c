/**
 * The command line of the npm package, from its sources: its help, its completion, which service it
 * calls, and its exit codes.
 */

import assert from "node:assert/strict";
import { keyOfHash } from "../../packages/sandbox/key_link.ts";
import { readArguments } from "../../packages/sandbox/command.ts";
import { COMMANDS, findCommand } from "../../packages/sandbox/commands.ts";
import { writeCredentials } from "../../apps/server/data_dir/credentials.ts";
import { PACKAGE_NAME } from "../../packages/sandbox/package_name.ts";
import { codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { outputOf } from "../support/common/running_command.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { call, withCommands, wordsOf } from "../support/package/command_line.ts";

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

for (
  const [words, shown, missing] of [
    ["-h", /payments create/, /^Usage: .* payments create/m],
    ["help", /clock advance/, /^Options:/m],
    ["payments --help", /payments create/, /clock advance/],
    ["clock -h", /clock advance/, /payments create/],
    ["help sandbox", /sandbox new/, /payments create/],
    ["payments create -h", /^Usage: .* payments create/m, /^Commands:/m],
    ["help logs tail", /--no-follow/, /^Commands:/m],
    ["-v", /^\d+\.\d+\.\d+\n$/, /Usage/],
    ["--version", /^\d+\.\d+\.\d+\n$/, /Usage/],
  ] as const
) {
  Deno.test(`${words} prints help or the version, and succeeds`, async () => {
    const { code, stdout, stderr } = await call(words.split(" "));
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, shown);
    assert.doesNotMatch(stdout, missing);
  });
}

/** The variables of the environment. Nothing listens on the port. */
const SET = { PAYMENTS_API_KEY: "http://127.0.0.1:9", PAYMENTS_BASE_URL: "http://127.0.0.1:9" };
const KEY_ONLY = { PAYMENTS_API_KEY: SET.PAYMENTS_API_KEY };
const AT = "--base-url http://127.0.0.1:9";
/** Arguments, the message, and an exit code or a variable other than none. */
const MISTAKES: [args: string, message: RegExp, env?: Record<string, string>, error?: string][] = [
  ["strat", /^Unknown command "strat"/],
  ["payments", /^"payments" is no command: payments create, /],
  ["payments crate", /^"payments crate" is no command/],
  ["payments create --amuont 1", /'--amuont'/],
  ["payments create", /^--amount is missing/],
  ["payments create --amount", /--amount/],
  ["payments create --amount 1.5", /whole number/],
  ["payments capture", /^The id is missing: pay_…/],
  ["payments cancel ..", /^"\.\." is no id: pay_…/],
  ["payments get pay_1 pay_2", /argument "pay_2"/],
  ["payments refund pay_1 --amount 0", /--amount must/],
  ["events list --limit 101", /--limit .* from 1 to 100/],
  ["trigger payment.paid", /is no event type: payment\.created, /],
  ["reset", /^--yes is missing/, SET],
  [`logs tail ${AT}`, /Set both/],
  [`open ${AT} --key `, /--key is empty/],
  ["logs tail --base-url ftp://x --key sk_test_1", /baseUrl "ftp:\/\/x"/],
  ["start --temporary --data-dir x", /^--data-dir cannot be used with --temporary/],
  ["start --port 70000", /from 0 to 65535/],
  ["logs tail", /Set both PAYMENTS_BASE_URL/, KEY_ONLY, "command_failed"],
  ["payments list", /got no response/, SET, "connection_failed"],
];

for (const [words, message, env = {}, error_code = "invalid_arguments"] of MISTAKES) {
  const code = error_code === "invalid_arguments" ? 2 : 1;
  Deno.test(`${words} exits with ${code}, and with --json prints ${error_code}`, async () => {
    const args = words.split(" ");
    const plain = await call(args, env);
    assert.deepEqual([plain.code, plain.stdout], [code, ""]);
    assert.match(plain.stderr, message);
    const json = await call([...args, "--json"], env);
    assert.deepEqual([json.code, json.stderr], [code, ""]);
    const { error } = JSON.parse(json.stdout);
    assert.deepEqual([error.type, error.code], ["command_line", error_code]);
    // A stream prints lines of JSON.
    if (args[0] === "logs") assert.match(json.stdout, /^[^\n]+\n$/);
  });
}

for (
  const words of ["payments create --amount 1", "payments refund pay_1", "events resend evt_1"]
) {
  Deno.test(`${words} needs --live with a live key, and then sends it`, async () => {
    const args = [...words.split(" "), "--base-url", "http://127.0.0.1:9", "--key", "sk_live_1"];
    const refused = await call(args);
    assert.deepEqual([refused.code, refused.stdout], [2, ""]);
    assert.match(refused.stderr, /give --live, or use a test key\n$/);
    const allowed = await call([...args, "--live", "--json"]);
    assert.equal(JSON.parse(allowed.stdout).error.code, "connection_failed");
  });
}

Deno.test("docs/testing.md lists every command and no other", async () => {
  const page = await Deno.readTextFile(new URL("../../docs/testing.md", import.meta.url));
  const shown = tableRows(page, "Command").flatMap(([command]) => codeTexts(command!));
  const calls = COMMANDS.map(({ name, args }) => args === undefined ? name : `${name} ${args}`);
  assert.deepEqual(shown.sort(), calls.sort());
});

for (
  const [line, expected] of [
    ["", COMMANDS.map(({ name }) => name.split(" ")[0]!)],
    ["payments ", ["cancel", "capture", "create", "get", "list", "refund"]],
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
    const completed = await outputOf(["bash", "-c", script], { cwd: "/" });
    const found = completed.trim().split("\n").filter((word) => word !== "--help");
    assert.deepEqual(found.sort(), [...new Set(expected)].sort());
  });
}

Deno.test("a command calls the service of its options, of the environment, or of the folder", () =>
  withCommands(async ({ service, base_url, env }) => {
    await withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder);
      const key = service.key.text;
      const create = ["payments", "create", "--amount", "1999"];
      const nothing = await call(create, {}, folder);
      assert.equal(nothing.code, 1);
      assert.match(nothing.stderr, /^No service: there is no ".*credentials\.json"/);

      const options = await call([...create, "--base-url", base_url, "--key", key], {}, folder);
      assert.match(options.stdout, /^pay_\w+ {2}completed {2}19\.99 EUR\n$/, options.stderr);
      assert.equal((await call(create, env, folder)).code, 0);
      await Deno.mkdir(`${folder}/.local`);
      writeCredentials(`${folder}/.local`, { base_url, test_key: key, live_key: "" });
      assert.equal((await call(create, {}, folder)).code, 0);

      // The key of the folder is not sent to another service.
      const half = await call([...create, "--base-url", "http://127.0.0.1:9"], {}, folder);
      assert.equal(half.code, 2);
      assert.equal(half.stderr, "Set both --base-url and --key, or neither\n");
    });
  }));

Deno.test("payments create passes each option on, and prints a refusal as JSON", () =>
  withCommands(async ({ command }) => {
    const create = (...args: string[]) => command("payments", "create", "--json", ...args);
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
    const { error } = JSON.parse(refused.stdout);
    assert.deepEqual([error.code, error.param], ["invalid_parameter", "currency"]);
    assert.equal(refused.code, 2);
    const declined = await create("--amount", "100", "--outcome", "declined");
    assert.equal(JSON.parse(declined.stdout).error.payment.status, "declined");
    assert.deepEqual([declined.code, declined.stderr], [1, ""]);
    const returned = ["--amount", "100", "--iban", "DE00 0000 0000 0000 0000 99"];
    const failed = await create(...returned);
    assert.deepEqual([failed.code, JSON.parse(failed.stdout).status], [1, "failed"]);
    const line = await command("payments", "create", ...returned);
    assert.equal(line.code, 1);
    assert.match(line.stdout, /^pay_\w+ {2}failed bank_return {2}1\.00 EUR\n$/);
  }));

Deno.test("sandbox new prints the key of an empty sandbox alone; open opens it by another", () =>
  withCommands(async ({ command, clientWith }) => {
    const { code, stdout, stderr } = await command("sandbox", "new", "--expires-in", "60");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^sk_test_\w+\n$/);
    assert.match(stderr, /^env_\w+, until \d{4}-/);
    const made = clientWith({ apiKey: stdout.trim() });
    assert.deepEqual((await made.payments.list()).data, []);
    const wrong = await command("sandbox", "new", "--expires-in", "59");
    assert.equal(wrong.code, 2);

    const [id] = stderr.split(",");
    const link = await command("open", "--print", "--sandbox", id!);
    assert.equal(link.code, 0, link.stderr);
    const key = keyOfHash(new URL(link.stdout).hash)!;
    assert.notEqual(key, stdout.trim());
    await made.payments.create({ amount: 1, currency: "EUR", outcome: "success" });
    const seen = clientWith({ apiKey: key });
    assert.equal((await seen.payments.list()).data.length, 1);
    assert.equal((await seen.apiKeys.own()).name, "Console");
  }));
