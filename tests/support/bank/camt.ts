/** Writes small camt files, as a bank would. */

/** An entry of a statement. */
export interface CamtEntry {
  /** `AcctSvcrRef` */
  id: string;
  /** In minor units of a currency with two decimals: negative if money left. */
  amount_minor: number;
  booked_on: string;
  /** `Ustrd` of its one transaction; absent with `end_to_end_id`: the entry has no details. */
  text?: string;
  /** Of its one transaction. */
  end_to_end_id?: string;
  /** The reason of a return, such as `AC04`. */
  return_code?: string;
  /** The other side. */
  party?: { name: string; iban: string };
  /** `PmtInfId` of a batch without details. */
  batch_id?: string;
  /** The sub-family of its transaction code. */
  code?: string;
}

/** A file. */
interface CamtFile {
  kind: "camt.052" | "camt.053" | "camt.054";
  iban: string;
  currency: string;
  /** Unique for each file. */
  id: string;
  entries: readonly CamtEntry[];
  /** The balance before the entries, for camt.053. */
  opening_minor?: number;
}

const MESSAGES = {
  "camt.052": ["BkToCstmrAcctRpt", "Rpt"],
  "camt.053": ["BkToCstmrStmt", "Stmt"],
  "camt.054": ["BkToCstmrDbtCdtNtfctn", "Ntfctn"],
} as const;

/** Writes a file of version 08. */
export function camtFile({ kind, iban, currency, id, entries, opening_minor }: CamtFile): string {
  const [message, statement] = MESSAGES[kind];
  const day = entries[0]?.booked_on ?? "2026-11-24";
  const last = entries.at(-1)?.booked_on ?? day;
  const closing = (opening_minor ?? 0) +
    entries.reduce((sum, entry) => sum + entry.amount_minor, 0);
  const balances = opening_minor === undefined
    ? ""
    : balance("OPBD", opening_minor, currency, day) + balance("CLBD", closing, currency, last);
  return `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${kind}.001.08"><${message}>
<GrpHdr><MsgId>${id}</MsgId><CreDtTm>${last}T20:00:00Z</CreDtTm></GrpHdr>
<${statement}><Id>${id}</Id><Acct><Id><IBAN>${iban}</IBAN></Id><Ccy>${currency}</Ccy></Acct>
${balances}${
    entries.map((each) => entry(each, currency)).join("")
  }</${statement}></${message}></Document>
`;
}

function balance(code: string, amount_minor: number, currency: string, day: string): string {
  return `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>${money(amount_minor, currency)}` +
    `<Dt><Dt>${day}</Dt></Dt></Bal>\n`;
}

function entry(given: CamtEntry, currency: string) {
  const { id, amount_minor, booked_on, code = "ESCT", batch_id } = given;
  const batch = batch_id
    ? `<NtryDtls><Btch><PmtInfId>${batch_id}</PmtInfId></Btch></NtryDtls>`
    : "";
  return `<Ntry>${money(amount_minor, currency)}<Sts><Cd>BOOK</Cd></Sts>` +
    `<BookgDt><Dt>${booked_on}</Dt></BookgDt><ValDt><Dt>${booked_on}</Dt></ValDt>` +
    `<AcctSvcrRef>${id}</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RCDT</Cd>` +
    `<SubFmlyCd>${code}</SubFmlyCd></Fmly></Domn></BkTxCd>${batch}${details(given)}</Ntry>\n`;
}

function details(
  { id, amount_minor, text, end_to_end_id, return_code, party }: CamtEntry,
): string {
  if (text === undefined && end_to_end_id === undefined) return "";
  const role = amount_minor > 0 ? "Dbtr" : "Cdtr";
  const parties = party
    ? `<RltdPties><${role}><Pty><Nm>${party.name}</Nm></Pty></${role}><${role}Acct><Id><IBAN>` +
      `${party.iban}</IBAN></Id></${role}Acct></RltdPties>`
    : "";
  return `<NtryDtls><TxDtls><Refs><AcctSvcrRef>${id}</AcctSvcrRef>` +
    (end_to_end_id ? `<EndToEndId>${end_to_end_id}</EndToEndId>` : "") + `</Refs>${parties}` +
    (text ? `<RmtInf><Ustrd>${text}</Ustrd></RmtInf>` : "") +
    (return_code ? `<RtrInf><Rsn><Cd>${return_code}</Cd></Rsn></RtrInf>` : "") +
    `</TxDtls></NtryDtls>`;
}

/** A status of a report. */
interface ReportedStatus {
  /** `ORGNLEndToEndId`; absent: the status is that of the whole file. */
  end_to_end_id?: string;
  status: string;
  reason?: string;
}

/** Writes a status report (pain.002) about a file. */
export function statusReport(id: string, file_id: string, statuses: ReportedStatus[]): string {
  const reason = ({ reason }: ReportedStatus) =>
    reason ? `<StsRsnInf><Rsn><Cd>${reason}</Cd></Rsn></StsRsnInf>` : "";
  const group = statuses.filter(({ end_to_end_id }) => end_to_end_id === undefined);
  const single = statuses.filter(({ end_to_end_id }) => end_to_end_id !== undefined);
  return `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"><CstmrPmtStsRpt>
<GrpHdr><MsgId>${id}</MsgId><CreDtTm>2026-11-24T20:00:00Z</CreDtTm></GrpHdr>
<OrgnlGrpInfAndSts><OrgnlMsgId>${file_id}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>
${
    group.map((each) => `<GrpSts>${each.status}</GrpSts>${reason(each)}`).join("")
  }</OrgnlGrpInfAndSts>
${
    single.length === 0
      ? ""
      : `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file_id}-1</OrgnlPmtInfId>${
        single.map((each) =>
          `<TxInfAndSts><OrgnlEndToEndId>${each.end_to_end_id}</OrgnlEndToEndId>` +
          `<TxSts>${each.status}</TxSts>${reason(each)}</TxInfAndSts>`
        ).join("")
      }</OrgnlPmtInfAndSts>`
  }
</CstmrPmtStsRpt></Document>
`;
}

function money(amount_minor: number, currency: string): string {
  const digits = String(Math.abs(amount_minor)).padStart(3, "0");
  return `<Amt Ccy="${currency}">${digits.slice(0, -2)}.${digits.slice(-2)}</Amt>` +
    `<CdtDbtInd>${amount_minor < 0 ? "DBIT" : "CRDT"}</CdtDbtInd>`;
}
