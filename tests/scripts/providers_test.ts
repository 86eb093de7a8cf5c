/**
 * `deno task providers` and `deno task reconcile`: arguments, accounts in the database, and exit
 * codes. The connector of these tests stands for a provider, which is never called.
 */

import assert from "node:assert/strict";
import type { Connector } from "../../shared/domain/providers/connector.ts";
import { invalidParameter } from "../../shared/core/errors.ts";
import { readProviderCommand } from "../../apps/operator/provider_command.ts";
import { runProviderCommand } from "../../apps/operator/providers.ts";
import { startService } from "../support/service/service.ts";
import { PROJECT_DIR } from "../support/local/local_start.ts";

const ACCOUNT = `pac_${"0".repeat(26)}`;
const CALL = `pc_${"0".repeat(26)}`;
const PAYMENT = `pay_${"0".repeat(26)}`;
const ADD = ["add", "--connector", "stripe", "--methods", "card"];

/** Invalid arguments, and the message. */
const INVALID: [args: string[], message: RegExp][] = [
  [["pay"], /^Unknown command "pay"\n\nUsage:/],
  [["add", "--methods", "card"], /^--connector is required: stripe, evm, bank$/],
  [
    ["add", "--connector", "sandbox", "--methods", "card"],
    /^--connector "sandbox" is not part of this version: choose from stripe, evm, bank$/,
  ],
  [["add", "--connector", "stripe"], /^--methods is required: card$/],
  [
    ["add", "--connector", "stripe", "--methods", "card,sepa"],
    /^--methods "sepa" is not served by --connector stripe: choose from card$/,
  ],
  [[...ADD, "--account", " "], /^--account " " must have 1 to 100 characters$/],
  [[...ADD, "--secret", "sk_live_1234567890"], /^--secret must be the name of a variable, not its/],
  [[...ADD, "--secret", "RELAY_TOKEN"], /^--secret must be the name of a variable/],
  [[...ADD, "--secret", "PROVIDER_"], /^--secret must be the name of a variable/],
  [[...ADD, "--secret", `PROVIDER_${"A".repeat(61)}`], /^--secret must be the name/],
  [[...ADD, "--notification-secret", "whsec_1"], /^--notification-secret must be the name/],
  [
    ["A", "B", "C"].reduce((all, x) => [...all, "--notification-secret", `PROVIDER_${x}`], ADD),
    /^--notification-secret can be given 2 times$/,
  ],
  [[...ADD, "--set", "base_url"], /^--set must look like name=value/],
  [[...ADD, "--set", "base_url=1", "--set", "base_url=2"], /^--set has "base_url" twice$/],
  [[...ADD, "--token", "1"], /^providers add: Unknown option '--token'/],
  [["test"], /^The id of the account is missing: pac_\.\.\.$/],
  [["test", "sk_live_1"], /^The argument is not the id of an account: an id begins with pac_$/],
  [["disable", ACCOUNT, "more"], /^Unexpected argument "more"/],
  [["calls", "all"], /^providers calls: Unexpected argument 'all'/],
  [["retry"], /^The id of the operation is missing: pc_\.\.\.$/],
  [["retry", "pay_1"], /^The argument is not the id of an operation: an id begins with pc_$/],
  [["settle", CALL], /^settle needs either --succeeded REFERENCE or --failed$/],
  [["settle", CALL, "--failed", "--succeeded", "pi_1"], /^settle needs either --succeeded/],
  [["settle", CALL, "--succeeded", "pi 1"], /^--succeeded must be the provider's id/],
  [["settle", CALL, "--succeeded", "pi_1", "--unsynced"], /^--unsynced belongs to --failed$/],
  [["settle", "--failed"], /^The id of the operation is missing/],
  [["match", "pi_1:succeeded"], /^match needs a provider event and what it is about/],
  [["match", "pi_1:succeeded", PAYMENT, "--fee", "3,50"], /^--fee must be an amount such as/],
  [
    ["match", "pi_1:succeeded", "ch_1"],
    /^"ch_1" must be the id of a payment, /,
  ],
  [["match", "pi 1", PAYMENT], /^The provider event must look like pac_\.\.\.\/REFERENCE/],
  [["dismiss", "pi_1:succeeded"], /^--reason is required: 1 to 500 characters$/],
  [["dismiss", "pi_1:succeeded", "--reason", "x".repeat(501)], /^--reason is required/],
  [["dismiss", "--reason", "seen"], /^dismiss needs one provider event/],
];

for (const [args, message] of INVALID) {
  Deno.test(`readProviderCommand() refuses ${JSON.stringify(args)}`, () => {
    assert.throws(() => readProviderCommand(args), { name: "UsageError", message });
  });
}

Deno.test("readProviderCommand() never repeats a secret", () => {
  for (const flag of ["--secret", "--notification-secret"]) {
    assert.throws(
      () => readProviderCommand([...ADD, flag, "very_secret"]),
      (error: Error) => !error.message.includes("very_secret"),
    );
  }
});

/** A connector that remembers the account of its test. */
function recordingConnector() {
  const tested: unknown[] = [];
  const unused = () => Promise.reject(new Error("not called"));
  const connector: Connector = {
    name: "stripe",
    needs_secret: true,
    changeable_settings: [],
    checkSettings(settings) {
      for (const name of Object.keys(settings)) {
        if (name === "base_url") continue;
        return Promise.reject(invalidParameter(name, `"${name}" is unknown`));
      }
      return Promise.resolve(settings);
    },
    charges: { send: unused, sync: unused, find: unused },
    payouts: null,
    notifications: { read: unused },
    feed: { poll: unused, totals: unused },
    test(account) {
      tested.push(account);
      if (account.secret === "wrong") return Promise.reject(new Error("the secret is refused"));
      return Promise.resolve("Stripe responds: acct_1");
    },
  };
  return { connector, tested };
}

Deno.test("deno task providers", async (t) => {
  const service = await startService();
  const { sql, live } = service;
  const { connector, tested } = recordingConnector();
  const variables: Record<string, string> = {};
  const said: string[] = [];
  let printed = "";
  const run = async (...args: string[]) => {
    printed = "";
    const command = readProviderCommand(args);
    assert.ok(command.action !== "help");
    await runProviderCommand(command, {
      sql,
      findConnector: (name) => name === connector.name ? connector : null,
      env: (name) => variables[name],
      baseUrl: () => Promise.resolve("https://api.example.com/functions/v1"),
      print: (text) => printed += text,
      printMessage: (line) => said.push(line),
    });
    return printed;
  };
  const add = (...more: string[]) => run(...ADD, "--account", "one", ...more);
  try {
    let id = "";
    await t.step("add --json prints the id and the address for notifications", async () => {
      const found = JSON.parse(
        await add(
          ...["--secret", "PROVIDER_STRIPE", "--notification-secret", "PROVIDER_A", "--json"],
          ...["--notification-secret", "PROVIDER_B", "--set", "base_url=http://127.0.0.1:1/?a=b"],
        ),
      );
      id = found.id;
      assert.deepEqual(found, {
        id,
        notifications_url:
          `https://api.example.com/functions/v1/api-v1-payments/providers/${id}/notifications`,
      });
      const [row] = await sql`select * from pay.provider_accounts`;
      assert.deepEqual(
        [row!.environment_id, row!.settings, row!.secret_name, row!.notification_secret_names],
        [
          live.environment_id,
          { base_url: "http://127.0.0.1:1/?a=b" },
          "PROVIDER_STRIPE",
          ["PROVIDER_A", "PROVIDER_B"],
        ],
      );
    });
    await t.step(
      "a second account for the same method is refused with the first one",
      () =>
        assert.rejects(add(), { message: new RegExp(`${id} serves card\\. Disable it first$`) }),
    );
    await t.step(
      "an account without a live environment is refused",
      () =>
        assert.rejects(run(...ADD, "--account", "none"), {
          message:
            /^--account "none" has no live environment: create one with deno task keys create/,
        }),
    );
    await t.step("a setting that does not exist is refused", async () => {
      await assert.rejects(add("--set", "color=red"), { message: '--set: "color" is unknown' });
    });
    await t.step("list shows accounts with the names of their secrets", async () => {
      assert.equal(
        await run("list"),
        `${id}  one  stripe  card, never polled\n  settings: base_url=http://127.0.0.1:1/?a=b\n` +
          "  secrets: PROVIDER_STRIPE PROVIDER_A PROVIDER_B\n",
      );
    });
    await t.step(
      "test reads the secrets from the environment and prints the response",
      async () => {
        await assert.rejects(run("test", id), {
          message:
            `Cannot test ${id}: the variable PROVIDER_STRIPE is not set here. Set it as the ` +
            "functions have it",
        });
        Object.assign(variables, { PROVIDER_STRIPE: "s", PROVIDER_A: "a", PROVIDER_B: "b" });
        assert.equal(await run("test", id), "Stripe responds: acct_1\n");
        assert.deepEqual(tested, [{
          id,
          environment_id: live.environment_id,
          connector: "stripe",
          settings: { base_url: "http://127.0.0.1:1/?a=b" },
          secret: "s",
          notification_secrets: ["a", "b"],
        }]);
        variables.PROVIDER_STRIPE = "wrong";
        await assert.rejects(run("test", id), {
          message: `${id} does not work: the secret is refused`,
        });
        await assert.rejects(run("test", ACCOUNT), { message: `${ACCOUNT}: no such account` });
      },
    );
    await t.step("disable frees the method, once", async () => {
      await run("disable", id);
      assert.equal(said.at(-1), `Disabled ${id}. No account of "one" serves card now`);
      await assert.rejects(run("disable", id), { message: /it is disabled already$/ });
      assert.match(await add(), /^pac_[0-9a-z]{26}\n$/);
    });
  } finally {
    await service.close();
  }
});

/** Runs a command as a child process. */
async function spawn(command: string, env: Record<string, string>, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", "apps/operator/operator.ts", command, ...args],
    cwd: PROJECT_DIR,
    env: { DATABASE_URL: "", PUBLIC_BASE_URL: "", SUPABASE_URL: "", ...env },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), said: decoder.decode(stderr) };
}

