/**
 * The rows that the import of a bank's file stores: the events of its entries, reports and replies,
 * and the payers that it names. The account has exported the orders of this file.
 */

import assert from "node:assert/strict";
import { bankIdentifier } from "../../shared/connectors/bank/bank_identifier.ts";
import { importBankFile } from "../../shared/connectors/bank/import_bank_file.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import type { BankOrder, NewRows } from "../../shared/store/bank_store.ts";
import { bankCaseId } from "../support/connectors/bank_case.ts";
import {
  ACCOUNT,
  type Told,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
  writeRecallReply,
  writeReport,
} from "../support/connectors/bank_file.ts";

const VAULT = Vault.read(`k1:${btoa("k".repeat(32))}`);
const OTHER_ACCOUNT = "<Id><IBAN>FR1420041010050500013M02606</IBAN></Id><Ccy>EUR</Ccy>";

type Order = BankOrder & { uetr: string | null };

/** Makes an order of a file, which has one batch. */
function order(id: string, file: number, changed: Partial<Order> = {}): Order {
  const kinds = { pay: "collection", re: "refund", tr: "transfer" } as const;
  return {
    ...{ id, subject_id: id, kind: kinds[id.split("_")[0] as keyof typeof kinds] },
    ...{ state: "exported", payee_check: null, is_approved: false },
    ...{ amount_minor: 1000, currency: "EUR", status: "pending", is_open: true, uetr: null },
    ...{ batch_id: `${fileId(file)}-1`, export_id: bankCaseId("bf", file) },
    ...{ file_kind: "sepa_transfers", file_name: "x.xml", file_created_at: "2026-11-20T00:00:00Z" },
    ...changed,
  };
}

function fileId(number: number): string {
  return bankIdentifier(bankCaseId("bf", number));
}

const UETR = "eb6305c9-1f7f-49de-aed0-16487c27b42d";
const ORDERS = {
  first: order(bankCaseId("tr", 1), 1),
  second: order(bankCaseId("re", 2), 1),
  alone: order(bankCaseId("tr", 3), 2),
  booked: order(bankCaseId("tr", 4), 3, { is_open: false, status: "completed" }),
  rejected: order(bankCaseId("tr", 5), 4, { state: "rejected", is_open: false, status: "failed" }),
  waiting: order(bankCaseId("tr", 6), 5, { state: "waiting", batch_id: null, export_id: null }),
  collection: order(bankCaseId("pay", 7), 6),
  swift: order(bankCaseId("tr", 8), 7, { uetr: UETR }),
};
/** The ids of the orders as files have them, and their names. */
const ID = Object.fromEntries(
  Object.entries(ORDERS).map(([name, { id }]) => [name, bankIdentifier(id)]),
) as Record<keyof typeof ORDERS, string>;
const names = new Map(Object.entries(ID).map(([name, id]) => [id, name]));
const [FILE, OTHER_FILE] = [fileId(1), fileId(2)] as const;
const BATCH = `${FILE}-1`;
/** A report about orders of the batch. */
const about = (...orders: Told[]) => writeReport(null, [[BATCH], ...orders]);

/** Imports a text. Returns the rows, and the result. */
async function imported(text: string, rows_max = Infinity) {
  const rows: NewRows[] = [];
  const account = {
    ...{ id: "pac_1", environment_id: "env_1", connector: "bank", secret: null },
    settings: { iban: ACCOUNT, bic: "COBADEFFXXX", holder_name: "Shop GmbH" },
    notification_secrets: [],
  };
  const bytes = ReadableStream.from([new TextEncoder().encode(text)]);
  const source = { bytes, bytes_max: 10_000_000, rows_max, sha256: "0".repeat(64) };
  const result = await importBankFile(account, source, VAULT, {
    storeRows(part) {
      rows.push(part);
      return Promise.resolve(part.entries.length);
    },
    findOrders: (id) =>
      Promise.resolve(
        Object.values(ORDERS).filter((order) =>
          [bankIdentifier(order.id), order.batch_id, order.uetr].includes(id) ||
          order.export_id !== null && bankIdentifier(order.export_id) === id
        ),
      ),
    findReferences: () => Promise.resolve([]),
    readPayers: (references) =>
      Promise.resolve(
        rows.flatMap(({ payers }) => payers).filter((each) => references.includes(each.reference)),
      ),
  });
  return { rows, result };
}

