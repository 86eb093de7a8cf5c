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
  // The file has one part in the place of all.
  const [whole, part] = partsOf();
  const [head, tail] = whole.split(part(0));
  const encoder = new TextEncoder();
  yield encoder.encode(head);
  for (let at = 0; at < count; at += PARTS) {
    const numbers = Array.from({ length: Math.min(PARTS, count - at) }, (_, i) => at + i);
    yield encoder.encode(numbers.map(part).join(""));
  }
  yield encoder.encode(tail);
}

function partsOf(): [whole: string, part: (at: number) => string] {
  switch (many) {
    case "statuses":
      return [writeReport(null, [["P"], ["E-0", "RJCT", "AC04"]]), statusOf];
    case "details": {
      const entry = { Amt: `${count} EUR`, NtryDtls: detailOf(0) };
      return [writeFile([{ entries: writeEntry(entry) }]), detailOf];
    }
    default: {
      const head = writeBalance("OPBD", "0") + writeBalance("CLBD", `${count}`);
      return [writeFile([{ head, entries: entryOf(0) }]), entryOf];
    }
  }
}

function statusOf(at: number): string {
  return /<TxInfAndSts>.*<.TxInfAndSts>/.exec(
    writeReport(null, [["P"], [`E-${at}`, "RJCT", "AC04"]]),
  )![0];
}

function entryOf(at: number): string {
  return writeEntry({
    Amt: "1.00 EUR",
    AcctSvcrRef: `2026112000${at}`,
    BkTxCd: "<Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn>",
    NtryDtls: detailOf(at),
    AddtlNtryInf: "SEPA CREDIT TRANSFER",
  });
}

function detailOf(at: number): string {
  return writeDetail({
    Refs: `<EndToEndId>NOTPROVIDED</EndToEndId><TxId>TX-${at}</TxId>`,
    ...{ Amt: "1.00 EUR", CdtDbtInd: "CRDT" },
    RltdPties: `<Dbtr><Pty><Nm>Payer ${at}</Nm></Pty></Dbtr>` +
      "<DbtrAcct><Id><IBAN>DE89370400440532013000</IBAN></Id></DbtrAcct>",
    RltdAgts: "<DbtrAgt><FinInstnId><BICFI>COBADEFFXXX</BICFI></FinInstnId></DbtrAgt>",
    RmtInf: `<Ustrd>Invoice ${at} RF18539007547034 with thanks</Ustrd>`,
  });
}
