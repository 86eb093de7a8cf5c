/** The text of EPC QR codes, line by line as in EPC069-12. */

import assert from "node:assert/strict";
import { epcQr } from "../../shared/core/epc_qr.ts";

const TRANSFER = {
  iban: "DE09000000000000000001",
  bic: "PAYSDEF0",
  holder_name: "Payments Sandbox",
  reference: "RF33MSSYZKCZNCNZE40R",
  amount_minor: 1234,
  currency: "EUR",
};

Deno.test("epcQr() has the lines of version 002", () => {
  assert.equal(
    epcQr(TRANSFER),
    `BCD
002
1
SCT
PAYSDEF0
Payments Sandbox
DE09000000000000000001
EUR12.34

RF33MSSYZKCZNCNZE40R`,
  );
});

const AMOUNTS: [amount_minor: number, line: string | null][] = [
  [1, "EUR0.01"],
  [10, "EUR0.10"],
  [100, "EUR1.00"],
  [123_456, "EUR1234.56"],
  [99_999_999_999, "EUR999999999.99"],
  [100_000_000_000, null],
];

for (const [amount_minor, line] of AMOUNTS) {
  Deno.test(`epcQr() of ${amount_minor} cents: ${line ?? "none"}`, () => {
    assert.equal(epcQr({ ...TRANSFER, amount_minor })?.split("\n")[7] ?? null, line);
  });
}

Deno.test("epcQr() is null in another currency", () => {
  assert.equal(epcQr({ ...TRANSFER, currency: "CHF" }), null);
});

Deno.test("epcQr() cuts a name at 70 characters", () => {
  const holder_name = "é".repeat(71);
  assert.equal(epcQr({ ...TRANSFER, holder_name })?.split("\n")[5], "é".repeat(70));
});
