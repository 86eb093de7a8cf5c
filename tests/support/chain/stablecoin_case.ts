/** Tests of live payments by stablecoin: the product with an account on a chain of anvil. */

import assert from "node:assert/strict";
import { encodeFunctionData, parseAbi } from "viem";
import { checkBooks } from "../../../apps/operator/check_books.ts";
import { idGenerator } from "../../../shared/core/ids.ts";
import { startService, type TestService } from "../service/service.ts";
import { no_anvil, startAnvil } from "./anvil.ts";
import { ChainWorld, type Hex } from "./chain_world.ts";
import { XPUB } from "./watched.ts";

/** A test's view of the product and its chain. */
export type StablecoinCase = Awaited<ReturnType<typeof makeCase>>;

const ABI = parseAbi(["function balanceOf(address) view returns (uint256)"]);

/** Registers a test with a chain and a product of its own. Without anvil it is skipped. */
export function stablecoinCase(
  name: string,
  test: (given: StablecoinCase, t: Deno.TestContext) => Promise<void>,
): void {
  Deno.test({
    name,
    ignore: no_anvil,
    async fn(t) {
      const node = await startAnvil();
      try {
        const service = await startService();
        try {
          await test(await makeCase(service, await ChainWorld.open(node)), t);
        } finally {
          await service.close();
        }
      } finally {
        await node.close();
      }
    },
  });
}

async function makeCase(service: TestService, world: ChainWorld) {
  const { sql, live } = service;
  const [usdc, usdt] = [await world.deployToken(), await world.deployToken()];
  const account_id = idGenerator(Date.now())("pac_");
  const settings = {
    network: "base",
    chain_id: "31337",
    rpc_urls: world.node.url,
    xpub: XPUB,
    "contract.USDC": usdc,
    "contract.USDT": usdt,
  };
  await sql`select pay.add_provider_account(${account_id}, ${live.environment_id}, 'evm',
    ${["stablecoin"]}, ${JSON.stringify(settings)}, null, ${[]})`;
  /** Does all work of the service. */
  const work = async () => {
    await sql`update pay.provider_cursors set polled_at = null, leased_until = null`;
    for (let turn = 0; turn < 5; turn++) {
      // A provider event that waits for another one has a lease.
      await sql`update pay.provider_events set leased_until = null where outcome is null`;
      await service.deps.provider_worker.notify();
      const [open] = await sql`select from pay.provider_events where outcome is null limit 1`;
      if (!open) return;
    }
    const open = await sql`select reference from pay.provider_events where outcome is null`;
    assert.deepEqual([...open], [], "provider events without an outcome");
  };
  /** Mines blocks, and does all work of the service. */
  const mined = async (blocks = 1) => {
    await world.mine(blocks);
    await work();
  };
  return {
    ...{ service, world, usdc, usdt, account_id, work, mined },
    /** Mines until the transfers so far are final. */
    final: () => mined(5),
    /** Creates a payment of 1000 units of USDC, and asserts that it has an address. */
    async create() {
      const response = await service.pay(
        { amount: 1000, currency: "USDC", method_kind: "stablecoin" },
        { key: live.text },
      );
      assert.equal(response.status, 201, response.text);
      assert.equal(response.body.next_action?.type, "send_stablecoin", response.text);
      return response.body;
    },
    /** Sends tokens from the payer. */
    send: ({ next_action }: { next_action: { address: string } }, amount: number) =>
      world.transfer(usdc, next_action.address, amount),
    /** Returns `status amount_received failure_code` of payments as the API shows them. */
    shown: (...payments: { id: string }[]) =>
      Promise.all(payments.map(async ({ id }) => {
        const url = `/api-v1-payments/v1/payments/${id}`;
        const { body } = await service.call("GET", url, { key: live.text });
        const { status, amount_received, failure_code } = body;
        return [status, amount_received, failure_code].filter((each) => each !== null).join(" ");
      })),
    /** Lets time pass on the chain and for the service. */
    async pass(seconds: number) {
      await world.node.call("evm_increaseTime", seconds);
      await world.mine();
      const head = await world.node.call<{ timestamp: Hex }>(
        "eth_getBlockByNumber",
        "latest",
        false,
      );
      await service.setClock(Number(head.timestamp) * 1000);
    },
  };
}

/** Returns the balance of an address in a token. */
export async function balanceOf(
  { world, usdc }: Pick<StablecoinCase, "world" | "usdc">,
  address: Hex,
  to = usdc,
): Promise<number> {
  const data = encodeFunctionData({ abi: ABI, functionName: "balanceOf", args: [address] });
  return Number(await world.node.call<Hex>("eth_call", { to, data }, "latest"));
}

/** Returns the sums of the tokens that our addresses have on the chain, by currency. */
export async function chainBalances(given: StablecoinCase): Promise<Record<string, number>> {
  const { service: { sql }, usdc, usdt } = given;
  const rows = await sql<{ address: Hex }[]>`
    select c.provider_reference as address
    from pay.deposit_addresses d join pay.provider_operations c on c.id = d.operation_id`;
  const sums: Record<string, number> = {};
  for (const [currency, to] of Object.entries({ USDC: usdc, USDT: usdt })) {
    for (const { address } of rows) {
      const amount = await balanceOf(given, address, to);
      if (amount > 0) sums[currency] = (sums[currency] ?? 0) + amount;
    }
  }
  return sums;
}

/** Returns the money at the provider by currency, according to our ledger. */
export async function ledgerBalances({ service }: StablecoinCase): Promise<Record<string, number>> {
  const rows = await service.sql`
    select currency, -sum(processor)::int as balance from pay_internal.subject_accounts
    where environment_id = ${service.live.environment_id}
    group by currency having sum(processor) <> 0 order by currency`;
  return Object.fromEntries(rows.map(({ currency, balance }) => [currency, balance]));
}

/**
 * Asserts that no invariant is broken, after what the operator reads is dismissed.
 * @param is_open matches breaches that a test leaves open
 */
export async function assertNoBreaches(
  { service: { sql } }: StablecoinCase,
  is_open: (text: string) => boolean = () => false,
): Promise<void> {
  await sql`select pay.dismiss_provider_event(account_id, reference, 'seen') from pay.list_reported_events()`;
  const verdicts = await checkBooks(sql);
  const found = verdicts.flatMap(({ breaches, examples }) => breaches > 0 ? examples : []);
  assert.deepEqual(found.filter((text) => !is_open(text)), []);
}

/** Returns the unapplied money of a payment, or of the account. */
export async function unapplied({ service }: StablecoinCase, subject_id: string): Promise<number> {
  const [row] = await service.sql`
    select coalesce(sum(unapplied), 0)::int as amount from pay_internal.subject_accounts
    where subject_id = ${subject_id}`;
  return row!.amount;
}
