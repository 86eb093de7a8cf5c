/** Files of a bank with faults, and with many entries: none stops the import, and none is lost. */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import { rejectionOf } from "../../shared/connectors/bank/reported_statuses.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import { databaseOf } from "../../apps/operator/operator_database.ts";
import { runBankCommand } from "../../apps/operator/bank.ts";
import { readBankCommand } from "../../apps/operator/bank_command.ts";
import { addBankAccount, callBridge, KEYS, runProviders, written } from "../support/bank/bank.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { startService, type TestService } from "../support/service/service.ts";

/** Entries whose details come later: too many to compare each of them with all events. */
const ENTRIES = 2_000;
/** Entries, details and statuses of a file. */
const BRIDGE_ROWS = 10_000;
const CHARGES = '<TtlChrgsAndTaxAmt Ccy="EUR">0.40</TtlChrgsAndTaxAmt>';
const MANDATE = { signed_at: "2026-01-31", sequence: "recurring" };
const PAYEE = { iban: "FR1420041010050500013M02606", holder_name: "Zoë Müller" };

Deno.test("a bank's files with faults", async (t) => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { live: { text: key }, sql, deps } = service;
  const own = { iban: ACCOUNT, currency: "EUR", creditor_id: "DE98ZZZ09999999999" };
  const account = await addBankAccount(service, { methods: "sepa,swift", ...own });
  const { id, bridge_token } = account;
  const bridge = (method: string, path: string, body?: string) =>
    callBridge(service, account, method, path, body);
  const send = async (entries: string, head = "") => {
    const file = writeFile([{ head, entries }], { kind: head ? "053" : "054" });
    const { status, body } = await bridge("POST", "statements", file);
    await deps.provider_worker.notify();
    return { status, ...body };
  };
  const call = async (path: string, body?: unknown) => {
    const options = {
      key,
      ...body !== undefined && { body, idempotency_key: crypto.randomUUID() },
    };
    const method = body === undefined ? "GET" : "POST";
    return (await service.call(method, `/api-v1-payments/v1/${path}`, options)).body;
  };
  try {
    for (const day of ["2026-13-45", "2026-02-30", "0000-00-00"]) {
      await t.step(`a day that is in no calendar: ${day}`, async () => {
        const days = { BookgDt: `<Dt>${day}</Dt>`, ValDt: `<Dt>${day}</Dt>` };
        const { status, error } = await send(writeEntry(days));
        assert.deepEqual([status, /<BookgDt>: not a date like 2026-11-20/.test(error)], [
          400,
          true,
        ]);
        const head = ["OPBD", "CLBD"].map((code) => writeBalance(code, "0.00"));
        assert.equal((await send("", head.join("").replaceAll("2026-11-20", day))).status, 200);
      });
    }
    await t.step("a file with as many rows as a bridge may send, and one more", async () => {
      const half = BRIDGE_ROWS / 2;
      const entries = Array.from(
        { length: half },
        (_, n) => writeEntry({ AcctSvcrRef: `MANY${n + 1_000_000}`, NtryDtls: writeDetail() }),
      ).join("");
      const more = await send(entries + writeEntry());
      assert.equal(more.status, 400);
      assert.match(
        more.error,
        /more than 10000 entries.* deno task bank import FILE --account pac_/,
      );
      const most = await send(entries);
      assert.deepEqual([most.status, most.entries, most.details], [200, half, half]);
    });
    await t.step("a long code of the bank", async () => {
      const code = [...crypto.getRandomValues(new Uint8Array(4_000))].map((byte) => byte % 10);
      const entry = writeEntry({ BkTxCd: `<Prtry><Cd>${code.join("")}</Cd></Prtry>` });
      assert.equal((await send(entry)).status, 200);
    });
    await t.step("the reference of a payment at another account", async () => {
      const other = { iban: "GB29NWBK60161331926819", currency: "GBP" };
      await addBankAccount(service, { methods: "swift", ...other });
      const { id } = await call("payments", {
        amount: 1000,
        currency: "GBP",
        method_kind: "swift",
      });
      const reference = `<Ustrd>${creditorReference(id)}</Ustrd>`;
      const { booked } = await send(writeEntry({
        AcctSvcrRef: "ELSEWHERE1",
        NtryDtls: writeDetail({ RmtInf: reference }),
      }));
      assert.equal(booked, 1);
    });
    await t.step("a name that no file has, and a type in capital letters", async () => {
      assert.equal((await bridge("GET", "files/%00")).status, 404);
      const { status } = await service.call(
        "POST",
        `/api-v1-payments/providers/${id}/statements`,
        {
          key: null,
          body: writeFile([{ entries: writeEntry({ AcctSvcrRef: "CAPITALS1" }) }], { kind: "054" }),
          headers: { Authorization: `Bearer ${bridge_token}`, "Content-Type": "Application/XML" },
          unchecked: true,
        },
      );
      assert.equal(status, 200);
    });
    await t.step("a folder among the files of a command", async () => {
      const folder = await Deno.makeTempDir();
      const file = `${folder}/good.xml`;
      const entries = writeEntry({ AcctSvcrRef: "BESIDE001" });
      await Deno.writeTextFile(file, writeFile([{ entries }], { kind: "054" }));
      const timer = setInterval(() => deps.provider_worker.notify(), 20);
      let printed = "";
      const command = readBankCommand(["import", folder, file, "--account", id, "--json"]);
      const code = await runBankCommand(command!, {
        sql,
        env: (name) => name === "BANK_DETAILS_KEYS" ? KEYS : undefined,
        now_ms: () => deps.clock(),
        print: (text) => printed += text,
        printMessage: () => {},
      });
      clearInterval(timer);
      await Deno.remove(folder, { recursive: true });
      const results = printed.trim().split("\n").map((line) => JSON.parse(line).result);
      assert.deepEqual([code, results], [1, ["refused", "applied"]]);
    });
    const batches: [name: string, amount: string, Chrgs: string | null][] = [
      ["by the id of a detail", "7.00", null],
      ["without the charges of the bank", "6.60", CHARGES],
    ];
    for (const [name, amount, Chrgs] of batches) {
      await t.step(`a batch that is booked ${name}`, async () => {
        const mandate = { id: `M ${amount}`, ...MANDATE };
        const iban = { iban: "NL91ABNA0417164300", holder_name: "Jan Payer" };
        const kind = { amount: 700, currency: "EUR", method_kind: "sepa" };
        const { id } = await call("payments", { ...kind, iban, mandate });
        await bridge("POST", "files");
        const [{ name }] = (await bridge("GET", "files")).body.data;
        const [, batch] = /<PmtInfId>(.+)<.PmtInfId>/.exec(
          (await bridge("GET", `files/${name}`)).text,
        )!;
        const Refs = `<PmtInfId>${batch}</PmtInfId>`;
        const detail = writeDetail({ Refs, Amt: `${amount} EUR` });
        const AcctSvcrRef = `WHOLE${amount}`;
        await send(writeEntry({ Amt: `${amount} EUR`, AcctSvcrRef, Chrgs, NtryDtls: detail }));
        assert.equal((await call(`payments/${id}`)).status, "completed");
      });
    }
    await t.step(
      "a rejected file tells the reason of each order",
      () => rejects(bridge, call, send),
    );
    await t.step(
      "a batch is booked before its rejection is applied",
      () => rejectsInBatch(id, sql, bridge, call, send),
    );
    await t.step("statuses beside what the bank has booked", () => reports(bridge, call, send));
    await t.step("a refund goes to the only payer", () => refunds(bridge, call, send));
    await t.step("a refund of a collection", () => refundsCollection(bridge, call, send));
    await t.step("a file that is handed over twice", () => repeats(bridge, call, send));
    await t.step("an order that is not recorded yet leaves the others their file", async () => {
      const waiting = await collect(call, 600);
      const forget = (due_on: string | null) =>
        sql.begin(async (sql) => {
          await sql`set local session_replication_role = replica`;
          await sql`update pay.payments set body = jsonb_set(body::jsonb, '{method,due_on}',
            ${JSON.stringify(due_on)}::text::jsonb)::text where id = ${waiting}`;
        });
      await forget(null);
      const ready = await collect(call, 700);
      const { body } = await bridge("POST", "files");
      assert.match(JSON.stringify(body), /its due date is not recorded yet: export it later/);
      const [{ name }] = (await bridge("GET", "files")).body.data;
      const { text } = await bridge("GET", `files/${name}`);
      assert.deepEqual([text.includes(written(ready)), text.includes(written(waiting))], [
        true,
        false,
      ]);
      await forget("2026-12-31");
    });
    await t.step("an account whose number ends like that of this account", async () => {
      const dutch = { iban: "NL91ABNA0417164300", currency: "USD" };
      const own = await addBankAccount(service, { methods: "swift", ...dutch });
      for (
        const [number, status] of [
          ["0417164300", 200],
          ["417164300", 200],
          ["000417164300", 200],
          ["0000164300", 400],
          ["164300", 400],
          ["9417164300", 400],
        ] as const
      ) {
        const account = `<Id><Othr><Id>${number}</Id></Othr></Id><Ccy>USD</Ccy>`;
        const entries = writeEntry({ Amt: "10.00 USD", AcctSvcrRef: `NUMBER${number}` });
        const file = writeFile([{ account, entries }], { kind: "054" });
        const sent = await callBridge(service, own, "POST", "statements", file);
        assert.equal(sent.status, status, number);
      }
    });
    await t.step("money without a reference is matched by the operator", async () => {
      const { id: payment } = await call("payments", {
        amount: 1234,
        currency: "EUR",
        method_kind: "sepa",
      });
      await send(writeEntry({ Amt: "12.34 EUR", AcctSvcrRef: "NAMELESS1" }));
      const [event] = await sql`select reference from pay.provider_events
        where outcome = 'unmatched' and amount_minor = 1234`;
      await runProviders(service, ["match", event!.reference, payment]);
      const { status, amount_received } = await call(`payments/${payment}`);
      assert.deepEqual([status, amount_received], ["completed", 1234]);
    });
    const [sums] = await sql<[{ entries: string; booked: string }]>`select
      (select sum(amount_minor) from pay.bank_entries) as entries,
      (select sum(booked_minor) from pay.provider_events) as booked`;
    assert.equal(sums.booked, sums.entries);
    await t.step("details that come later cost the same in a large account", async () => {
      const post = async (NtryDtls: string | null) => {
        const entries = Array.from(
          { length: ENTRIES },
          (_, at) => writeEntry({ AcctSvcrRef: `MANY${1e6 + at}`, NtryDtls }),
        ).join("");
        return await bridge("POST", "statements", writeFile([{ entries }], { kind: "054" }));
      };
      assert.equal((await post(null)).status, 200);
      const half = writeDetail({ Amt: "5.00 EUR" });
      const { status, body } = await post(half + half);
      assert.deepEqual([status, body.details], [200, 2 * ENTRIES]);
    });
  } finally {
    await service.close();
  }
});

