/** Tests of payouts in stablecoins: a wallet with tokens, a signer, and the sums at the end. */

import assert from "node:assert/strict";
import type { Hex } from "./chain_world.ts";
import { type SignerDouble, startSigner } from "./node_proxy.ts";
import {
  assertNoBreaches,
  chainBalances,
  ledgerBalances,
  type StablecoinCase,
  stablecoinCase,
} from "./stablecoin_case.ts";

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/** Longer than the time between two attempts. */
export const MINUTE_S = 61;

/** A case with a wallet that pays, an account of the node. */
type PayoutCase = Awaited<ReturnType<typeof makeCase>>;

let addresses = 0;
/** Returns an address that no other test has. */
export const newAddress = () => `0x${(0xabc0000 + ++addresses).toString(16).padStart(40, "0")}`;

/** Registers a test with a chain, a product, and a wallet whose signer is a double. */
export function payoutCase(
  name: string,
  test: (given: PayoutCase, signer: SignerDouble, t: Deno.TestContext) => Promise<void>,
): void {
  stablecoinCase(name, async (given, t) => {
    await using signer = startSigner(given.world.node.url);
    const made = await makeCase(given);
    await made.set({ signer_address: made.wallet, signer_url: signer.url });
    await test(made, signer, t);
    await assertBalanced(made);
  });
}

async function makeCase(given: StablecoinCase) {
  const { service, world, usdc, account_id, work } = given;
  const { sql, live: { text: key, environment_id } } = service;
  const [, wallet] = await world.node.call<Hex[]>("eth_accounts");
  await world.transfer(usdc, wallet!, 100_000);
  await world.mine();
  const post = async (path: string, body: object) => {
    const response = await service.call("POST", `/api-v1-payments/v1${path}`, { key, body });
    assert.equal(response.status, 201, response.text);
    return response.body;
  };
  let ahead_s = 0;
  return {
    ...given,
    wallet: wallet!,
    /** Returns a completed payment of 1000. */
    async paid() {
      const payment = await given.create();
      await given.send(payment, 1000);
      await given.final();
      return payment;
    },
    refund: ({ id }: { id: string }, amount_minor: number, address: string) =>
      post(`/payments/${id}/refund`, { amount_minor, destination: { address } }),
    transfer: (amount_minor: number, address: string) =>
      post("/transfers", {
        amount_minor,
        currency: "USDC",
        destination: { wallet: { address, network: "base" } },
      }),
    /** Does the work that is due after a minute. */
    async later(seconds = MINUTE_S) {
      ahead_s += seconds;
      await service.setClock(Date.now() + ahead_s * 1000);
      await work();
    },
    /** Returns the status of a refund or transfer. */
    async statusOf({ id }: { id: string }) {
      const [row] = await sql<{ status: string }[]>`
        select status from pay.refunds where id = ${id}
        union all select status from pay.transfers where id = ${id}`;
      return row!.status;
    },
    /** Sends a transfer from the wallet without the service. */
    payByHand: (address: string, amount: number) =>
      world.node.call("eth_sendTransaction", {
        from: wallet,
        to: usdc,
        gas: "0xf4240",
        data: transferOf(address, amount),
      }),
    /** Returns the amounts that an address has received from the wallet. */
    async received(address: string) {
      const logs = await world.node.call<{ data: Hex }[]>("eth_getLogs", {
        fromBlock: "0x0",
        toBlock: "latest",
        address: usdc,
        topics: [TRANSFER, topic(wallet!), topic(address)],
      });
      return logs.map(({ data }) => Number(BigInt(data)));
    },
    async set(settings: Record<string, string | null>) {
      const added = Object.fromEntries(Object.entries(settings).filter(([, value]) => value));
      const removed = Object.keys(settings).filter((name) => settings[name] === null);
      await sql`update pay.provider_accounts
        set settings = (settings || ${JSON.stringify(added)}::text::jsonb) - ${removed}::text[]
        where id = ${account_id} and environment_id = ${environment_id}`;
    },
  };
}

/** Returns an address as a topic of a log. */
function topic(address: string): string {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
}

/** Asserts that the ledger has what came in less what went out, and that no invariant is broken. */
async function assertBalanced(given: PayoutCase): Promise<void> {
  const { service: { sql }, account_id } = given;
  const [out] = await sql<{ sum: number }[]>`
    select coalesce(sum(amount_minor), 0)::int as sum from pay.provider_events
    where account_id = ${account_id} and op in ('refund', 'transfer') and state = 'succeeded'
      and outcome in ('applied', 'unmatched')`;
  const [external] = await sql<{ sum: number }[]>`
    select coalesce(sum(external), 0)::int as sum from pay_internal.subject_accounts`;
  const { USDC: came = 0 } = await chainBalances(given);
  const { USDC: booked = 0 } = await ledgerBalances(given);
  assert.equal(booked - external!.sum, came - out!.sum, "the ledger is the chain");
  await assertNoBreaches(given, (text) => text.includes("decide by hand"));
}

/** Encodes the transfer of an amount to an address. */
export function transferOf(address: string, amount: number): string {
  return `0xa9059cbb${topic(address).slice(2)}${amount.toString(16).padStart(64, "0")}`;
}
