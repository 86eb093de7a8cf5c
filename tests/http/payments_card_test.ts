/**
 * Cards of `POST /v1/payments`: numbers that are not test cards, CVCs, and the expiry to the
 * millisecond. No response, log or table contains a refused number (contract §2).
 */

import assert from "node:assert/strict";
import { rowCounts } from "../support/database/payment_records.ts";
import { assertRefused, card, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const NUMBERS: [string, number: unknown][] = [
  ["a valid number that is no test card", "4111 1111 1111 1111"],
  ["another", "4012-8888-8888-1881"],
  ["a test card with a wrong last digit", "4242 4242 4242 4241"],
  ["a test card with a digit more", "4242 4242 4242 4242 4"],
  ["a test card cut short", "4242 4242 4242 424"],
  ["other separators", "4242.4242.4242.4242"],
  ["full-width digits", "４２４２４２４２４２４２４２４２"],
  ["letters", "four two four two"],
  ["nothing", ""],
  ["a JSON number", 4242424242424242],
];

serviceCase("POST /v1/payments refuses numbers that are not test cards", async (t, service) => {
  for (const [name, number] of NUMBERS) {
    await t.step(name, async () => {
      const before = await rowCounts(service);
      service.logs.length = 0;
      const response = await service.pay(card({ number } as never), { idempotency_key: "number" });
      assertRefused(response, 400, "invalid_parameter", "card.number");
      assert.deepEqual(await rowCounts(service), before);
      if (number === "") return;
      const digits = String(number).replace(/\D/g, "") || "none";
      // The message names a published number, which has the first digits of some of these numbers.
      const text = response.text.replaceAll("such as 4242 4242 4242 4242", "");
      const told = text + JSON.stringify([...response.headers]) + JSON.stringify(service.logs);
      assert.ok(!told.includes(String(number)), "echoed as sent");
      assert.ok(!told.includes(digits), "echoed as digits");
    });
  }
});

const CVCS: [number: string, cvc: unknown, result: "taken" | "refused"][] = [
  ["4242 4242 4242 4242", "000", "taken"],
  ["4242 4242 4242 4242", "999", "taken"],
  ["4242 4242 4242 4242", "1234", "refused"],
  ["4242 4242 4242 4242", "12", "refused"],
  ["4242 4242 4242 4242", "", "refused"],
  ["4242 4242 4242 4242", "12a", "refused"],
  ["4242 4242 4242 4242", " 123", "refused"],
  ["4242 4242 4242 4242", "١٢٣", "refused"],
  ["4242 4242 4242 4242", 123, "refused"],
  ["4242 4242 4242 4242", null, "refused"],
  ["4242 4242 4242 4242", undefined, "refused"],
  ["4000 0000 0000 0002", "12", "refused"],
  ["3782 822463 10005", "1234", "taken"],
  ["3782 822463 10005", "123", "taken"],
  ["3782 822463 10005", "12345", "refused"],
];

serviceCase("POST /v1/payments checks the CVC", async (t, service) => {
  for (const [number, cvc, result] of CVCS) {
    await t.step(`${number} with ${JSON.stringify(cvc)} is ${result}`, async () => {
      const before = await rowCounts(service);
      const response = await service.pay(card({ number, cvc } as never));
      if (result === "taken") return assert.equal(response.status, 201, response.text);
      assertRefused(response, 400, "invalid_parameter", "card.cvc");
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  for (const postal_code of ["", "10115", "SW1A 1AA", "00000"]) {
    await t.step(`any postal code is accepted: "${postal_code}"`, async () => {
      const response = await service.pay(card({ postal_code } as never));
      assert.equal(response.status, 201, response.text);
    });
  }
});

/** A card is valid until the last millisecond (UTC) of its month. */
const EXPIRIES: [month: unknown, year: unknown, at: string, refused: string | null][] = [
  [11, 2026, "2026-11-20T12:00:00.000Z", null],
  [11, 2026, "2026-11-30T23:59:59.999Z", null],
  [11, 2026, "2026-12-01T00:00:00.000Z", "card.exp_month"],
  [12, 2026, "2026-12-31T23:59:59.999Z", null],
  [12, 2026, "2027-01-01T00:00:00.000Z", "card.exp_year"],
  [2, 2028, "2028-02-29T23:59:59.999Z", null],
  [2, 2028, "2028-03-01T00:00:00.000Z", "card.exp_month"],
  [10, 2026, "2026-11-01T00:00:00.000Z", "card.exp_month"],
  [12, 2025, "2026-01-01T00:00:00.000Z", "card.exp_year"],
  [1, 2027, "2026-12-31T23:59:59.999Z", null],
  [0, 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  [13, 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  [1.5, 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  ["12", 2030, "2026-11-20T12:00:00.000Z", "card.exp_month"],
  [12, 30, "2026-11-20T12:00:00.000Z", "card.exp_year"],
  [12, "2030", "2026-11-20T12:00:00.000Z", "card.exp_year"],
  [12, undefined, "2026-11-20T12:00:00.000Z", "card.exp_year"],
];

serviceCase("POST /v1/payments checks the expiry", async (t, service) => {
  for (const [exp_month, exp_year, at, refused] of EXPIRIES) {
    await t.step(`${exp_month}/${exp_year} at ${at} → ${refused ?? "accepted"}`, async () => {
      await service.setClock(Date.parse(at));
      const before = await rowCounts(service);
      const response = await service.pay(card({ exp_month, exp_year } as never));
      if (refused === null) return assert.equal(response.status, 201, response.text);
      assertRefused(response, 400, "invalid_parameter", refused);
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  await service.setClock(null);
  for (const number of ["4000 0000 0000 0069", "4000000000000069", "4000-0000-0000-0069"]) {
    await t.step(`${number} is expired on any date`, async () => {
      const before = await rowCounts(service);
      assertRefused(await service.pay(card(number)), 400, "invalid_parameter", "card.exp_year");
      assertRefused(await service.make(card(number)), 400, "invalid_parameter", "card.exp_year");
      assert.deepEqual(await rowCounts(service), before);
    });
  }
});

serviceCase("POST /v1/payments refuses 12.0 as a month", async (_t, service) => {
  const body =
    `{"amount":1,"currency":"EUR","card":{"number":"4242424242424242","exp_month":12.0,` +
    `"exp_year":2034,"cvc":"123"}}`;
  const response = await service.call("POST", PAYMENTS, { body });
  assertRefused(response, 400, "invalid_parameter", "card.exp_month");
});