type Bridge = (method: string, path: string, body?: string) => ReturnType<TestService["call"]>;
// deno-lint-ignore no-explicit-any
type Call = (path: string, body?: unknown) => Promise<any>;
type Send = (entries: string) => Promise<unknown>;

/** Rejects a file, its batch and its orders in one report. */
async function rejects(bridge: Bridge, call: Call, send: Send): Promise<void> {
  const paid = await call("payments", { amount: 1000, currency: "EUR", method_kind: "sepa" });
  const RmtInf = `<Ustrd>${creditorReference(paid.id)}</Ustrd>`;
  await send(writeEntry({ AcctSvcrRef: "FUNDS0001", NtryDtls: writeDetail({ RmtInf }) }));
  const body = { amount: 100, currency: "EUR", destination: { iban: PAYEE } };
  const { id } = await call("transfers", body);
  const file = await exportOrders(bridge);
  const report = `<Document><CstmrPmtStsRpt><GrpHdr><MsgId>S</MsgId></GrpHdr>
<OrgnlGrpInfAndSts><OrgnlMsgId>${file}</OrgnlMsgId><GrpSts>RJCT</GrpSts></OrgnlGrpInfAndSts>
<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file}-1</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts>
<TxInfAndSts><OrgnlEndToEndId>${written(id)}</OrgnlEndToEndId><TxSts>RJCT</TxSts>
<StsRsnInf><Rsn><Cd>AC04</Cd></Rsn></StsRsnInf></TxInfAndSts>
</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>`;
  const { body: result } = await bridge("POST", "statements", report);
  assert.equal(result.error, null);
  await send("");
  const { status, return_code } = await call(`transfers/${id}`);
  assert.deepEqual([status, return_code], ["failed", "AC04"]);
}

