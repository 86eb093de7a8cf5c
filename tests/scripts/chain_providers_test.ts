/**
 * `deno task providers` for an account on a chain: its literal settings, the test against a node,
 * changed settings, and the way out after the chain has undone a final block.
 */

import assert from "node:assert/strict";
import { getAddress } from "viem";
import { connectorsOf } from "../../apps/operator/operator_database.ts";
import { canonicalXpub, depositAddress } from "../../shared/connectors/evm/evm_address.ts";
import { readProviderCommand } from "../../apps/operator/provider_command.ts";
import { runProviderCommand } from "../../apps/operator/providers.ts";
import { no_anvil, startAnvil } from "../support/chain/anvil.ts";
import { ChainWorld } from "../support/chain/chain_world.ts";
import { XPUB } from "../support/chain/watched.ts";
import { startService } from "../support/service/service.ts";

const ADDRESS = `0x${"1".repeat(40)}`;
const ADD = ["add", "--connector", "evm", "--methods", "stablecoin", "--account", "one"];
const set = (settings: Record<string, string>) =>
  Object.entries(settings).flatMap(([name, value]) => ["--set", `${name}=${value}`]);

Deno.test({
  name: "deno task providers with an account on a chain",
  ignore: no_anvil,
  async fn(t) {
    const node = await startAnvil();
    const variables: Record<string, string> = {};
    const service = await startService({ provider_secret: (name) => variables[name] });
    const { sql } = service;
    const world = await ChainWorld.open(node);
    const token = await world.deployToken();
    const said: string[] = [];
    let id = "";
    const run = async (...args: string[]) => {
      let printed = "";
      const command = readProviderCommand(args);
      assert.ok(command.action !== "help");
      await runProviderCommand(command, {
        sql,
        findConnector: connectorsOf(sql),
        env: (name) => variables[name],
        baseUrl: () => Promise.reject(new Error("a chain sends no notifications")),
        print: (text) => printed += text,
        printMessage: (line) => said.push(line),
      });
      return printed;
    };
    const add = (settings: Record<string, string>) => run(...ADD, ...set(settings), "--json");
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
    try {
      await t.step("add refuses a private key, and does not repeat it", async () => {
        const key = "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvvNKm";
        await assert.rejects(add({ ...literal, xpub: key }), (error: Error) => {
          assert.match(error.message, /^--set: .*Keep it offline/);
          return !error.message.includes(key);
        });
      });
      await t.step("add stores the settings, with one spelling of the key", async () => {
        const added = JSON.parse(
          await run(
            ...[...ADD, ...set(given), "--secret", "PROVIDER_RPC", "--json"],
          ),
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
        await assert.rejects(
          run("test", wrong.id),
          /contract\.USDC is not a token with 6 decimals/,
        );
        await run("disable", wrong.id);
        await sql`delete from pay.provider_cursors where account_id = ${wrong.id}`;
      });
      await t.step("reread is the way out after the chain has undone a final block", async () => {
        const kept = `${await world.transfer(token, ADDRESS, 5_000_000)}:0`;
        await world.mine(10);
        assert.equal((await poll()).last_error, null);
        await node.call("anvil_reorg", 8, []);
        const stalled = await poll();
        assert.match(
          stalled.last_error,
          /has undone the final block \d+.* providers reread --from$/,
        );
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
    } finally {
      await service.close();
      await node.close();
    }
  },
});
