/** The accounts at a bank: numbers, settings, and what these do to payments and files. */

import assert from "node:assert/strict";
import { bankConnector } from "../../shared/connectors/bank/bank_connector.ts";
import { checkBankSettings, readBankSettings } from "../../shared/connectors/bank/bank_settings.ts";
import { filesOf, type WaitingOrder } from "../../shared/connectors/bank/export_orders.ts";
import { isOwnNumber } from "../../shared/connectors/bank/own_account.ts";
import { dueDate } from "../../shared/domain/payments/collection.ts";
import { paymentOf } from "../../shared/domain/payments/create_payment.ts";
import type { MethodKind } from "../../shared/schema/payment_body.ts";
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

type Settings = Record<string, string>;

/** Settings beside good ones that an account can have, and its methods. */
const TAKEN: [Settings, MethodKind[]?][] = [
  [{}, ["sepa", "swift"]],
  [{ iban: "de89 3704 0044 0532 0130 00", bic: "cobadeff" }],
  [{ own_business: " name:Stadt: Köln ;iban:fr14 2004 1010 0505 0001 3m02 606; code:NTRF+153" }],
  [{ holder_name: "ü".repeat(36), currency: "USD" }, ["swift"]],
  [{ iban: "TR330006100519786457841326", bic: "TGBATRIS" }, ["swift"]],
  [{ currency: "USD" }, ["swift"]],
  ...each("own_business", "code:pmnt-icdt-sala; ", "code:153;".repeat(50)),
  ...each("holder_name", "x".repeat(70)),
  ...each("creditor_id", "de98 zzz 09999999999"),
  ...each("vop", "check", "opt_out"),
  ...each("charges", "SHAR", "DEBT", "CRED"),
  ...each("cut_off", "00:00", "23:59"),
  ...each("return_charge_minor", "0", "100000"),
  ...each("prenotification_days", "1", "2", "05", "14", "30"),
  ...each("expires_after_days", "1", "2", "05", "14", "365"),
];
for (const [changed, methods] of TAKEN) {
  Deno.test(`checkBankSettings() takes ${JSON.stringify(changed)} for ${methods ?? "all"}`, () => {
    checkBankSettings({ ...GOOD, ...changed }, methods);
  });
}

const NO_DAYS = ["0", "-1", "", "1.5", "1e1", " 5", "ten", "1000"];

/** The setting that is refused, settings beside good ones, and the methods. */
const REFUSED: [refused: string, Settings, MethodKind[]?][] = [
  ...eachOf("iban", "DE88370400440532013000", ""),
  ["iban", { iban: "TR330006100519786457841326", bic: "TGBATRIS" }, ["sepa", "swift"]],
  ...eachOf("bic", "COBADE", "BNPAFRPP"),
  ...eachOf("own_business", "rent", "rent:x", "name:", "name:--", "iban:FR15", "code:a b"),
  ...eachOf("own_business", `name:${"x".repeat(71)}`, "code:153;".repeat(51)),
  ...eachOf("holder_name", "***", " ", "x".repeat(71)),
  ["holder_name", { holder_name: "ü".repeat(36) }, ["sepa"]],
  ["holder_name", { holder_name: "ü".repeat(36) }, ["swift"]],
  ["currency", { currency: "USD" }, ["swift", "sepa"]],
  ...eachOf("currency", "usd", "USDC"),
  ...eachOf("creditor_id", "DE97ZZZ09999999999"),
  ...eachOf("vop", "opt-out", ""),
  ...eachOf("charges", "SLEV"),
  ...eachOf("cut_off", "24:00", "9:00"),
  ...eachOf("return_charge_minor", "100001", "15.00"),
  ...eachOf("prenotification_days", ...NO_DAYS, "31"),
  ...eachOf("expires_after_days", ...NO_DAYS, "366"),
  ...eachOf("prenotification", "5"),
];
for (const [refused, changed, methods] of REFUSED) {
  Deno.test(`checkBankSettings() refuses ${JSON.stringify(changed)} for ${methods ?? "all"}`, () => {
    const check = () => checkBankSettings({ ...GOOD, ...changed }, methods);
    assert.equal(refusalOf(check), `invalid_parameter ${refused}`);
  });
}

function each(name: string, ...values: string[]): [Settings][] {
  return values.map((value) => [{ [name]: value }]);
}

function eachOf(name: string, ...values: string[]): [string, Settings][] {
  return values.map((value) => [name, { [name]: value }]);
}

Deno.test("readBankSettings() defaults", () => {
  const { iban: _, bic: _b, holder_name: _h, creditor_id: _c, ...read } = readBankSettings(GOOD);
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

/** Numbers by the IBAN of an account in EUR: those that are its own, and others. */
const NUMBERS: Readonly<Record<string, { own: string[]; others: string[] }>> = {
  DE02120300000000202051: {
    own: [
      "DE02120300000000202051",
      "de02 1203 0000 0000 2020 51",
      "DE02-1203-0000-0000-2020-51",
      "DE02120300000000202051 EUR",
      "120300000000202051",
      "12030000/0000202051",
      "12030000/202051",
      "12030000202051",
      "0000202051",
      "202051",
    ],
    others: [
      "",
      "EUR",
      "DE02120300000000202051 USD",
      "DE02120300000000202052",
      "DE03120300000000202051",
      "12030001/202051",
      "12030000/2051",
      "12030000/",
      "12030000/202051/1",
      "02051",
      "9000202051",
      "0000000051",
      "2051",
      "9202051",
    ],
  },
  DE12500105170532013000: { own: ["0532013000"], others: ["32013000", "00032013000"] },
  NL91ABNA0417164300: {
    own: ["0417164300", "417164300", "000417164300"],
    others: ["0000164300", "164300", "9417164300"],
  },
  NO9386011117947: { own: ["86011117947", "8601.11.17947"], others: ["8602.11.17947"] },
  BE68539007547034: { own: ["539-0075470-34"], others: ["539-0075470-35"] },
  ES9121000418450200051332: { own: ["2100-0418-45-0200051332"], others: ["2100-0418-45"] },
  HU42117730161111101800000000: {
    own: ["11773016-11111018-00000000", "11773016-11111018"],
    others: ["11773016", "11773016-11111018-00000001", "00000000"],
  },
  HU93116000060000000012345676: { own: [], others: ["11600006-00000000"] },
  CH9300762011623852957: { own: ["0076-2011623852957", "011623852957"], others: ["762"] },
  PL61109010140000071219812874: {
    own: ["61 1090 1014 0000 0712 1981 2874", "109010140000071219812874"],
    others: ["62 1090 1014 0000 0712 1981 2874"],
  },
  CZ6508000000192000145399: {
    own: ["19-2000145399/0800", "000019-2000145399/0800"],
    others: ["2000145399/0800", "19-2000145399/0801"],
  },
  GB33BUKB20201555555555: { own: ["20-20-15 55555555"], others: ["20-20-16 55555555"] },
};

for (const [iban, { own, others }] of Object.entries(NUMBERS)) {
  Deno.test(`isOwnNumber() knows the numbers of ${iban}`, () => {
    const found = (numbers: string[]) =>
      numbers.filter((text) => isOwnNumber(text, { iban, currency: "EUR" }));
    assert.deepEqual(found(own), own);
    assert.deepEqual(found(others), []);
  });
}