const NEVER = "the status is about an order or a file that this account has never exported";
const HAD = /the bank has had (bf|tr|re)-\S+ before: the status changes nothing/;

/** Reports, the orders that they reject, each with its code, and the warnings. */
const REPORTS: [rule: string, file: string, rejected: string[], ...warnings: RegExp[]][] = [
  [
    "the reason of an order is closer than that of its file",
    writeReport([FILE, "RJCT", "AC01"], [[BATCH], [ID.first, "RJCT", "AC04"]]),
    ["first AC04", "second AC01"],
  ],
  [
    "the reason of a batch is closer than that of its file",
    writeReport([FILE, "RJCT", "AC01"], [[BATCH, "RJCT", "AC04"]]),
    ["first AC04", "second AC04"],
  ],
  [
    "of two reports about a file the first one has the reason",
    `<Files>${writeReport([FILE, "RJCT", "AC01"])}${writeReport([FILE, "RJCT", "AC04"])}</Files>`,
    ["first AC01", "second AC01"],
  ],
  [
    "an order that is reported twice is rejected once",
    about([ID.first, "RJCT", "AC01"], [ID.first, "RJCT", "AC04"]),
    ["first AC01"],
  ],
  [
    "the id of the instruction names an order without another id",
    about([{ OrgnlInstrId: ID.first, OrgnlEndToEndId: "NOTPROVIDED" }, "RJCT"]),
    ["first"],
  ],
  [
    "the UETR names an order without another id",
    about([{ OrgnlEndToEndId: "NOTPROVIDED", OrgnlUETR: UETR }, "RJCT", "AC01"]),
    ["swift AC01"],
  ],
  [
    "ids of others beside an order do not stop it",
    writeReport(["BANK-1", "PART"], [[BATCH], ["OTHER-1", "ACSP"], [ID.first, "RJCT"]]),
    ["first"],
    new RegExp(`^line 2, <OrgnlGrpInfAndSts>: ${NEVER}$`),
    new RegExp(`^line 4, <TxInfAndSts>: ${NEVER}$`),
  ],
  [
    "an order with a result keeps it",
    about([ID.booked, "RJCT"]),
    [],
    /^line 3, <TxInfAndSts>: tr_\S+4 has a result already: the status changes nothing$/,
  ],
  ["an order that is rejected already stays so", about([ID.rejected, "RJCT"]), []],
  ["an accepted file changes nothing", writeReport([FILE, "ACTC"]), []],
  [
    "a reason in a rejected batch rejects an order without a status",
    writeReport(null, [[BATCH, "RJCT"], [ID.first, null, "AC01"]]),
    ["first AC01", "second"],
  ],
  ["a file that the bank has had", writeReport([FILE, "RJCT", "AM05"]), [], HAD],
  ["a message that the bank has had", writeReport([FILE, "RJCT", "DU01"]), [], HAD],
  [
    "a message that the bank has had, and its order",
    writeReport([FILE, "RJCT", "DU01"], [[BATCH], [ID.first, "RJCT", "AM05"]]),
    [],
    HAD,
  ],
  [
    "an order that the bank has had, in a rejected file",
    writeReport([OTHER_FILE, "RJCT"], [[`${OTHER_FILE}-1`], [ID.alone, "RJCT", "AM05"]]),
    [],
    HAD,
  ],
  ["an order that the bank has had by its id", about([ID.first, "RJCT", "DU04"]), [], HAD],
  ["an order that looks like another one", about([ID.first, "RJCT", "AM05"]), ["first AM05"]],
  ["a recall of the only order of a batch", recalled(2, "ACCR"), ["alone"], /is ACCR$/],
  [
    "a recall of one of several orders",
    recalled(1, "ACCR"),
    [],
    /is ACCR$/,
    /^line 2, <OrgnlPmtInfAndSts>: the reply is about several orders: it ends only those/,
  ],
  [
    "a recall of a named order",
    recalled(1, "ACCR", [ID.second]),
    ["second"],
    /is ACCR$/,
    /about several orders/,
    /<TxInfAndSts>: the bank's reply to a recall is ACCR$/,
  ],
  [
    "a recall that the bank refuses",
    recalled(2, "RJCR", [ID.alone, "RJCR", "LEGL"]),
    [],
    /is RJCR$/,
    /is RJCR$/,
  ],
  [
    "a reply to two recalls, of which one is refused",
    writeRecallReply("PECR", [OTHER_FILE, "ACCR"], [[BATCH], [ID.first, null, "NOOR"]])
      .replace("</OrgnlGrpInfAndSts>", "$&</CxlDtls><CxlDtls>"),
    ["alone"],
    /<OrgnlGrpInfAndSts>: .* is ACCR$/,
    /is PECR$/,
    /is PECR$/,
  ],
];

