/** Payouts by bank in a sandbox (contract §3): transfers and refunds to a payee's account. */

import assert from "node:assert/strict";
import {
  APPROVED,
  assertRefused,
  PAYMENTS,
  REFUNDS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

import type { TestService } from "../support/service/service.ts";

const TRANSFERS = "/api-v1-payments/v1/transfers";
const IBAN = "FR14 2004 1010 0505 0001 3M02 606";
const BRITISH = "GB29 NWBK 6016 1331 9268 19";
const ADDRESS = { line1: "1 High Street", city: "London", postal_code: "SW1", country: "GB" };
const MASKED = { country: "FR", last4: "2606" };

/** [name, members of the request; status, speed and verification of the payee of the transfer] */
const TRANSFERRED: [string, Record<string, unknown>, string, string | null, string?][] = [
  ["an IBAN as text", { destination: { iban: IBAN } }, "completed", "standard"],
  [
    "the members beside it",
    { destination: { iban: IBAN, holder_name: "Ada", bic: "BNPAFRPP" } },
    "completed",
    "standard",
  ],
  [
    "the members inside",
    { destination: { iban: { iban: IBAN, holder_name: "Ada", bic: "BNPAFRPP" } } },
    "completed",
    "standard",
  ],
  ["instant", { destination: { iban: IBAN }, speed: "instant" }, "completed", "instant"],
  [
    "a match",
    { destination: { iban: IBAN, holder_name: "Match Ltd" } },
    "completed",
    "standard",
    "match",
  ],
  [
    "no match",
    { destination: { iban: IBAN, holder_name: "No match Ltd" } },
    "pending",
    "standard",
    "no_match",
  ],
  [
    "a close match in the object",
    { destination: { iban: { iban: IBAN, holder_name: "Close match Ltd" } }, speed: "instant" },
    "pending",
    "instant",
    "close_match",
  ],
  [
    "an address",
    { destination: { iban: BRITISH, holder_name: "Ada", address: ADDRESS } },
    "completed",
    "standard",
  ],
  [
    "a wallet",
    { currency: "USDC", destination: { wallet: "0x000000000000000000000000000000000000dEaD" } },
    "completed",
    null,
  ],
];

/** [name, members of the request, param] */
const REFUSED: [string, Record<string, unknown>, string][] = [
  ["no address outside the EEA", { destination: { iban: BRITISH } }, "destination.address"],
  ["an address without a city", {
    destination: { iban: BRITISH, address: { country: "GB" } },
  }, "destination.address.city"],
  ["an address without a country", {
    destination: { iban: BRITISH, address: { city: "London" } },
  }, "destination.address.country"],
  ["a long line", {
    destination: { iban: BRITISH, address: { ...ADDRESS, line2: "x".repeat(71) } },
  }, "destination.address.line2"],
  ["a BIC of another country", { destination: { iban: IBAN, bic: "COBADEFF" } }, "destination.bic"],
  ["two names", {
    destination: { iban: { iban: IBAN, holder_name: "Ada" }, holder_name: "Eve" },
  }, "destination.holder_name"],
  ["a name of a wallet", {
    currency: "USDC",
    destination: { wallet: "0x000000000000000000000000000000000000dEaD", holder_name: "Ada" },
  }, "destination.holder_name"],
  ["instant in dollars", {
    currency: "USD",
    destination: { iban: IBAN },
    speed: "instant",
  }, "speed"],
  ["another speed", { destination: { iban: IBAN }, speed: "fast" }, "speed"],
];

/** Returns the events of a transfer or payment with what they show about the payee, oldest first. */
async function shownEvents(service: TestService, filter: string): Promise<string[]> {
  const { body } = await service.call("GET", `/api-v1-payments/v1/events?${filter}`);
  const events = body.data as { type: string; data: { object: { payee_check?: string } } }[];
  return events.filter(({ type }) => !type.startsWith("payment."))
    .map(({ type, data: { object } }) => `${type} ${object.payee_check}`).toReversed();
}

serviceCase("transfers to a payee", async (t, service) => {
  for (const currency of ["EUR", "USD"]) {
    await service.make({ amount_minor: 100_000, currency, outcome: "success" });
  }
  await service.make({
    amount_minor: 100_000,
    currency: "USDC",
    method_kind: "stablecoin",
    outcome: "success",
  });
  const eventsOf = (filter: string) => shownEvents(service, filter);
  const send = (body: Record<string, unknown>) =>
    service.call("POST", TRANSFERS, { body: { amount: 10, currency: "EUR", ...body } });
  for (const [name, body, status, speed, payee_check = null] of TRANSFERRED) {
    await t.step(`${name}: ${status}`, async () => {
      const { status: http, body: made, text } = await send(body);
      assert.equal(http, 201, text);
      assert.deepEqual(
        [made.status, made.speed, made.payee_check],
        [status, speed, payee_check],
      );
      for (const secret of ["Ltd", "Ada", "London", "BNPA", "2004"]) {
        assert.ok(!text.includes(secret), text);
      }
      assert.deepEqual(await eventsOf(`transfer_id=${made.id}`), [
        "transfer.created null",
        ...(payee_check ? [`transfer.updated ${payee_check}`] : []),
        ...(status === "completed" ? [`transfer.completed ${payee_check}`] : []),
      ]);
      if (status !== "pending") return;
      assert.deepEqual(made.destination, { type: "iban", iban: MASKED });
      const approve = `${SANDBOX}/transfers/${made.id}/advance`;
      const { body: approved } = await service.call("POST", approve, { body: { to: "completed" } });
      assert.deepEqual([approved.status, approved.payee_check], ["completed", payee_check]);
    });
  }
  for (const [name, body, param] of REFUSED) {
    await t.step(`${name}: 400 ${param}`, async () => {
      assertRefused(await send(body), 400, "invalid_parameter", param);
    });
  }
  await t.step("a live transfer needs the name of the payee", async () => {
    const live = (destination: unknown) =>
      service.call("POST", TRANSFERS, {
        key: service.live.text,
        body: { amount: 10, currency: "EUR", destination },
      });
    const refused = await live({ iban: IBAN });
    assertRefused(refused, 400, "invalid_parameter", "destination.holder_name");
  });
  await t.step("the log of the sandbox has no name and no address", async () => {
    await send({ destination: { iban: BRITISH, holder_name: "Ada Secret", address: ADDRESS } });
    await service.deps.request_log.flush();
    const rows = await service.sql`select request_body from pay.requests`;
    assert.ok(!JSON.stringify(rows).includes("Secret"), "a name is in the log");
    assert.ok(!JSON.stringify(rows).includes("High Street"), "an address is in the log");
  });
}, { request_log: true });

serviceCase("refunds to a payee", async (t, service) => {
  const refund = async (instrument: Record<string, unknown>, body: Record<string, unknown>) => {
    const currency = "wallet" in instrument ? "USDC" : "EUR";
    const { body: { id } } = await service.pay({ ...instrument, currency });
    return await service.call("POST", `${PAYMENTS}/${id}/refund`, { body });
  };
  await t.step("without a destination it is as before", async () => {
    const { body } = await refund(APPROVED.sepa, { amount: 10 });
    assert.deepEqual(
      [body.status, body.destination, body.speed, body.payee_check],
      ["completed", null, "standard", null],
    );
  });
  await t.step("to another account, instantly", async () => {
    const destination = { iban: IBAN, holder_name: "Ada", bic: "BNPAFRPP" };
    const { body } = await refund(APPROVED.sepa, { destination, speed: "instant" });
    assert.deepEqual([body.status, body.destination, body.speed], [
      "completed",
      { iban: MASKED },
      "instant",
    ]);
    assert.deepEqual((await service.call("GET", `${REFUNDS}/${body.id}`)).body, body);
  });
  await t.step("of a payment by SWIFT, with an address", async () => {
    const destination = { iban: BRITISH, holder_name: "Ada", address: ADDRESS };
    const { body, text } = await refund(APPROVED.swift, { destination });
    assert.deepEqual(body.destination, { iban: { country: "GB", last4: "6819" } }, text);
  });
  await t.step("to another name it waits for the operator", async () => {
    const destination = { iban: IBAN, holder_name: "No match Ltd" };
    const { body } = await refund(APPROVED.sepa, { destination });
    assert.deepEqual([body.status, body.payee_check], ["pending", "no_match"]);
    const approve = `${SANDBOX}/refunds/${body.id}/advance`;
    const { body: approved } = await service.call("POST", approve, { body: { to: "completed" } });
    assert.deepEqual([approved.status, approved.payee_check], ["completed", "no_match"]);
  });
  await t.step("to a name that matches it does not wait, and shows the result", async () => {
    const destination = { iban: IBAN, holder_name: "Match Ltd" };
    const { body } = await refund(APPROVED.sepa, { destination });
    assert.deepEqual([body.status, body.payee_check], ["completed", "match"]);
    assert.deepEqual((await service.call("GET", `${REFUNDS}/${body.id}`)).body, body);
    assert.deepEqual(await shownEvents(service, `payment_id=${body.payment_id}`), [
      "refund.created null",
      "refund.updated match",
      "refund.completed match",
    ]);
  });
  const WALLET = "0x000000000000000000000000000000000000dEaD";
  /** [name, instrument, members, param] */
  const REFUSED_REFUNDS: [string, Record<string, unknown>, Record<string, unknown>, string][] = [
    ["a card", APPROVED.card, { destination: { iban: IBAN } }, "destination"],
    ["a card, instantly", APPROVED.card, { speed: "instant" }, "speed"],
    ["SWIFT, instantly", APPROVED.swift, { speed: "instant" }, "speed"],
    ["a wallet for SEPA", APPROVED.sepa, { destination: { address: WALLET } }, "destination"],
    ["a wallet beside the IBAN", APPROVED.sepa, {
      destination: { iban: IBAN, address: WALLET },
    }, "destination.address"],
    ["an address without a country", APPROVED.sepa, {
      destination: { iban: BRITISH, address: { city: "London" } },
    }, "destination.address.country"],
    ["an IBAN for stablecoin", APPROVED.stablecoin, {
      destination: { iban: IBAN },
    }, "destination.address"],
  ];
  for (const [name, instrument, body, param] of REFUSED_REFUNDS) {
    await t.step(`${name}: 400 ${param}`, async () => {
      assertRefused(await refund(instrument, body), 400, "invalid_parameter", param);
    });
  }
});

serviceCase("a deletion of bank details", async (t, service) => {
  const paid = async (instrument: Record<string, unknown>, more = {}) =>
    (await service.pay({ ...instrument, currency: "EUR", ...more })).body.id;
  const erase = (path: string, idempotency_key?: string) =>
    service.call("DELETE", `${path}/bank_details`, idempotency_key ? { idempotency_key } : {});
  const refund = (id: string, body: Record<string, unknown>) =>
    service.call("POST", `${PAYMENTS}/${id}/refund`, { body: { amount: 10, ...body } });
  for (const instrument of [APPROVED.sepa, APPROVED.swift]) {
    await t.step("a refund by bank then names its destination", async () => {
      const id = await paid(instrument);
      assert.equal((await refund(id, {})).status, 201);
      const key = crypto.randomUUID();
      const { status, body } = await erase(`${PAYMENTS}/${id}`, key);
      assert.deepEqual([status, body], [200, { id, object: "bank_details", deleted: true }]);
      assertRefused(await refund(id, {}), 400, "invalid_parameter", "destination");
      const named = await refund(id, { destination: { iban: IBAN } });
      assert.deepEqual([named.status, named.body.destination], [201, { iban: MASKED }]);
      assert.deepEqual((await erase(`${PAYMENTS}/${id}`, key)).body, body);
      const { method } = (await service.call("GET", `${PAYMENTS}/${id}`)).body;
      assert.equal(typeof method.iban.last4, "string");
    });
  }
  await t.step("a card has none, and its refund goes back as before", async () => {
    const id = await paid(APPROVED.card);
    assert.equal((await erase(`${PAYMENTS}/${id}`)).status, 200);
    assert.equal((await refund(id, {})).status, 201);
  });
  await t.step("what waits for a result is 409, which keeps no idempotency key", async () => {
    const id = await paid(APPROVED.sepa, { settlement: "manual" });
    const key = crypto.randomUUID();
    const { status, body: { error } } = await erase(`${PAYMENTS}/${id}`, key);
    assert.deepEqual([status, error.code, error.current_status], [409, "invalid_state", "pending"]);
    await service.call("POST", `${PAYMENTS}/${id}/cancel`, { body: {} });
    assert.equal((await erase(`${PAYMENTS}/${id}`, key)).status, 200);
  });
  await t.step("a payment is no transfer", async () => {
    const id = await paid(APPROVED.sepa);
    assert.equal((await erase(`${TRANSFERS}/${id}`)).status, 404);
  });
});