/**
 * Finds a batch while the rejection of one of its orders is stored and not applied. Then rejects the
 * order, and books the rest of the batch by its total, in one file.
 */
async function rejectsInBatch(
  account_id: string,
  sql: TestService["sql"],
  bridge: Bridge,
  call: Call,
  send: Send,
): Promise<void> {
  const ids = [await collect(call, 300), await collect(call, 400)];
  const [good, bad] = ids as [string, string];
  const file = await exportOrders(bridge);
  const stored = await sql.begin(async (transaction) => {
    const store = new BankStore(databaseOf(transaction as unknown as TestService["sql"]));
    const [order] = await store.findOrders(account_id, bad);
    const at = new Date().toISOString();
    await transaction`savepoint before`;
    await store.storeEvents(account_id, [rejectionOf(account_id, order!, at)]);
    const found = await store.findOrders(account_id, file);
    await transaction`rollback to before`;
    return found.map(({ id, state, is_open }) => [id, state, is_open]);
  });
  assert.deepEqual(stored, [[good, "exported", true], [bad, "rejected", false]]);
  const report = writeReport(file, writeStatus({ OrgnlEndToEndId: written(bad) }, "RJCT"));
  const batch = `<Btch><PmtInfId>${file}-1</PmtInfId><NbOfTxs>1</NbOfTxs></Btch>`;
  const entry = writeEntry({ Amt: "3.00 EUR", AcctSvcrRef: "REST00001", NtryDtls: batch });
  const booked = writeFile([{ entries: entry }], { kind: "054" }).replace(/<.xml.+>/, "");
  const { body } = await bridge("POST", "statements", `<Files>${report}${booked}</Files>`);
  assert.equal(body.error, null);
  await send("");
  const statuses = ids.map(async (id) => (await call(`payments/${id}`)).status);
  assert.deepEqual(await Promise.all(statuses), ["completed", "failed"]);
}