Deno.test("the programs providers and reconcile", async (t) => {
  const service = await startService();
  const env = { DATABASE_URL: service.database.url };
  const providers = (...args: string[]) => spawn("providers", env, ...args);
  const reconcile = (...args: string[]) => spawn("reconcile", env, ...args);
  try {
    await t.step("providers list exits with 0, and wrong arguments with 2", async () => {
      assert.deepEqual(await providers("list"), { code: 0, out: "No accounts\n", said: "" });
      assert.equal((await providers("add")).code, 2);
      assert.match((await providers("--help")).out, /^Usage: deno task providers <command>/);
    });
    await t.step("providers test of an unknown account exits with 1", async () => {
      const { code, said } = await providers("test", ACCOUNT);
      assert.deepEqual([code, said], [1, `${ACCOUNT}: no such account\n`]);
    });
    await t.step("reconcile exits with 0 without a difference", async () => {
      const { code, out } = await reconcile();
      assert.deepEqual([code, out], [0, "The books agree with those of the providers\n"]);
    });
    await t.step("reconcile tells what a person has to look at, and exits with 3", async () => {
      const { sql, live } = service;
      await sql`
        insert into pay.provider_events (environment_id, account_id, reference, op, state,
          amount_minor, currency, happened_at, received_at, body, outcome, handled_at)
        values (${live.environment_id}, 'pac_1', 'pi_1', 'authorize', 'succeeded', 1, 'EUR', now(),
          now(), '{}', 'unmatched', now())`;
      const { code, out } = await reconcile();
      assert.deepEqual([code, out], [
        3,
        `warning: invariant_reported_events ${live.environment_id} pac_1 pi_1: unmatched: authorize succeeded ` +
        "of an unknown subject\nThe books agree with those of the providers\n",
      ]);
      const books = await spawn("check-books", env);
      assert.equal(books.code, 3);
      assert.match(books.out, /^REVIEW invariant_reported_events /m);
    });
    await t.step("reconcile prints each difference and exits with 1", async () => {
      await service.sql`update pay.provider_events set booked_minor = 5`;
      const { code, out } = await reconcile();
      assert.equal(code, 1);
      assert.match(out, /^invariant_provider_events .*: provider events of 5 EUR, ledger 0$/m);
      assert.equal((await spawn("check-books", env)).code, 1);
    });
    await t.step("reconcile exits with 2 if it cannot read the books", async () => {
      const { code, said } = await reconcile("postgres://127.0.0.1:1/none");
      assert.equal(code, 2);
      assert.match(said, /^DATABASE_URL cannot be used: the connection failed/);
    });
  } finally {
    await service.close();
  }
});