function recalled(file: number, code: string, ...orders: Told[]): string {
  return writeRecallReply(null, null, [[`${fileId(file)}-1`, code], ...orders]);
}

for (const [rule, file, rejected, ...warnings] of REPORTS) {
  Deno.test(`importBankFile() reads a report: ${rule}`, async () => {
    const { rows, result } = await imported(file);
    const events = rows.flatMap(({ provider_events }) => provider_events);
    assert.deepEqual(
      events.map(({ provider_reference, return_code = "" }) =>
        `${names.get(provider_reference!)} ${return_code}`.trim()
      ),
      rejected,
    );
    for (const { state, failure_code, reference, provider_reference } of events) {
      assert.deepEqual([state, failure_code], ["failed", "provider_refused"]);
      assert.equal(reference, `${provider_reference}:rejected`);
    }
    assert.equal(result.warnings.length, warnings.length, result.warnings.join("\n"));
    warnings.forEach((warning, at) => assert.match(result.warnings[at]!, warning));
  });
}

/** Reports about payees, and the orders with the code. */
const CHECKS: [rule: string, file: string, checks: string[]][] = [
  ["an order", about([ID.first, "RVNM"]), ["first RVNM no_match"]],
  [
    "a file before its order",
    writeReport([FILE, "RCVC"], [[BATCH], [ID.first, "RVMC"]]),
    ["first RCVC match", "second RCVC match", "first RVMC close_match"],
  ],
  ["an order that waits for its verification", about([ID.second, "PDNG"]), ["second PDNG pending"]],
  ["a booked order", about([ID.booked, "RVNM"]), []],
  ["a collection, which has no payee", about([ID.collection, "RVNM"]), []],
];

for (const [rule, file, expected] of CHECKS) {
  Deno.test(`importBankFile() reads a report about the payee of ${rule}`, async () => {
    const checks = (await imported(file)).rows.flatMap(({ checks }) => checks);
    assert.deepEqual(
      checks.map(({ id, code, provider_event: { bank } }) =>
        `${names.get(bankIdentifier(id))} ${code} ${bank?.payee_check}`
      ),
      expected,
    );
    const references = checks.map(({ provider_event: { reference } }) => reference);
    assert.equal(new Set(references).size, references.length);
  });
}

const own = (members: Parameters<typeof writeEntry>[0] = {}) =>
  writeFile([{ entries: writeEntry(members) }], { kind: "054" });
const detail = (Refs: string, members: Parameters<typeof writeDetail>[0] = {}) => ({
  NtryDtls: writeDetail({ Refs, ...members }),
});
const RETURNED = { RtrInf: "<Rsn><Cd>AC04</Cd></Rsn>" };

