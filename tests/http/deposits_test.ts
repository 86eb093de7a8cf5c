/**
 * Sandbox payments by stablecoin that the payer sends to an address (contract §2): each advance of
 * a table has its status, events, amounts and ledger movements, and the invariants hold.
 */

import assert from "node:assert/strict";
import { EVM_NETWORKS, isMainChain } from "../../shared/connectors/evm/evm_networks.ts";
import { type Stablecoin, STABLECOINS } from "../../shared/core/currency.ts";
import { isValidAddress } from "../../shared/core/wallet_address.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import type { TestService } from "../support/service/service.ts";
import {
  assertRefused,
  LEDGER,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const AT = Date.parse("2026-06-07T08:09:10.111Z");
const HOUR_MS = 3_600_000;
const AMOUNT = 5_000_000;
const PAYER = "0x000000000000000000000000000000000000dEaD";

/** The advances, then the status, `amount_received`, failure code and movements afterwards. */
type Case = [
  name: string,
  moves: [to: string, amount_received?: number][],
  end: [status: string, received: number, failure: string | null],
  movements: string[],
];

const CAPTURED = `available ${AMOUNT}`;
const CASES: Case[] = [
  ["all in a block", [["processing"]], ["processing", AMOUNT, null], []],
  ["two parts", [["processing", 2_000_000], ["processing", 3_000_000], ["completed"]], [
    "completed",
    AMOUNT,
    null,
  ], [CAPTURED]],
  ["final at once", [["completed"]], ["completed", AMOUNT, null], [CAPTURED]],
  ["overpaid", [["completed", AMOUNT + 7]], ["completed", AMOUNT + 7, null], [
    CAPTURED,
    "unapplied 7",
  ]],
  ["reorganised away", [["processing", 9], ["pending"]], ["pending", 0, null], []],
  ["underpaid", [["processing", 9], ["failed"]], ["failed", 9, "underpaid"], ["unapplied 9"]],
  ["expired", [["failed"]], ["failed", 0, "expired"], []],
  ["late", [["failed"], ["failed", 8]], ["failed", 0, "expired"], ["unapplied 8"]],
  ["more after the end", [["completed"], ["completed", 6]], ["completed", AMOUNT, null], [
    CAPTURED,
    "unapplied 6",
  ]],
];

const create = async (service: TestService, currency: Stablecoin = "USDC") =>
  (await service.pay({ amount: AMOUNT, currency, method_kind: "stablecoin" })).body;
const move = (service: TestService, id: string, to: string, amount_received?: number) =>
  service.call("POST", `${SANDBOX}/payments/${id}/advance`, { body: { to, amount_received } });
const read = async (service: TestService, id: string) =>
  (await service.call("GET", `${PAYMENTS}/${id}`)).body;

serviceCase("a payment by stablecoin that is sent to an address", async (t, service) => {
  await service.setClock(AT);

  await t.step("has an address and a link", async () => {
    const { status, amount_received, next_action } = await create(service);
    assert.deepEqual([status, amount_received], ["pending", 0]);
    const { network, asset, contract, address, expires_at, uri } = next_action;
    assert.deepEqual([network, asset], ["ethereum", "USDC"]);
    assert.ok(isValidAddress("ethereum", address));
    assert.equal(Date.parse(expires_at), AT + HOUR_MS);
    assert.equal(
      uri,
      `ethereum:${contract}@11155111/transfer?address=${address}&uint256=${AMOUNT}`,
    );
  });

  for (const asset of STABLECOINS) {
    await t.step(`a wallet that follows the link pays with no real ${asset}`, async () => {
      const { contract, uri } = (await create(service, asset)).next_action;
      const [, token, chain_id] = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\//.exec(uri)!;
      assert.equal(token, contract);
      assert.ok(isValidAddress("ethereum", contract));
      assert.ok(!isMainChain(Number(chain_id)));
      assert.ok(!JSON.stringify(EVM_NETWORKS).includes(contract));
    });
  }

  for (const [name, moves, end, movements] of CASES) {
    await t.step(name, async () => {
      const { id } = await create(service);
      for (const [to, amount] of moves) {
        assert.equal((await move(service, id, to, amount)).status, 200);
      }
      const { status, amount_received, failure_code } = await read(service, id);
      assert.deepEqual([status, amount_received, failure_code], end);
      const { body } = await service.call("GET", `${LEDGER}?payment_id=${id}`);
      const credits = body.data
        .filter((entry: { account: string }) => entry.account !== "processor")
        .map((entry: { account: string; amount_minor: number }) =>
          `${entry.account} ${Math.abs(entry.amount_minor)}`
        );
      assert.deepEqual(credits.sort(), movements);
    });
  }

  await t.step("ends by itself after an hour", async () => {
    const [part, none] = [await create(service), await create(service)];
    await move(service, part.id, "processing", 1);
    await service.setClock(AT + HOUR_MS);
    await service.deps.provider_worker.notify();
    assert.equal((await read(service, part.id)).failure_code, "underpaid");
    assert.equal((await read(service, none.id)).failure_code, "expired");
  });

  await t.step("is refunded only to a named address", async () => {
    const { id } = await create(service);
    await move(service, id, "completed");
    const refund = (body: unknown) => service.call("POST", `${PAYMENTS}/${id}/refund`, { body });
    assertRefused(await refund({}), 400, "invalid_parameter", "destination");
    const destination = { address: PAYER };
    const { status, body } = await refund({ destination });
    assert.deepEqual([status, body.destination], [201, destination]);
  });

  await t.step("the invariants hold", () => assertSilent(service.sql));
});
