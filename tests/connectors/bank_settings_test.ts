/** Settings of accounts at a bank, and what they do to payments and files. */

import assert from "node:assert/strict";
import { bankConnector } from "../../shared/connectors/bank/bank_connector.ts";
import { checkBankSettings, readBankSettings } from "../../shared/connectors/bank/bank_settings.ts";
import { filesOf, type WaitingOrder } from "../../shared/connectors/bank/export_orders.ts";
import { dueDate } from "../../shared/domain/payments/collection.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import type { MethodKind } from "../../shared/schema/payment.ts";
import type { Transfer } from "../../shared/schema/transfer.ts";
import type { BankStore } from "../../shared/store/bank_store.ts";
import { bankCaseId } from "../support/connectors/bank_case.ts";
import { NOW_MS, refusalOf, requestContext } from "../support/domain/decided_change.ts";

const GOOD = {
  iban: "DE89370400440532013000",
  bic: "COBADEFFXXX",
  holder_name: "Shop GmbH",
  creditor_id: "DE98ZZZ09999999999",
};

/** [settings beside good ones, the one that is refused; null: none, methods] */
const CASES: [Record<string, string>, string | null, MethodKind[]?][] = [
  [{}, null, ["sepa", "swift"]],
  [{ iban: "de89 3704 0044 0532 0130 00", bic: "cobadeff" }, null],
  [{ iban: "DE88370400440532013000" }, "iban"],
  [{ iban: "" }, "iban"],
  [
    { own_business: " name:Stadt: Köln ;iban:fr14 2004 1010 0505 0001 3m02 606; code:NTRF+153" },
    null,
  ],
  [{ own_business: "code:pmnt-icdt-sala; " }, null],
  ...["rent", "rent:x", "name:", "name:--", "iban:FR15", "code:a b", `name:${"x".repeat(71)}`].map((
    own_business,
  ): [Record<string, string>, string] => [{ own_business }, "own_business"]),
  [{ own_business: "code:153;".repeat(50) }, null],
  [{ own_business: "code:153;".repeat(51) }, "own_business"],
  [{ bic: "COBADE" }, "bic"],
  [{ bic: "BNPAFRPP" }, "bic"],
  [{ holder_name: "***" }, "holder_name"],
  [{ holder_name: "ü".repeat(36) }, "holder_name", ["sepa"]],
  [{ holder_name: "ü".repeat(36) }, "holder_name", ["swift"]],
  [{ holder_name: "ü".repeat(36), currency: "USD" }, null, ["swift"]],
  [{ iban: "TR330006100519786457841326", bic: "TGBATRIS" }, "iban", ["sepa", "swift"]],
  [{ iban: "TR330006100519786457841326", bic: "TGBATRIS" }, null, ["swift"]],
  [{ holder_name: " " }, "holder_name"],
  [{ holder_name: "x".repeat(70) }, null],
  [{ holder_name: "x".repeat(71) }, "holder_name"],
  [{ currency: "USD" }, null, ["swift"]],
  [{ currency: "USD" }, "currency", ["swift", "sepa"]],
  [{ currency: "usd" }, "currency"],
  [{ currency: "USDC" }, "currency"],
  [{ creditor_id: "DE97ZZZ09999999999" }, "creditor_id"],
  [{ creditor_id: "de98 zzz 09999999999" }, null],
  [{ vop: "check" }, null],
  [{ vop: "opt_out" }, null],
  [{ vop: "opt-out" }, "vop"],
  [{ vop: "" }, "vop"],
  [{ charges: "SHAR" }, null],
  [{ charges: "DEBT" }, null],
  [{ charges: "CRED" }, null],
  [{ charges: "SLEV" }, "charges"],
  [{ cut_off: "00:00" }, null],
  [{ cut_off: "23:59" }, null],
  [{ cut_off: "24:00" }, "cut_off"],
  [{ cut_off: "9:00" }, "cut_off"],
  [{ return_charge_minor: "0" }, null],
  [{ return_charge_minor: "100000" }, null],
  [{ return_charge_minor: "100001" }, "return_charge_minor"],
  [{ return_charge_minor: "15.00" }, "return_charge_minor"],
  ...(["prenotification_days", "expires_after_days"] as const).flatMap((name) => {
    const max = name === "prenotification_days" ? 30 : 365;
    const refused = ["0", "-1", "", "1.5", "1e1", " 5", "ten", String(max + 1), "1000"];
    return [
      ...["1", "2", "05", "14", String(max)].map((days): [Record<string, string>, null] => [
        { [name]: days },
        null,
      ]),
      ...refused.map((days): [Record<string, string>, string] => [{ [name]: days }, name]),
    ];
  }),
  [{ prenotification: "5" }, "prenotification"],
];
for (const [changed, refused, methods] of CASES) {
  const given = `${JSON.stringify(changed)}${methods ? ` for ${methods}` : ""}`;
  Deno.test(`checkBankSettings() ${given}: ${refused ?? "taken"}`, () => {
    const check = () => checkBankSettings({ ...GOOD, ...changed }, methods);
    if (refused === null) return void check();
    assert.equal(refusalOf(check), `invalid_parameter ${refused}`);
  });
}