/** Reports that name orders and files in the bank's way, or orders with a result. */
async function reports(bridge: Bridge, call: Call, send: Send): Promise<void> {
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push(await collect(call, 500));
  const [booked, by_instruction, beside] = ids as [string, string, string];
  const file = await exportOrders(bridge);
  await send(writeEntry({
    Amt: "5.00 EUR",
    AcctSvcrRef: "BEFORE001",
    NtryDtls: writeDetail({
      Refs: `<EndToEndId>${written(booked)}</EndToEndId>`,
      Amt: "5.00 EUR",
    }),
  }));
  const unknown = "the status is about an order or a file that this account has never exported";
  const result = `${booked} has a result already: the status changes nothing`;
  const cases: [report: string, warnings: string[], order: string, status: string][] = [
    [
      writeReport(file, writeStatus({ OrgnlEndToEndId: written(booked) }, "RJCT")),
      [`line 4, <TxInfAndSts>: ${result}`],
      booked,
      "completed",
    ],
    [
      writeReport(
        file,
        writeStatus({
          OrgnlInstrId: written(by_instruction),
          OrgnlEndToEndId: "NOTPROVIDED",
        }, "RJCT"),
      ),
      [],
      by_instruction,
      "failed",
    ],
    [
      writeReport(
        file,
        writeStatus({ OrgnlEndToEndId: "OTHER-1" }, "ACSP") +
          writeStatus({ OrgnlEndToEndId: written(beside) }, "RJCT"),
        "<OrgnlMsgId>BANK-1</OrgnlMsgId><GrpSts>PART</GrpSts>",
      ),
      [`line 2, <OrgnlGrpInfAndSts>: ${unknown}`, `line 4, <TxInfAndSts>: ${unknown}`],
      beside,
      "failed",
    ],
  ];
  for (const [report, warnings, order, status] of cases) {
    const { body } = await bridge("POST", "statements", report);
    await send("");
    assert.deepEqual([body.error, body.warnings], [null, warnings]);
    assert.equal((await call(`payments/${order}`)).status, status);
  }
  const other = "bf-01k8zq3n5v8x1y2z3a4b000001";
  const { status, body } = await bridge(
    "POST",
    "statements",
    writeReport(
      other,
      writeStatus({ OrgnlEndToEndId: "OTHER-1" }, "RJCT"),
      `<OrgnlMsgId>${other}</OrgnlMsgId><GrpSts>PART</GrpSts>`,
    ),
  );
  assert.deepEqual([status, body.error], [400, `Line 2, <OrgnlGrpInfAndSts>: ${unknown}`]);
}

