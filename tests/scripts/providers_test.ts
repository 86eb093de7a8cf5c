/**
 * `deno task providers`: its arguments, and accounts in the database. One connector stands for a
 * provider, which is never called; an account on a chain reads a node: its literal settings, the
 * test, changed settings, and the way out after the chain has undone a final block.
 */

import assert from "node:assert/strict";
import { getAddress } from "viem";
import { canonicalXpub, depositAddress } from "../../shared/connectors/evm/evm_address.ts";
import type { Connector } from "../../shared/domain/providers/connector.ts";
import { invalidParameter } from "../../shared/core/errors.ts";
import { readCommand } from "../../apps/operator/operator.ts";
import { no_anvil, startAnvil } from "../support/chain/anvil.ts";
import { ChainWorld } from "../support/chain/chain_world.ts";
import { XPUB } from "../support/chain/watched.ts";
import { providerCommands, setFlags } from "../support/live/provider_commands.ts";
import { startService } from "../support/service/service.ts";

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
  [["match", "pi_1:succeeded", "ch_1"], /^"ch_1" must be the id of a payment, /],
  [["match", "pi 1", PAYMENT], /^The provider event must look like pac_\.\.\.\/REFERENCE/],
  [["dismiss", "pi_1:succeeded"], /^--reason is required: 1 to 500 characters$/],
  [["dismiss", "pi_1:succeeded", "--reason", "x".repeat(501)], /^--reason is required/],
  [["dismiss", "--reason", "seen"], /^dismiss needs one provider event/],
];

for (const [args, message] of INVALID) {
  Deno.test(`deno task providers refuses ${JSON.stringify(args)}`, () =>
    assert.rejects(readCommand("providers", args), { name: "UsageError", message }));
}