Deno.test("readBankSettings() defaults", () => {
  const { iban: _, bic: _bic, holder_name: _name, creditor_id: _id, ...read } = readBankSettings(
    GOOD,
  );
  assert.deepEqual(read, {
    currency: "EUR",
    vop: "check",
    charges: "SHAR",
    cut_off: "12:00",
    own_business: [],
    return_charge_minor: 1500,
    expires_after_days: 14,
    prenotification_days: 14,
  });
});

const COLLECTION = {
  iban: { iban: "NL91ABNA0417164300", holder_name: "Jan Payer" },
  mandate: { id: "M1", signed_at: "2026-01-31", sequence: "recurring" },
};

/** Returns the reply of the connector to the create of a payment. */
async function replyTo(body: Record<string, unknown>, settings: Record<string, string>) {
  const { operation } = paymentOf(
    { amount: 100, currency: "EUR", method_kind: "sepa", ...body },
    true,
    { ...requestContext(), livemode: true },
  );
  const account = {
    id: "pac_1",
    environment_id: "env_1",
    connector: "bank",
    settings: { ...GOOD, ...settings },
    secret: null,
    notification_secrets: [],
  };
  const { charges } = bankConnector({} as BankStore);
  return await charges.send(account, operation, AbortSignal.timeout(1_000));
}

async function eventOf(...given: Parameters<typeof replyTo>) {
  const reply = await replyTo(...given);
  assert.ok("provider_events" in reply, JSON.stringify(reply));
  return reply.provider_events[0];
}

for (const days of [undefined, "1", "5", "30"]) {
  Deno.test(`a collection with ${days ?? "no"} prenotification_days is due after them`, async () => {
    const settings: Record<string, string> = days ? { prenotification_days: days } : {};
    const { bank } = await eventOf(COLLECTION, settings);
    assert.equal(bank?.due_on, dueDate(NOW_MS, Number(days ?? 14)));
  });
}

for (const [days, given] of [[14, undefined], [3, "3"]] as const) {
  Deno.test(`a bank transfer with ${given ?? "no"} expires_after_days ends after ${days}`, async () => {
    const settings: Record<string, string> = given ? { expires_after_days: given } : {};
    const { next_action, later } = await eventOf({}, settings);
    const window_ms = days * 86_400_000;
    assert.ok(next_action?.type === "bank_transfer");
    assert.equal(Date.parse(next_action.expires_at), NOW_MS + window_ms);
    // A statement of the next days has what was booked in time.
    assert.deepEqual(later, { op: "abandon", delay_ms: window_ms + 5 * 86_400_000 });
  });
}