/** Pays with one or several transfers, and refunds without a destination. */
async function refunds(bridge: Bridge, call: Call, send: Send): Promise<void> {
  const [ann, bob] = ["DE89370400440532013000", "NL91ABNA0417164300"] as const;
  let entries = 0;
  const paid = (id: string, iban: string) => {
    const RmtInf = `<Ustrd>${creditorReference(id)}</Ustrd>`;
    const RltdPties = `<Dbtr><Pty><Nm>Payer</Nm></Pty></Dbtr>` +
      `<DbtrAcct><Id><IBAN>${iban}</IBAN></Id></DbtrAcct>`;
    const AcctSvcrRef = `PAYER${++entries}`;
    return writeEntry({ AcctSvcrRef, NtryDtls: writeDetail({ RltdPties, RmtInf }) });
  };
  /** The payers by file, and the one to whom the refund goes. */
  const cases: [files: string[][], payee: string | null][] = [
    [[[ann]], ann],
    [[[ann], [ann]], ann],
    [[[ann, ann]], ann],
    [[[ann], [bob]], null],
    [[[ann, bob]], null],
    [[[ann], [bob], [ann]], null],
  ];
  for (const [i, [files, payee]] of cases.entries()) {
    const amount = files.flat().length * 1000;
    const { id } = await call("payments", { amount, currency: "EUR", method_kind: "sepa" });
    for (const payers of files) await send(payers.map((iban) => paid(id, iban)).join(""));
    assert.equal((await call(`payments/${id}`)).status, "completed", `case ${i}`);
    const { id: refund, error } = await call(`payments/${id}/refund`, { amount });
    assert.equal(error?.param ?? null, payee === null ? "destination" : null, `case ${i}`);
    if (payee === null) continue;
    await bridge("POST", "files");
    const names: { name: string }[] = (await bridge("GET", "files")).body.data;
    const texts = await Promise.all(
      names.map(async ({ name }) => (await bridge("GET", `files/${name}`)).text),
    );
    const [text] = texts.filter((text) => text.includes(written(refund)));
    assert.ok(text?.includes(payee), `case ${i}`);
  }
}

/** Refunds a collection, whose payer the bank names too. */
async function refundsCollection(bridge: Bridge, call: Call, send: Send): Promise<void> {
  const id = await collect(call, 1000);
  await exportOrders(bridge);
  const RltdPties = `<Dbtr><Pty><Nm>Payer</Nm></Pty></Dbtr>` +
    `<DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct>`;
  const detail = writeDetail({ Refs: `<EndToEndId>${written(id)}</EndToEndId>`, RltdPties });
  await send(writeEntry({ AcctSvcrRef: "COLLECTED1", NtryDtls: detail }));
  assert.equal((await call(`payments/${id}`)).status, "completed");
  const { status, error } = await call(`payments/${id}/refund`, { amount: 100 });
  assert.deepEqual([status, error], ["pending", undefined]);
}

