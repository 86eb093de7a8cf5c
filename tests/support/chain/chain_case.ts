/**
 * Tests of live payments and payouts by stablecoin: the product with an account on a chain of
 * anvil, and a wallet with tokens whose signer is a double. At the end of each test the ledger has
 * what came in less what went out, and no invariant is broken.
 */

import assert from "node:assert/strict";
import { checkBooks } from "../../../apps/operator/check_books.ts";
import { addAccount } from "../database/provider_flow.ts";
import { startService, type TestService } from "../service/service.ts";
import { no_anvil, startAnvil } from "./anvil.ts";
import { ChainWorld, type Hex, transferOf } from "./chain_world.ts";
import { type SignerDouble, startSigner } from "./node_proxy.ts";
import { XPUB } from "./watched.ts";

/** A test's view of the product and its chain. */
export type ChainCase = Awaited<ReturnType<typeof makeCase>>;

/** Longer than the time between two attempts. */
export const MINUTE_S = 61;

let addresses = 0;
/** Returns an address that no other test has. */
export const newAddress = () => `0x${(0xabc0000 + ++addresses).toString(16).padStart(40, "0")}`;

/** Registers a test with a chain and a product of its own. Without anvil it is skipped. */
export function chainCase(
  name: string,
  test: (given: ChainCase, signer: SignerDouble, t: Deno.TestContext) => Promise<void>,
): void {
  Deno.test({
    name,
    ignore: no_anvil,
    async fn(t) {
      await using open = new AsyncDisposableStack();
      const node = await startAnvil();
      open.defer(node.close);
      const service = await startService();
      open.defer(service.close);
      const signer = open.use(startSigner(node.url));
      const given = await makeCase(service, await ChainWorld.open(node), signer.url);
      await test(given, signer, t);
      await assertBalanced(given);
    },
  });
}

