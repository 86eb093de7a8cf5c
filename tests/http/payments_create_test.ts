/**
 * `POST /v1/payments` with every test value: every card, IBAN and wallet in every spelling, and the
 * exact result that the contract states for it (§2).
 */

import assert from "node:assert/strict";
import { BASE_URL } from "../support/service/service.ts";
import { recordOf } from "../support/database/payment_records.ts";
import { card, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

/** The result of a value: HTTP status, payment status, failure_code or error code, return_code. */
type Result = [http: number, status: string, code: string | null, return_code?: string];

const COMPLETED: Result = [201, "completed", null];
const RETURNED: Result = [201, "failed", "bank_return", "R01"];
const REVERTED: Result = [201, "failed", "onchain_reverted"];
const WALLET = "0x000000000000000000000000000000000000";
/** The advice of each decline. */
const ADVICE: Record<string, string> = {
  payment_declined: "use_another_method",
  insufficient_funds: "retry_later",
  aml_blocked: "do_not_retry",
};

const VALUES: [value: string, Record<string, unknown>, kind: string, Result][] = [
  ["4242 4242 4242 4242", card("4242 4242 4242 4242"), "card", COMPLETED],
  ["4242424242424242", card("4242424242424242"), "card", COMPLETED],
  ["4242-4242-4242-4242", card("4242-4242-4242-4242"), "card", COMPLETED],
  ["4242 4242-42424242 (mixed)", card(" 4242 4242-42424242 "), "card", COMPLETED],
  ["4 2 4 2 … (each apart)", card("4 2 4 2 4 2 4 2 4 2 4 2 4 2 4 2"), "card", COMPLETED],
  ["5555 5555 5555 4444", card("5555 5555 5555 4444"), "card", COMPLETED],
  ["5200 8282 8282 8210", card("5200 8282 8282 8210"), "card", COMPLETED],
  ["3782 822463 10005", card("3782 822463 10005"), "card", COMPLETED],
  ["6011 1111 1111 1117", card("6011 1111 1111 1117"), "card", COMPLETED],
  ["4000 0000 0000 0259", card("4000 0000 0000 0259"), "card", [201, "chargeback", null]],
  ["4000 0000 0000 0002", card("4000 0000 0000 0002"), "card", [
    402,
    "declined",
    "payment_declined",
  ]],
  ["4000000000000002", card("4000000000000002"), "card", [402, "declined", "payment_declined"]],
  ["4000-0000-0000-0002", card("4000-0000-0000-0002"), "card", [
    402,
    "declined",
    "payment_declined",
  ]],
  ["4000 0000 0000 9995", card("4000 0000 0000 9995"), "card", [
    402,
    "declined",
    "insufficient_funds",
  ]],
  ["4000000000009995", card("4000000000009995"), "card", [402, "declined", "insufficient_funds"]],
  ["4000 0025 0000 3155", card("4000 0025 0000 3155"), "card", [201, "requires_action", null]],
  ["4000-0025-0000-3155", card("4000-0025-0000-3155"), "card", [201, "requires_action", null]],
  ["4100 0000 0000 0019", card("4100 0000 0000 0019"), "card", [402, "declined", "aml_blocked"]],
  ["4100000000000019", card("4100000000000019"), "card", [402, "declined", "aml_blocked"]],
  ["4000 0000 0000 0119", card("4000 0000 0000 0119"), "card", [201, "processing", null]],
  ["DE89 in fours", { iban: "DE89 3704 0044 0532 0130 00" }, "sepa", COMPLETED],
  ["DE89 closed up", { iban: "DE89370400440532013000" }, "sepa", COMPLETED],
  ["de89 in lower case", { iban: "de89370400440532013000" }, "sepa", COMPLETED],
  ["DE89 as an object", { iban: { iban: "De89 3704 0044 0532 013000" } }, "sepa", COMPLETED],
  ["DE89 by swift", { iban: "DE89370400440532013000", method_kind: "swift" }, "swift", COMPLETED],
  ["DE00 in fours", { iban: "DE00 0000 0000 0000 0000 99" }, "sepa", RETURNED],
  ["DE00 closed up", { iban: "DE00000000000000000099" }, "sepa", RETURNED],
  ["de00 in lower case", { iban: "de00 0000 0000 0000 0000 99" }, "sepa", RETURNED],
  ["DE00 as an object", { iban: { iban: "DE00000000000000000099" } }, "sepa", RETURNED],
  ["GB82 in fours", { iban: "GB82 WEST 1234 5698 7654 32" }, "swift", COMPLETED],
  ["GB82 closed up", { iban: "GB82WEST12345698765432" }, "swift", COMPLETED],
  ["gb82 in lower case", { iban: "gb82 west 1234 5698 7654 32" }, "swift", COMPLETED],
  ["GB82 in dollars", { iban: "GB82WEST12345698765432", currency: "USD" }, "swift", COMPLETED],
  ["GB82 by sepa", { iban: "GB82WEST12345698765432", method_kind: "sepa" }, "sepa", COMPLETED],
  ["another IBAN in euros", { iban: "FR1420041010050500013M02606" }, "sepa", COMPLETED],
  [
    "another IBAN in dollars",
    { iban: "FR1420041010050500013M02606", currency: "USD" },
    "swift",
    COMPLETED,
  ],
  ["0x…dEaD", { wallet: WALLET + "dEaD" }, "stablecoin", COMPLETED],
  ["0x…dead", { wallet: WALLET + "dead" }, "stablecoin", COMPLETED],
  ["0x…DEAD", { wallet: WALLET + "DEAD" }, "stablecoin", COMPLETED],
  ["0X…DEAD", { wallet: "0X" + WALLET.slice(2) + "DEAD" }, "stablecoin", COMPLETED],
  ["0x…dEaD with spaces", { wallet: ` ${WALLET} dEaD ` }, "stablecoin", COMPLETED],
  ["0x…dEaD as an object", { wallet: { address: WALLET + "dEaD" } }, "stablecoin", COMPLETED],
  ["0x…dEaD in USDT", { wallet: WALLET + "dEaD", currency: "USDT" }, "stablecoin", COMPLETED],
  ...["ethereum", "base", "polygon", "arbitrum", "optimism", "solana", "tron"].map((
    network,
  ): [string, Record<string, unknown>, string, Result] => [
    `0x…dEaD on ${network}`,
    { wallet: { address: WALLET + "dEaD", network } },
    "stablecoin",
    COMPLETED,
  ]),
  ["0x…0BAD", { wallet: WALLET + "0BAD" }, "stablecoin", REVERTED],
  ["0x…0bad", { wallet: WALLET + "0bad" }, "stablecoin", REVERTED],
  ["0X…0BAD", { wallet: "0X" + WALLET.slice(2) + "0BAD" }, "stablecoin", REVERTED],
  [
    "0x…0BAD on tron",
    { wallet: { address: WALLET + "0BAD", network: "tron" } },
    "stablecoin",
    REVERTED,
  ],
  ["nothing", {}, "card", [201, "pending", null]],
  ["nothing by sepa", { method_kind: "sepa" }, "sepa", [201, "pending", null]],
];

serviceCase("POST /v1/payments returns each test value as documented", async (t, service) => {
  for (const [value, body, kind, [http, status, code, return_code = null]] of VALUES) {
    await t.step(`${value} → ${http} ${status} ${code ?? ""}`, async () => {
      const response = await service.pay(body);
      assert.equal(response.status, http, response.text);
      const payment = http === 402 ? response.body.error.payment : response.body;
      assert.deepEqual(
        [payment.status, payment.failure_code, payment.return_code, payment.method_kind],
        [status, code, return_code, kind],
      );
      const advice = status === "declined" ? ADVICE[code!] : null;
      assert.equal(payment.advice, advice);
      assert.equal(payment.capability, `${kind}_payment`);
      assert.equal(typeof payment.failure_message, code === null ? "object" : "string");
      if (http === 402) {
        const { error } = response.body;
        assert.deepEqual([error.code, error.type, error.advice], [code, "payment", advice]);
        assert.equal(response.headers.get("Location"), null);
      } else {
        assert.equal(
          response.headers.get("Location"),
          `${BASE_URL}/api-v1-payments/v1/payments/${payment.id}`,
        );
      }
      const stored = await service.call("GET", `${PAYMENTS}/${payment.id}`);
      assert.equal(stored.status, 200);
      assert.equal(stored.text, JSON.stringify(payment));
    });
    await t.step(`${value} in the sandbox → 201 ${status}`, async () => {
      const response = await service.make(body);
      assert.equal(response.status, 201, response.text);
      assert.deepEqual(
        [response.body.status, response.body.failure_code, response.body.return_code],
        [status, code, return_code],
      );
    });
  }
});

serviceCase(
  "POST /v1/payments writes the events and entries of its result",
  async (t, service) => {
    const cases: [string, Record<string, unknown>, events: string, ledger: string[]][] = [
      ["approved", card("4242 4242 4242 4242"), "created completed", [
        "capture processor>available 1000 EUR",
      ]],
      ["success", { outcome: "success" }, "created completed", [
        "capture processor>available 1000 EUR",
      ]],
      ["nothing", {}, "created", []],
      ["3-D Secure", card("4000 0025 0000 3155"), "created requires_action", []],
      ["late card", card("4000 0000 0000 0119"), "created processing", []],
      ["manual capture", { ...card({}), capture: "manual" }, "created authorized", []],
      ["declined card", card("4000 0000 0000 0002"), "created declined", []],
      ["no funds", card("4000 0000 0000 9995"), "created declined", []],
      ["AML block", card("4100 0000 0000 0019"), "created declined", []],
      ["SEPA return", { iban: "DE00 0000 0000 0000 0000 99" }, "created failed", []],
      ["revert", { wallet: WALLET + "0BAD" }, "created failed", []],
    ];
    for (const [name, body, events, ledger] of cases) {
      await t.step(`${name} → ${events}`, async () => {
        const { body: response } = await service.pay(body);
        const record = await recordOf(service, (response.error?.payment ?? response).id);
        assert.deepEqual(
          record.events.map(({ type }) => type.replace("payment.", "")).join(" "),
          events,
        );
        assert.deepEqual([...record.ledger.values()], ledger);
      });
    }
  },
);

serviceCase("POST /v1/payments stores no CVC and no full card number", async (_t, service) => {
  const { body } = await service.pay({
    ...card({ cvc: "987" }),
    iban: undefined,
    metadata: { order: "7" },
  });
  await service.pay({ iban: "FR1420041010050500013M02606" });
  assert.deepEqual(body.method, {
    type: "card",
    card: { brand: "visa", last4: "4242", exp_month: 12, exp_year: 2034 },
  });
  const rows = JSON.stringify([
    await service.sql`select * from pay.payments`,
    await service.sql`select pay_internal.event_body(e) as body from pay.events e`,
  ]);
  for (const secret of ["4242424242424242", "4242 4242", "987", "20041010050500013M02606"]) {
    assert.ok(
      !rows.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|(pay|evt|req|env)_\w+/g, "").includes(secret),
      secret,
    );
  }
});
