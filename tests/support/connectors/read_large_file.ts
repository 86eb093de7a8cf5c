/**
 * Reads a bank file that is written while it is read, and prints the number of its records and the
 * most memory that the process has had, as JSON.
 *
 * Arguments: what there are many of (`entries`, `details` of one entry, or `statuses`), how many.
 */

import { readBankFile } from "../../../shared/connectors/bank/read_bank_file.ts";

/** Records between two looks at the memory. */
const SAMPLE_RECORDS = 500;
/** Parts of a file that are written at once. */
const PARTS = 50;

const [many, number] = Deno.args;
const count = Number(number);

let records = 0;
let peak_bytes = 0;
const start_ms = performance.now();
for await (const _ of readBankFile(write(), Infinity)) {
  if (records++ % SAMPLE_RECORDS === 0) {
    peak_bytes = Math.max(peak_bytes, Deno.memoryUsage().rss);
  }
}
const seconds = (performance.now() - start_ms) / 1000;
console.log(JSON.stringify({ records, peak_mb: Math.round(peak_bytes / 1e6), seconds }));

async function* write(): AsyncGenerator<Uint8Array> {
  const [head, part, tail] = partsOf();
  const encoder = new TextEncoder();
  yield encoder.encode(head);
  for (let at = 0; at < count; at += PARTS) {
    const numbers = Array.from({ length: Math.min(PARTS, count - at) }, (_, i) => at + i);
    yield encoder.encode(numbers.map(part).join(""));
  }
  yield encoder.encode(tail);
}

function partsOf(): [head: string, part: (at: number) => string, tail: string] {
  if (many === "statuses") {
    return [
      "<Document><CstmrPmtStsRpt><OrgnlPmtInfAndSts><OrgnlPmtInfId>P</OrgnlPmtInfId>",
      (at) =>
        `<TxInfAndSts><OrgnlEndToEndId>E-${at}</OrgnlEndToEndId><TxSts>RJCT</TxSts>
        <StsRsnInf><Rsn><Cd>AC04</Cd></Rsn></StsRsnInf></TxInfAndSts>\n`,
      "</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>",
    ];
  }
  const statement = (content: string) =>
    `<Document><BkToCstmrStmt><Stmt><Id>S</Id><Acct><Id><IBAN>DE02120300000000202051</IBAN></Id>
    </Acct>${content}`;
  if (many === "details") {
    return [
      statement(
        `<Ntry><Amt Ccy="EUR">${count}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts>
        <BookgDt><Dt>2026-11-20</Dt></BookgDt><NtryDtls>`,
      ),
      detailOf,
      "</NtryDtls></Ntry></Stmt></BkToCstmrStmt></Document>",
    ];
  }
  return [
    statement(balance("OPBD", 0) + balance("CLBD", count)),
    (at) =>
      `<Ntry><Amt Ccy="EUR">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>
      <BookgDt><Dt>2026-11-20</Dt></BookgDt><ValDt><Dt>2026-11-20</Dt></ValDt>
      <AcctSvcrRef>2026112000${at}</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd>
      <SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd><NtryDtls>${detailOf(at)}</NtryDtls>
      <AddtlNtryInf>SEPA CREDIT TRANSFER</AddtlNtryInf></Ntry>\n`,
    "</Stmt></BkToCstmrStmt></Document>",
  ];
}

function balance(code: string, amount: number): string {
  return `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${amount}</Amt>
  <CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-11-20</Dt></Dt></Bal>`;
}

function detailOf(at: number): string {
  return `<TxDtls><Refs><EndToEndId>NOTPROVIDED</EndToEndId><TxId>TX-${at}</TxId></Refs>
  <Amt Ccy="EUR">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><RltdPties><Dbtr><Pty><Nm>Payer ${at}</Nm>
  </Pty></Dbtr><DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct></RltdPties>
  <RltdAgts><DbtrAgt><FinInstnId><BICFI>COBADEFFXXX</BICFI></FinInstnId></DbtrAgt></RltdAgts>
  <RmtInf><Ustrd>Invoice ${at} RF18539007547034 with thanks</Ustrd></RmtInf></TxDtls>`;
}