Deno.test("deno task providers never repeats a secret", async () => {
  for (const flag of ["--secret", "--notification-secret"]) {
    await assert.rejects(
      readCommand("providers", [...ADD, flag, "very_secret"]),
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
    takes: () => Promise.resolve(true),
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
  await using service = await startService();
  const { sql, live } = service;
  const { connector, tested } = recordingConnector();
  const variables: Record<string, string> = {};
  const { run, said } = providerCommands(sql, variables, {
    findConnector: (name) => name === connector.name ? connector : null,
  });
  const add = (...more: string[]) => run(...ADD, "--account", "one", ...more);
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
  await t.step("a wrong account is refused", async () => {
    await assert.rejects(add(), {
      message: new RegExp(`${id} serves card\\. Disable it first$`),
    });
    await assert.rejects(run(...ADD, "--account", "none"), {
      message: /^--account "none" has no live environment: create one with deno task keys create/,
    });
    await assert.rejects(add("--set", "color=red"), { message: '--set: "color" is unknown' });
  });
  await t.step("list shows accounts with the names of their secrets", async () => {
    assert.equal(
      await run("list"),
      `${id}  one  stripe  card, never polled\n  settings: base_url=http://127.0.0.1:1/?a=b\n` +
        "  secrets: PROVIDER_STRIPE PROVIDER_A PROVIDER_B\n",
    );
  });
  await t.step("test reads the secrets of the environment, and prints the response", async () => {
    const refused = (message: string, account = id) =>
      assert.rejects(run("test", account), { message });
    const unset = "the variable PROVIDER_STRIPE is not set here. Set it as the functions have it";
    await refused(`Cannot test ${id}: ${unset}`);
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
    await refused(`${id} does not work: the secret is refused`);
    await refused(`${ACCOUNT}: no such account`, ACCOUNT);
  });
  await t.step("disable frees the method, once", async () => {
    await run("disable", id);
    assert.equal(said.at(-1), `Disabled ${id}. No account of "one" serves card now`);
    await assert.rejects(run("disable", id), { message: /it is disabled already$/ });
    assert.match(await add(), /^pac_[0-9a-z]{26}\n$/);
  });
});

const ADDRESS = `0x${"1".repeat(40)}`;
const ADD_CHAIN = ["add", "--connector", "evm", "--methods", "stablecoin", "--account", "one"];

Deno.test({
  name: "deno task providers with an account on a chain",
  ignore: no_anvil,
  async fn(t) {
    await using open = new AsyncDisposableStack();
    const node = await startAnvil();
    open.defer(node.close);
    const variables: Record<string, string> = {};
    await using service = await startService({ provider_secret: (name) => variables[name] });
    const { sql } = service;
    const { run } = providerCommands(sql, variables);
    const world = await ChainWorld.open(node);
    const token = await world.deployToken();
    let id = "";
    const add = (settings: Record<string, string>) =>
      run(...ADD_CHAIN, ...setFlags(settings), "--json");
    /** Polls the account, and returns its place. */
    const poll = async () => {
      await sql`update pay.provider_cursors set polled_at = null, leased_until = null`;
      await service.deps.provider_worker.notify();
      const [row] = await sql`select cursor, stalled_since, last_error from pay.provider_cursors`;
      return row!;
    };
    const given = {
      network: "base",
      chain_id: "31337",
      rpc_urls: `${node.url}/?key={secret}`,
      xpub: XPUB,
      "contract.USDC": token,
      "contract.USDT": await world.deployToken(),
      confirmations: "3",
      expires_after_seconds: "600",
      signer_url: "http://127.0.0.1:1",
      signer_address: ADDRESS,
    };
    const literal = { ...given, xpub: canonicalXpub(XPUB) };
    await t.step("add refuses a private key, and does not repeat it", async () => {
      const key = "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKm";
      await assert.rejects(add({ ...literal, xpub: key }), (error: Error) => {
        assert.match(error.message, /^--set: .*Keep it offline/);
        return !error.message.includes(key);
      });
    });
    await t.step("add stores the settings, with one spelling of the key", async () => {
      const added = JSON.parse(
        await run(...[...ADD_CHAIN, ...setFlags(given), "--secret", "PROVIDER_RPC", "--json"]),
      );
      id = added.id;
      assert.deepEqual(added, { id, notifications_url: null });
      const [row] = await sql`select settings, secret_name from pay.provider_accounts`;
      assert.deepEqual([row!.settings, row!.secret_name], [literal, "PROVIDER_RPC"]);
    });
    await t.step("test prints the tokens as their contracts show them", async () => {
      await assert.rejects(run("test", id), /the variable PROVIDER_RPC is not set here/);
      variables.PROVIDER_RPC = "key";
      const line = await run("test", id);
      assert.match(line, /^base \(chain 31337\) is at block 2, final up to 0 with 3 blocks/);
      assert.ok(line.includes(`USDC ${getAddress(token)} (symbol "USDC", 6 decimals)`), line);
      assert.ok(line.includes(`first address of the xpub is ${depositAddress(XPUB, 0)}`), line);
      assert.match(line, /add a second\n$/);
    });
    await t.step("set changes the node, and test shows another chain", async () => {
      const other = await startAnvil({ chain_id: 1 });
      try {
        await run("set", id, "--set", `rpc_urls=${node.url},${other.url}`);
        await assert.rejects(run("test", id), /node 2 of rpc_urls serves the chain 1, and not/);
      } finally {
        await other.close();
      }
      await run("set", id, "--set", `rpc_urls=${node.url}`, "--unset", "confirmations");
      assert.match(await run("test", id), /by the tag finalized/);
      const [row] = await sql`select settings from pay.provider_accounts`;
      const { confirmations: _, ...rest } = literal;
      assert.deepEqual(row!.settings, { ...rest, rpc_urls: node.url });
    });
    await t.step("set refuses settings that addresses depend on", async () => {
      await assert.rejects(run("set", id, "--set", `xpub=${XPUB}`), /^.*Cannot change "xpub"/);
      await assert.rejects(run("set", id, "--unset", "contract.USDC"), /Cannot change/);
      await assert.rejects(run("set", id, "--set", "rpc_urls=http://one.example"), /--set:/);
    });
    await t.step("test refuses a contract that is no token", async () => {
      await run("disable", id);
      const wrong = JSON.parse(await add({ ...literal, "contract.USDC": ADDRESS }));
      await sql`update pay.provider_accounts set secret_name = 'PROVIDER_RPC'
        where id = ${wrong.id}`;
      await assert.rejects(run("test", wrong.id), /contract\.USDC is not a token with 6 decimals/);
      await run("disable", wrong.id);
      await sql`delete from pay.provider_cursors where account_id = ${wrong.id}`;
    });
    await t.step("reread is the way out after the chain has undone a final block", async () => {
      const kept = `${await world.transfer(token, ADDRESS, 5_000_000)}:0`;
      await world.mine(10);
      assert.equal((await poll()).last_error, null);
      await node.call("anvil_reorg", 8, []);
      const stalled = await poll();
      assert.match(stalled.last_error, /has undone the final block \d+.* providers reread --from$/);
      assert.notEqual(stalled.stalled_since, null);
      await assert.rejects(run("reread", id, "--from", "100"), /the last final block is \d+$/);
      // The transfer that was booked has left the chain.
      const gone = `0x${"a".repeat(64)}:0`;
      for (const reference of [kept, gone]) {
        const [tx_hash, index] = reference.split(":");
        const body = { chain: { tx_hash, log_index: Number(index) } };
        await sql`
        insert into pay.provider_events (environment_id, account_id, reference, op, state,
          provider_reference, amount_minor, currency, happened_at, received_at, body, outcome,
          handled_at)
        values (${service.live.environment_id}, ${id}, ${reference}, 'authorize', 'succeeded',
          ${ADDRESS}, 5000000, 'USDC', now(), now(), ${sql.json(body)}, 'applied', now())`;
      }
      assert.equal(
        await run("reread", id, "--from", "1"),
        `Booked transfers since then: 2. Gone from the chain: 1\n${gone}\n` +
          "  no payment  5.000000 USDC\n",
      );
      const { cursor, stalled_since } = await poll();
      assert.equal(stalled_since, null);
      assert.ok(cursor.final.number > 1, JSON.stringify(cursor));
    });
    await t.step("reread waits for a worker that reads the account", async () => {
      await sql`update pay.provider_cursors set leased_until = now() + interval '1 minute'`;
      await assert.rejects(run("reread", id, "--from", "1"), /is being read at present/);
    });
  },
});