async function makeCase(service: TestService, world: ChainWorld, signer_url: string) {
  const { sql, live: { text: key, environment_id } } = service;
  const usdc = await world.deployToken();
  const [, signer_address] = await world.node.call<Hex[]>("eth_accounts");
  const wallet = signer_address!;
  await world.transfer(usdc, wallet, 100_000);
  await world.mine();
  const account_id = await addAccount(sql, environment_id, {
    connector: "evm",
    settings: {
      ...{ network: "base", chain_id: "31337", rpc_urls: world.node.url, xpub: XPUB },
      ...{ "contract.USDC": usdc, signer_address: wallet, signer_url },
    },
  });
  const post = async (path: string, body: object) => {
    const response = await service.call("POST", `/api-v1-payments/v1${path}`, { key, body });
    assert.equal(response.status, 201, response.text);
    return response.body;
  };
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
  /** Mines until the transfers so far are final. */
  const final = () => mined(5);
  /** Creates a payment of 1000 units of USDC, and asserts that it has an address. */
  const create = async () => {
    const asked = { amount: 1000, currency: "USDC", method_kind: "stablecoin" };
    const payment = await post("/payments", asked);
    assert.equal(payment.next_action?.type, "send_stablecoin", JSON.stringify(payment));
    return payment;
  };
  /** Sends tokens from the payer. */
  const send = ({ next_action }: { next_action: { address: string } }, amount: number) =>
    world.transfer(usdc, next_action.address, amount);
  /** Returns the status of a refund or transfer. */
  const statusOf = async ({ id }: { id: string }) => {
    const [row] = await sql<{ status: string }[]>`
      select status from pay.refunds where id = ${id}
      union all select status from pay.transfers where id = ${id}`;
    return row!.status;
  };
  /** Returns the amounts that an address has received from the wallet. */
  const received = async (address: string) => {
    const transfers = await world.transfers(usdc);
    return transfers.filter(({ from, to }) => from === wallet && to === address)
      .map(({ amount }) => amount);
  };
  let ahead_s = 0;
  return {
    ...{ service, world, usdc, wallet, account_id, work, mined, final, create, send },
    ...{ statusOf, received },
    /** Returns a completed payment of 1000. */
    async paid() {
      const payment = await create();
      await send(payment, 1000);
      await final();
      return payment;
    },
    /** Returns `status amount_received failure_code` of payments as the API shows them. */
    shown: (...payments: { id: string }[]) =>
      Promise.all(payments.map(async ({ id }) => {
        const { body } = await service.call("GET", `/api-v1-payments/v1/payments/${id}`, { key });
        const { status, amount_received, failure_code } = body;
        return [status, amount_received, failure_code].filter((each) => each !== null).join(" ");
      })),
    /** Lets time pass on the chain and for the service. */
    async pass(seconds: number) {
      await world.node.call("evm_increaseTime", seconds);
      await world.mine();
      const head = await world.node.call<{ timestamp: Hex }>(
        ...["eth_getBlockByNumber", "latest", false] as const,
      );
      await service.setClock(Number(head.timestamp) * 1000);
    },
    async refund({ id }: { id: string }, amount_minor: number, address = newAddress()) {
      const body = { amount_minor, destination: { address } };
      return { ...await post(`/payments/${id}/refund`, body), to: address, amount_minor };
    },
    async transfer(amount_minor: number, address = newAddress(), network = "base") {
      const destination = { wallet: { address, network } };
      const body = { amount_minor, currency: "USDC", destination };
      return { ...await post("/transfers", body), to: address, amount_minor };
    },
    /** Does the work that is due after a minute. */
    async later(seconds = MINUTE_S) {
      ahead_s += seconds;
      await service.setClock(Date.now() + ahead_s * 1000);
      await work();
    },
    /** Mines until the payouts are final, and asserts that each was paid once. */
    async completed(...payouts: { id: string; to: string; amount_minor: number }[]) {
      await final();
      for (const payout of payouts) {
        assert.equal(await statusOf(payout), "completed");
        assert.deepEqual(await received(payout.to), [payout.amount_minor]);
      }
    },
    /** Sends a transfer from the wallet without the service. */
    payByHand: (address: string, amount: number) =>
      world.node.call("eth_sendTransaction", {
        ...{ from: wallet, to: usdc, gas: "0xf4240", data: transferOf(address, amount) },
      }),
    async set(settings: Record<string, string | null>) {
      const added = Object.fromEntries(Object.entries(settings).filter(([, value]) => value));
      const removed = Object.keys(settings).filter((name) => settings[name] === null);
      await sql`update pay.provider_accounts
        set settings = (settings || ${JSON.stringify(added)}::text::jsonb) - ${removed}::text[]
        where id = ${account_id} and environment_id = ${environment_id}`;
    },
  };
}

/** Dismisses what the operator reads first. Operations that wait for the operator are no fault. */
async function assertBalanced(given: ChainCase): Promise<void> {
  const { service: { sql }, account_id, world, usdc } = given;
  const rows = await sql<{ address: Hex }[]>`
    select c.provider_reference as address
    from pay.deposit_addresses d join pay.provider_operations c on c.id = d.operation_id`;
  let came = 0;
  for (const { address } of rows) came += await world.balanceOf(usdc, address);
  const [sums] = await sql<[{ booked: number; out: number }]>`select
    (select coalesce(-sum(processor + external), 0)::int from pay_internal.subject_accounts)
      as booked,
    (select coalesce(sum(amount_minor), 0)::int from pay.provider_events
      where account_id = ${account_id} and op in ('refund', 'transfer') and state = 'succeeded'
        and outcome in ('applied', 'unmatched')) as out`;
  assert.equal(sums.booked, came - sums.out, "the ledger is the chain");
  await sql`select pay.dismiss_provider_event(account_id, reference, 'seen')
    from pay.list_reported_events()`;
  const found = (await checkBooks(sql)).flatMap(({ breaches, examples }) =>
    breaches > 0 ? examples : []
  );
  assert.deepEqual(found.filter((text) => !text.includes("decide by hand")), []);
}