/** Reports that the bank refuses a file because it has it already. */
async function repeats(bridge: Bridge, call: Call, send: Send): Promise<void> {
  const refused = (code: string) => `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>`;
  const group = (file: string, reason = "") =>
    `<OrgnlMsgId>${file}</OrgnlMsgId><GrpSts>RJCT</GrpSts>${reason}`;
  const status = (id: string, reason: string) =>
    writeStatus({ OrgnlEndToEndId: written(id) }, "RJCT").replace("</TxInf", `${reason}</TxInf`);
  const cases: [report: (file: string, id: string) => string, status: string][] = [
    [(file) => writeReport(file, "", group(file, refused("AM05"))), "processing"],
    [(file) => writeReport(file, "", group(file, refused("DU01"))), "processing"],
    [
      (file, id) => writeReport(file, status(id, refused("AM05")), group(file, refused("DU01"))),
      "processing",
    ],
    [(file, id) => writeReport(file, status(id, refused("AM05")), group(file)), "processing"],
    [(file, id) => writeReport(file, status(id, refused("DU04"))), "processing"],
    [(file, id) => writeReport(file, status(id, refused("AM05"))), "failed"],
    [(file) => writeReport(file, "", group(file, refused("AC04"))), "failed"],
  ];
  for (const [i, [report, expected]] of cases.entries()) {
    const id = await collect(call, 500);
    const { body } = await bridge("POST", "statements", report(await exportOrders(bridge), id));
    await send("");
    assert.equal((await call(`payments/${id}`)).status, expected, `case ${i}`);
    const warned = /the bank has had (bf|pay)-\S+ before: the status changes nothing/;
    assert.equal(warned.test(`${body.warnings}`), expected === "processing", `case ${i}`);
  }
}

let mandates = 0;

/** Creates a collection. Returns its id. */
async function collect(call: Call, amount: number): Promise<string> {
  const { id } = await call("payments", {
    amount,
    currency: "EUR",
    method_kind: "sepa",
    iban: { iban: "NL91ABNA0417164300", holder_name: "Jan Payer" },
    // A cut UUID can look like a card number.
    mandate: { id: `M ${++mandates}`, ...MANDATE },
  });
  return id;
}

/** Exports what waits. Returns the id of the newest file as the bank repeats it. */
async function exportOrders(bridge: Bridge): Promise<string> {
  await bridge("POST", "files");
  const [{ name }] = (await bridge("GET", "files")).body.data;
  return /bf-[0-9a-z]+/.exec(name)![0];
}

/** Writes a report about a batch. */
function writeReport(file: string, statuses: string, group = ""): string {
  return `<Document><CstmrPmtStsRpt><GrpHdr><MsgId>S</MsgId></GrpHdr>
<OrgnlGrpInfAndSts>${group}</OrgnlGrpInfAndSts>
<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file}-1</OrgnlPmtInfId>
${statuses}</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>`;
}

function writeStatus(ids: Record<string, string>, code: string): string {
  const texts = Object.entries(ids).map(([name, id]) => `<${name}>${id}</${name}>`);
  return `<TxInfAndSts>${texts.join("")}<TxSts>${code}</TxSts></TxInfAndSts>`;
}

Deno.test("a file is not imported without the keys for the details of its payers", async () => {
  const service = await startService({});
  try {
    const account = await addBankAccount(service, {
      ...{ methods: "sepa", iban: ACCOUNT, currency: "EUR" },
    });
    const file = writeFile([{ entries: writeEntry() }], { kind: "054" });
    const { status, body } = await callBridge(service, account, "POST", "statements", file);
    assert.deepEqual([status, body.error.code], [503, "provider_not_configured"]);
    assert.match(body.error.message, /BANK_DETAILS_KEYS/);
    assert.equal((await service.sql`select from pay.bank_files`).length, 0);
  } finally {
    await service.close();
  }
});
