/**
 * The operation that opens the address of a payment. It needs no node, and repeats give the same
 * one.
 */

import assert from "node:assert/strict";
import type { Operation, ProviderReply } from "../../shared/domain/providers/connector.ts";
import type { Payment } from "../../shared/schema/payment.ts";
import { depositAddress } from "../../shared/connectors/evm/evm_address.ts";
import { evmConnector } from "../../shared/connectors/evm/evm_connector.ts";
import { NO_CHAIN } from "../support/chain/no_chain.ts";
import { DOUBLE_TOKEN } from "../support/chain/node_double.ts";
import { FIRST_ATTEMPT } from "../support/connectors/stripe_case.ts";
import { chainAccount, XPUB } from "../support/chain/watched.ts";

const account = chainAccount({ rpc_urls: "http://127.0.0.1:1", "contract.USDC": DOUBLE_TOKEN });
const expires_at = "2027-01-02T04:04:05.000Z";
const { charges: { send, sync, find } } = evmConnector(NO_CHAIN);

function makeOperation(parts: Partial<Operation> = {}): Operation {
  return {
    id: "pc_1",
    op: "authorize",
    environment_id: "env_1",
    subject_id: "pay_1",
    subject: { id: "pay_1" } as Payment,
    refund_id: null,
    refund: null,
    dispute: null,
    amount_minor: 1_990_000,
    currency: "USDC",
    request: { token: null },
    provider_reference: null,
    ...FIRST_ATTEMPT,
    created_at: "2027-01-02T03:04:05.000Z",
    reserved: { index: 7, expires_at },
    ...parts,
  };
}

Deno.test("send() opens the address of the index, and sync() opens the same one", async () => {
  const address = depositAddress(XPUB, 7);
  const signal = AbortSignal.timeout(1_000);
  const reply = await send(account, makeOperation(), signal);
  assert.deepEqual(reply, {
    provider_events: [{
      account_id: account.id,
      reference: `${address}:opened`,
      object_id: address,
      op: "authorize",
      state: "pending",
      subject_id: "pay_1",
      refund_id: null,
      provider_reference: address,
      amount_minor: 1_990_000,
      currency: "USDC",
      at: "2027-01-02T03:04:05.000Z",
      livemode: false,
      next_action: {
        type: "send_stablecoin",
        network: "ethereum",
        asset: "USDC",
        contract: DOUBLE_TOKEN,
        address,
        amount_minor: 1_990_000,
        expires_at,
        uri: `ethereum:${DOUBLE_TOKEN}@31337/transfer?address=${address}&uint256=1990000`,
      },
    }],
  });
  assert.deepEqual(await sync(account, makeOperation(), signal), reply);
});

/** Parts of an operation that is refused, and the field at fault. */
const REFUSED: Record<string, [parts: Partial<Operation>, param: string | undefined]> = {
  "an asset without a contract": [{ currency: "USDT" }, "currency"],
  "money of a bank": [{ currency: "EUR" }, "currency"],
  "a capture": [{ op: "capture" }, undefined],
};

for (const [name, [parts, param]] of Object.entries(REFUSED)) {
  Deno.test(`send() refuses ${name}`, async () => {
    const reply = await send(account, makeOperation(parts), AbortSignal.timeout(1_000));
    assert("refused" in reply, JSON.stringify(reply));
    assert.equal(reply.param, param);
  });
}

Deno.test("find() has nothing", async () => {
  const found: ProviderReply = await find(
    account,
    makeOperation(),
    "0x1",
    AbortSignal.timeout(1_000),
  );
  assert.deepEqual(found, { absent: true });
});