const AMSTERDAM = { city: "Amsterdam", country: "NL" };
/** [country of the account, address of the payer, refused field or null] */
const ACCOUNTS: [iban: string, address: object | undefined, param: string | null][] = [
  [GOOD.iban, undefined, null],
  ["GB29NWBK60161331926819", undefined, "iban.address"],
  ["GB29NWBK60161331926819", AMSTERDAM, null],
  [COLLECTION.iban.iban, undefined, "iban.iban"],
];
for (const [iban, address, param] of ACCOUNTS) {
  const account = `to ${iban.slice(0, 2)} ${address ? "with" : "without"} an address`;
  Deno.test(`a collection ${account}: ${param ?? "taken"}`, async () => {
    const body = { ...COLLECTION, iban: { ...COLLECTION.iban, address } };
    const bic = { GB: "NWBKGB2L", NL: "ABNANL2A" }[iban.slice(0, 2)];
    const reply = await replyTo(body, { iban, ...(bic && { bic }) });
    assert.equal("refused" in reply ? reply.param : null, param);
  });
}

const CREATED_AT = new Date(NOW_MS);
const order = (
  number: number,
  changed: Partial<WaitingOrder["details"]> = {},
  speed: WaitingOrder["speed"] = "standard",
): WaitingOrder => ({
  id: bankCaseId("tr", number),
  kind: "transfer",
  amount_minor: 100,
  currency: "EUR",
  speed,
  subject: { object: "transfer", description: null } as Transfer,
  details: {
    holder_name: "Zoe",
    iban: "FR1420041010050500013M02606",
    bic: null,
    address: null,
    ...changed,
  },
});
const IZMIR = { line1: null, line2: null, city: "Izmir", postal_code: null, country: "TR" };
const ABROAD = { iban: "TR330006100519786457841326", address: IZMIR };
const instant = (number: number) => order(number, {}, "instant");

/** [vop, orders, kinds of files and whether they waive the verification] */
const FILES: [vop: string, orders: WaitingOrder[], files: string[]][] = [
  ["check", [order(1), order(2)], ["sepa_transfers"]],
  ["opt_out", [order(1), order(2)], ["sepa_transfers opt_out"]],
  ["opt_out", [order(1)], ["sepa_transfers"]],
  ["opt_out", [instant(1), instant(2)], ["instant_transfers opt_out"]],
  ["opt_out", [order(1), instant(2)], ["sepa_transfers", "instant_transfers"]],
  ["opt_out", [order(1, ABROAD), order(2, ABROAD)], ["swift_transfers"]],
  // The export leaves the second one out, which has no letter.
  ["opt_out", [order(1), order(2, { holder_name: "***" })], ["sepa_transfers"]],
];
for (const [vop, orders, expected] of FILES) {
  Deno.test(`filesOf() ${orders.length} orders with vop ${vop}: ${expected.join(", ")}`, () => {
    const settings = readBankSettings({ ...GOOD, vop });
    const { files } = filesOf(settings, orders, CREATED_AT, () => bankCaseId("bf", 1));
    assert.deepEqual(
      files.map(({ kind, is_opt_out }) => is_opt_out ? `${kind} opt_out` : kind),
      expected,
    );
    const checked = filesOf(readBankSettings(GOOD), orders, CREATED_AT, () => bankCaseId("bf", 1));
    assert.deepEqual(files.map(({ bytes }) => bytes), checked.files.map(({ bytes }) => bytes));
  });
}

Deno.test("filesOf() leaves out every order that breaks a rule, and names it", () => {
  const good = Array.from({ length: 50 }, (_, i) => order(2 * i));
  const bad = Array.from({ length: 50 }, (_, i) => order(2 * i + 1, { holder_name: "***" }));
  const mixed = [...good, ...bad].sort((a, b) => a.id < b.id ? -1 : 1);
  const newId = () => bankCaseId("bf", 1);
  const { files: [file], refused } = filesOf(readBankSettings(GOOD), mixed, CREATED_AT, newId);
  assert.equal(file!.payments, good.length);
  assert.deepEqual(refused.map(({ order_id }) => order_id), bad.map(({ id }) => id));
});