const SWIFT = `<UETR>${UETR}</UETR>`;
/** Entries, and the operation and the order of their events. */
const ENTRIES: [rule: string, members: Record<string, string | null>, events: string[]][] = [
  ["a debit with the UETR", { CdtDbtInd: "DBIT", ...detail(SWIFT) }, ["transfer succeeded swift"]],
  ["a return with the UETR", detail(SWIFT, RETURNED), ["transfer returned swift"]],
  ["a reversal with the UETR", { RvslInd: "true", ...detail(SWIFT) }, ["transfer returned swift"]],
  ["a payment with the UETR", detail(SWIFT), ["adjustment returned undefined"]],
  [
    "a debit with an id beside the UETR of another payout",
    { CdtDbtInd: "DBIT", ...detail(`<EndToEndId>${ID.alone}</EndToEndId><UETR>${UETR}</UETR>`) },
    ["transfer succeeded alone"],
  ],
  ["a pending entry", { Sts: "PDNG" }, []],
  ["an entry of nothing", { Amt: "0.00 EUR" }, []],
];

for (const [rule, members, events] of ENTRIES) {
  Deno.test(`importBankFile() books ${rule}`, async () => {
    const { rows, result } = await imported(own(members));
    assert.deepEqual(
      rows.flatMap(({ entries }) => entries.flatMap(({ provider_events }) => provider_events))
        .map(({ op, state, provider_reference }) =>
          `${op} ${state} ${names.get(provider_reference ?? "")}`
        ),
      events,
    );
    assert.deepEqual([result.entries, result.new_entries], [1, events.length]);
    // The details of money that a person has to assign are sealed.
    for (const { op, bank } of rows.flatMap(({ entries }) => entries[0]!.provider_events)) {
      assert.equal(bank?.sealed !== undefined, op === "adjustment");
    }
  });
}

const [ANN, BOB] = ["DE89370400440532013000", "NL91ABNA0417164300"] as const;
const REFERENCE = creditorReference("pay_1");
const paidBy = (iban: string | null, Refs: string | null = null) =>
  writeEntry({
    NtryDtls: writeDetail({
      ...{ Refs, RmtInf: Refs === null ? `<Ustrd>${REFERENCE}</Ustrd>` : null },
      RltdPties: iban && "<Dbtr><Pty><Nm>Payer</Nm></Pty></Dbtr>" +
          `<DbtrAcct><Id><IBAN>${iban}</IBAN></Id></DbtrAcct>`,
    }),
  });

/** Payers of one payment, each in a statement of its own or with another one, and those kept. */
const PAYERS: [payers: (string | null)[][], kept: (string | null)[]][] = [
  [[[ANN]], [ANN]],
  [[[ANN], [ANN]], [ANN]],
  [[[ANN, ANN]], [ANN]],
  [[[null]], []],
  // With several payers nobody knows to whom a refund goes.
  [[[ANN], [BOB]], [ANN, null]],
  [[[ANN, BOB]], [null]],
  [[[ANN], [BOB], [ANN]], [ANN, null]],
];

for (const [payers, kept] of PAYERS) {
  Deno.test(`importBankFile() keeps of the payers ${JSON.stringify(payers)}: ${kept}`, async () => {
    const { rows } = await imported(
      writeFile(payers.map((ibans) => ({ entries: ibans.map((iban) => paidBy(iban)).join("") }))),
    );
    const stored = rows.flatMap(({ payers }) => payers);
    const ibans = stored.map(async (payer) =>
      payer.sealed === null
        ? null
        : JSON.parse(await VAULT.open(payer as never, REFERENCE)).iban as string
    );
    assert.deepEqual(await Promise.all(ibans), kept);
    assert.ok(stored.every(({ reference }) => reference === REFERENCE));
  });
}

