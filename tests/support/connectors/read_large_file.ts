/**
 * Reads a bank file that is written while it is read, and prints the number of its records and the
 * most memory that the process has had, as JSON.
 *
 * Arguments: what there are many of (`entries`, `details` of one entry, or `statuses`), how many.
 */

import { readBankFile } from "../../../shared/connectors/bank/read_bank_file.ts";
import { writeBalance, writeDetail, writeEntry, writeFile, writeReport } from "./bank_file.ts";

/** Records between two looks at the memory. */
const SAMPLE_RECORDS = 500;
/** Parts of a file that are written at once. */
const PARTS = 50;

const [many, number] = Deno.args;
const count = Number(number);

let records = 0;
let peak_bytes = 0;
for await (const _ of readBankFile(write(), Infinity)) {
  if (records++ % SAMPLE_RECORDS === 0) {
    peak_bytes = Math.max(peak_bytes, Deno.memoryUsage().rss);
  }
}
console.log(JSON.stringify({ records, peak_mb: Math.round(peak_bytes / 1e6) }));

async function* write(): AsyncGenerator<Uint8Array> {
  // The file has one part in the place of all. `#` is its number.
  const [whole, part] = partsOf();
  const [head, tail] = whole.split(part);
  const encoder = new TextEncoder();
  yield encoder.encode(head);
  for (let at = 0; at < count; at += PARTS) {
    const numbers = Array.from({ length: Math.min(PARTS, count - at) }, (_, i) => at + i);
    const parts = numbers.map((number) => part.replaceAll("#", `${number}`));
    yield encoder.encode(parts.join(""));
  }
  yield encoder.encode(tail);
}

function partsOf(): [whole: string, part: string] {
  if (many === "statuses") {
    const report = writeReport(null, [["P"], ["E-#", "RJCT", "AC04"]]);
    return [report, /<TxInfAndSts>.*<.TxInfAndSts>/.exec(report)![0]];
  }
  const detail = writeDetail({
    Refs: "<EndToEndId>NOTPROVIDED</EndToEndId><TxId>TX-#</TxId>",
    ...{ Amt: "1.00 EUR", CdtDbtInd: "CRDT" },
    RltdPties: "<Dbtr><Pty><Nm>Payer #</Nm></Pty></Dbtr>" +
      "<DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct>",
    RltdAgts: "<DbtrAgt><FinInstnId><BICFI>COBADEFFXXX</BICFI></FinInstnId></DbtrAgt>",
    RmtInf: "<Ustrd>Invoice # RF18539007547034 with thanks</Ustrd>",
  });
  if (many === "details") {
    const entries = writeEntry({ Amt: `${count} EUR`, NtryDtls: detail });
    return [writeFile([{ entries }]), detail];
  }
  const entries = writeEntry({
    ...{ Amt: "1.00 EUR", AcctSvcrRef: "2026112000#" },
    BkTxCd: "<Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn>",
    ...{ NtryDtls: detail, AddtlNtryInf: "SEPA CREDIT TRANSFER" },
  });
  const head = writeBalance("OPBD", "0") + writeBalance("CLBD", `${count}`);
  return [writeFile([{ head, entries }]), entries];
}
