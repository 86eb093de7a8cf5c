/**
 * Files in which a bank names orders, payments and accounts in its own way: the money reaches them
 * where only one can be meant, and no other statement of the file stops it.
 */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, callBridge, KEYS, written } from "../support/bank/bank.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { startService } from "../support/service/service.ts";

const PAYEE = { iban: "FR1420041010050500013M02606", holder_name: "Zoë Müller" };

Deno.test("a bank's own ways to write a file", async (t) => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { live: { text: key }, sql, deps } = service;
  const account = await addBankAccount(service, {
    methods: "sepa,swift",
    iban: ACCOUNT,
    currency: "EUR",
    creditor_id: "DE98ZZZ09999999999",
  });
  const bridge = (method: string, path: string, body?: string) =>
    callBridge(service, account, method, path, body);
  const importFile = async (file: string) => {
    const { body } = await bridge("POST", "statements", file);
    await deps.provider_worker.notify();
    return body;
  };
  let files = 0;
  const send = (members: Record<string, string | null>) => {
    // A day of its own: equal entries of a day can be one.
    const BookgDt = `<Dt>2026-10-${10 + ++files}</Dt>`;
    const entries = writeEntry({ AcctSvcrRef: `VARIANT${1000 + files}`, BookgDt, ...members });
    return importFile(writeFile([{ entries }], { kind: "054" }));
  };
  const call = async (path: string, body?: unknown) => {
    const method = body === undefined ? "GET" : "POST";
    const sent = body === undefined ? {} : { body, idempotency_key: crypto.randomUUID() };
    return (await service.call(method, `/api-v1-payments/v1/${path}`, { key, ...sent })).body;
  };
  const pay = async (): Promise<string> =>
    (await call("payments", { amount: 1000, currency: "EUR", method_kind: "sepa" })).id;
  const transfer = async (): Promise<string> =>
    (await call("transfers", { amount: 200, currency: "EUR", destination: { iban: PAYEE } })).id;
  const exportOrders = async (): Promise<string> => {
    await bridge("POST", "files");
    const [{ name }] = (await bridge("GET", "files")).body.data;
    return /bf-[0-9a-z]+/.exec(name)![0];
  };
  const remit = (text: string) => ({
    NtryDtls: writeDetail({ RmtInf: `<Ustrd>${text}</Ustrd>` }),
  });
  const received = async (id: string) => (await call(`payments/${id}`)).amount_received;
  try {
    await t.step("a statement of another account whose sums are wrong", async () => {
      const payment = await pay();
      const balances = writeBalance("OPBD", "0.00") + writeBalance("CLBD", "10.00");
      const entries = writeEntry({
        AcctSvcrRef: "BESIDE0001",
        ...remit(creditorReference(payment)),
      });
      const other = `<Id><IBAN>${PAYEE.iban}</IBAN></Id><Ccy>EUR</Ccy>`;
      const file = writeFile([
        { head: balances, entries },
        { account: other, head: balances.replace("10.00", "9.00"), entries: writeEntry() },
      ]);
      const { error, entries: counted } = await importFile(file);
      assert.deepEqual([error, counted, await received(payment)], [null, 1, 1000]);
      const alone = await importFile(writeFile([{ account: other, entries: writeEntry() }]));
      const reason = "the file is about …2606, and not about the account …2051";
      assert.equal(alone.error, `Line 4, <Stmt>: ${reason}`);
    });
    await t.step("a reference that is cut off is that of the payment that waits", async () => {
      const payment = await pay();
      const cut = remit(`Invoice ${creditorReference(payment).slice(0, 12)}`);
      assert.equal((await send(cut)).exceptions, 0);
      assert.equal(await received(payment), 1000);
      // The payment waits no more.
      assert.equal((await send(cut)).exceptions, 1);
      assert.equal(await received(payment), 1000);
    });
    await t.step("the reference of a payment at another account, cut off", async () => {
      const other = { iban: "GB29NWBK60161331926819", currency: "GBP" };
      await addBankAccount(service, { methods: "swift", ...other });
      const { id } = await call("payments", {
        amount: 1000,
        currency: "GBP",
        method_kind: "swift",
      });
      await send(remit(creditorReference(id).slice(0, 12)));
      assert.equal(await received(id), 0);
    });
    await t.step("the id of a payout in a text", async () => {
      const order = await transfer();
      await exportOrders();
      const debit = (amount: string) => ({
        Amt: `${amount} EUR`,
        CdtDbtInd: "DBIT",
        AddtlNtryInf: `EREF+${written(order).toUpperCase()} SVWZ+PAYOUT`,
      });
      assert.equal((await send(debit("0.15"))).exceptions, 1);
      assert.equal((await call(`transfers/${order}`)).status, "pending");
      assert.equal((await send(debit("2.00"))).exceptions, 0);
      assert.equal((await call(`transfers/${order}`)).status, "completed");
    });
    await t.step("a payout whose text names the payment that it is for", async () => {
      const { id } = await call("payments", {
        ...{ amount: 700, currency: "EUR", method_kind: "sepa", iban: PAYEE },
        mandate: { id: "VARIANT", signed_at: "2026-01-31", sequence: "recurring" },
      });
      await exportOrders();
      const refs = `<EndToEndId>${written(id)}</EndToEndId>`;
      await send({ Amt: "7.00 EUR", NtryDtls: writeDetail({ Amt: "7.00 EUR", Refs: refs }) });
      const refund = await call(`payments/${id}/refund`, { amount: 700 });
      await exportOrders();
      const debit = (text: string) => ({
        Amt: "7.00 EUR",
        CdtDbtInd: "DBIT",
        AddtlNtryInf: `${text}SVWZ+Refund of ${written(id)}`,
      });
      const statuses = async () => [
        (await call(`payments/${id}`)).status,
        (await call(`refunds/${refund.id}`)).status,
      ];
      assert.deepEqual(await statuses(), ["completed", "pending"]);
      assert.equal((await send(debit(""))).exceptions, 1);
      assert.deepEqual(await statuses(), ["completed", "pending"]);
      assert.equal((await send(debit(`EREF+${written(refund.id)} `))).exceptions, 0);
      assert.deepEqual(await statuses(), ["refunded", "completed"]);
    });
    await t.step("a reply to two recalls, of which one is refused", async () => {
      const given_back = await transfer();
      const first = await exportOrders();
      const kept = await transfer();
      const second = await exportOrders();
      await importFile(`<Document><RsltnOfInvstgtn><Assgnmt><Id>TWO</Id></Assgnmt>
<Sts><Conf>PECR</Conf></Sts><CxlDtls><OrgnlGrpInfAndSts><OrgnlMsgId>${first}</OrgnlMsgId>
<GrpCxlSts>ACCR</GrpCxlSts></OrgnlGrpInfAndSts></CxlDtls><CxlDtls><OrgnlPmtInfAndSts>
<OrgnlPmtInfId>${second}-1</OrgnlPmtInfId><TxInfAndSts>
<OrgnlEndToEndId>${written(kept)}</OrgnlEndToEndId>
<CxlStsRsnInf><Rsn><Cd>NOOR</Cd></Rsn></CxlStsRsnInf></TxInfAndSts></OrgnlPmtInfAndSts></CxlDtls>
</RsltnOfInvstgtn></Document>`);
      assert.equal((await call(`transfers/${given_back}`)).status, "failed");
      assert.equal((await call(`transfers/${kept}`)).status, "pending");
    });
    const recall = (file: string, content = "") =>
      `<Document><RsltnOfInvstgtn><Assgnmt><Id>A</Id></Assgnmt><Sts><Conf>CNCL</Conf></Sts><CxlDtls>
<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file}-1</OrgnlPmtInfId><PmtInfCxlSts>ACCR</PmtInfCxlSts>
${content}</OrgnlPmtInfAndSts></CxlDtls></RsltnOfInvstgtn></Document>`;
    await t.step("a recall of the only order of a batch", async () => {
      const order = await transfer();
      assert.equal((await importFile(recall(await exportOrders()))).error, null);
      assert.equal((await call(`transfers/${order}`)).status, "failed");
    });
    await t.step("a recall of one of the orders of a batch", async () => {
      const [kept, recalled] = [await transfer(), await transfer()];
      const file = await exportOrders();
      const statuses = async () => [
        (await call(`transfers/${kept}`)).status,
        (await call(`transfers/${recalled}`)).status,
      ];
      const { warnings } = await importFile(recall(file));
      assert.match(`${warnings}`, /about several orders: it ends only those that it names/);
      assert.deepEqual(await statuses(), ["pending", "pending"]);
      const named = `<OrgnlEndToEndId>${written(recalled)}</OrgnlEndToEndId>`;
      await importFile(recall(file, `<TxInfAndSts>${named}</TxInfAndSts>`));
      assert.deepEqual(await statuses(), ["pending", "failed"]);
    });
    await t.step("a rejection with a reason and no status", async () => {
      const order = await transfer();
      const file = await exportOrders();
      await importFile(`<Document><CstmrPmtStsRpt><GrpHdr><MsgId>S</MsgId></GrpHdr>
<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file}-1</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts><TxInfAndSts>
<OrgnlEndToEndId>${written(order)}</OrgnlEndToEndId><StsRsnInf><Rsn><Cd>AC01</Cd></Rsn></StsRsnInf>
</TxInfAndSts></OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>`);
      const { status, return_code } = await call(`transfers/${order}`);
      assert.deepEqual([status, return_code], ["failed", "AC01"]);
    });
    const [sums] = await sql<[{ entries: string; booked: string }]>`select
      (select sum(amount_minor) from pay.bank_entries where same_as is null) as entries,
      (select sum(booked_minor) from pay.provider_events) as booked`;
    assert.equal(sums.booked, sums.entries);
  } finally {
    await service.close();
  }
});