for (const [bic, kept] of [["COBADEFF", "COBADEFF"], ["BNPAFRPP", null]] as const) {
  Deno.test(`importBankFile() keeps the BIC ${bic} of a payer in Germany: ${kept}`, async () => {
    const agent =
      `<RltdAgts><DbtrAgt><FinInstnId><BICFI>${bic}</BICFI></FinInstnId></DbtrAgt></RltdAgts>`;
    const entries = paidBy(ANN).replace("</RltdPties>", `$&${agent}`);
    const [payer] = (await imported(writeFile([{ entries }]))).rows[0]!.payers;
    const details = JSON.parse(await VAULT.open(payer as never, REFERENCE));
    assert.deepEqual(details, { holder_name: "Payer", iban: ANN, bic: kept, address: null });
  });
}

Deno.test("importBankFile() keeps no payer of a collection, which has one from its create", async () => {
  const entries = paidBy(ANN, `<EndToEndId>${ID.collection}</EndToEndId>`);
  const { rows } = await imported(writeFile([{ entries }]));
  assert.equal(rows[0]!.entries[0]!.provider_events[0]!.op, "authorize");
  assert.deepEqual(rows.flatMap(({ payers }) => payers), []);
});

Deno.test("importBankFile() shortens a long code of the bank in the reference of an event", async () => {
  const { rows: [part] } = await imported(
    own({ BkTxCd: `<Prtry><Cd>${"1".repeat(4000)}</Cd></Prtry>` }),
  );
  const [{ id, provider_events: [event] }] = part!.entries as [NewRows["entries"][number]];
  assert.equal(event!.reference, `${id}:0:${"1".repeat(35)}`);
});

const TWO = writeEntry({ NtryDtls: writeDetail() }) + writeEntry();

/** Files that are refused, with the reason. */
const REFUSED: [rule: string, file: string, error: RegExp, rows_max?: number][] = [
  [
    "a report about others only",
    writeReport([fileId(9), "PART"], [["OTHER-1"], ["OTHER-2", "RJCT"]]),
    new RegExp(`^Line 2, <OrgnlGrpInfAndSts>: ${NEVER}$`),
  ],
  [
    "a report about an order that no file has",
    writeReport(null, [["OTHER-1"], [ID.waiting, "RJCT"]]),
    new RegExp(`^Line 3, <TxInfAndSts>: ${NEVER}$`),
  ],
  [
    "a statement of another account",
    writeFile([{ account: OTHER_ACCOUNT, entries: writeEntry() }]),
    /^Line 4, <Stmt>: the file is about …2606, and not about the account …2051$/,
  ],
  [
    "one row more than a bridge may send",
    writeFile([{ entries: TWO }]),
    /more than 2 entries, details and statuses: .* deno task bank import FILE --account pac_1$/,
    2,
  ],
];

for (const [rule, file, error, rows_max] of REFUSED) {
  Deno.test(`importBankFile() refuses ${rule}`, async () => {
    await assert.rejects(imported(file, rows_max), ({ message }: Error) => error.test(message));
  });
}

Deno.test("importBankFile() takes as many rows as a bridge may send", async () => {
  const { result } = await imported(writeFile([{ entries: TWO }]), 3);
  assert.deepEqual([result.entries, result.details, result.new_entries], [2, 1, 2]);
});

Deno.test("importBankFile() imports a statement beside one of another account", async () => {
  const head = writeBalance("OPBD", "0.00") + writeBalance("CLBD", "10.00");
  const { result } = await imported(writeFile([
    { head, entries: writeEntry() },
    { account: OTHER_ACCOUNT, head: head.replace("10.00", "9.00"), entries: writeEntry() },
  ]));
  assert.deepEqual([result.entries, result.new_entries], [1, 1]);
});

Deno.test("importBankFile() stores 50 rows at a time", async () => {
  const entries = (await imported(own().replace(/<Ntry>.*<.Ntry>/, "$&".repeat(101)))).rows;
  assert.deepEqual(entries.map(({ entries }) => entries.length), [50, 50, 1]);
  const orders = Array.from({ length: 101 }, () => [ID.first, "PDNG"] as [string, string]);
  const checks = (await imported(writeReport(null, [[BATCH], ...orders]))).rows;
  assert.deepEqual(checks.map(({ checks }) => checks.length), [50, 50, 1]);
});
