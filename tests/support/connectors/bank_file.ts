/** Small files of a bank, and their records. */

import type { OwnAccount } from "../../../shared/connectors/bank/own_account.ts";
import { readBankFile } from "../../../shared/connectors/bank/read_bank_file.ts";
import type {
  BankRecord,
  DetailRecord,
  EntryRecord,
} from "../../../shared/connectors/bank/read_records.ts";

/** The account of the files. */
export const ACCOUNT = "DE02120300000000202051";

const MESSAGES = {
  "052": ["BkToCstmrAcctRpt", "Rpt"],
  "053": ["BkToCstmrStmt", "Stmt"],
  "054": ["BkToCstmrDbtCdtNtfctn", "Ntfctn"],
} as const;

/** Members of a written statement. */
interface WrittenStatement {
  kind?: keyof typeof MESSAGES;
  /** The content of `Acct`. */
  account?: string;
  /** XML before the entries, such as balances. */
  head?: string;
  entries?: string;
}

/** Writes a message with statements. */
export function writeFile(
  statements: readonly WrittenStatement[],
  { kind = "053", version = "08" }: { kind?: keyof typeof MESSAGES; version?: string } = {},
): string {
  const [message, element] = MESSAGES[kind];
  const texts = statements.map((
    { account = `<Id><IBAN>${ACCOUNT}</IBAN></Id><Ccy>EUR</Ccy>`, head = "", entries = "" },
    at,
  ) => `<${element}><Id>S-${at}</Id><Acct>${account}</Acct>${head}\n${entries}</${element}>`);
  return `<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.${kind}.001.${version}"><${message}>
<GrpHdr><MsgId>M-1</MsgId><CreDtTm>2026-11-20T20:00:00+01:00</CreDtTm></GrpHdr>
${texts.join("\n")}
</${message}></Document>`;
}

/**
 * Writes an entry: a booked credit of 10.00 EUR unless the members tell something else. They are
 * the content of its elements, and null leaves one out. An amount is written like `10.00 EUR`.
 */
export function writeEntry(members: Record<string, string | null> = {}): string {
  return writeElement("Ntry", {
    Amt: "10.00 EUR",
    CdtDbtInd: "CRDT",
    RvslInd: null,
    Sts: "<Cd>BOOK</Cd>",
    BookgDt: "<Dt>2026-11-20</Dt>",
    ValDt: "<Dt>2026-11-20</Dt>",
    ...members,
  }) + "\n";
}

/** Writes a detail of 10.00 EUR. */
export function writeDetail(members: Record<string, string | null> = {}): string {
  return writeElement("TxDtls", { Refs: null, Amt: "10.00 EUR", ...members });
}

/** Writes an element with elements. */
function writeElement(name: string, members: Record<string, string | null>): string {
  const elements = Object.entries(members).filter(([, content]) => content !== null)
    .map(([name, content]) => {
      const [, amount, currency] = /^(\S+) ([A-Z]{3}|[a-z]{3})$/.exec(content!) ?? [];
      return currency
        ? `<${name} Ccy="${currency}">${amount}</${name}>`
        : `<${name}>${content}</${name}>`;
    });
  return `<${name}>${elements.join("")}</${name}>`;
}

/** Writes a balance, of the day of the entries unless another one is given. */
export function writeBalance(
  code: string,
  amount: string,
  direction = "CRDT",
  day = "2026-11-20",
): string {
  const sign = direction && `<CdtDbtInd>${direction}</CdtDbtInd>`;
  return `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${amount}</Amt>` +
    `${sign}<Dt><Dt>${day}</Dt></Dt></Bal>\n`;
}

/** Reads a file that arrives in pieces of a size, or the statements of one account in it. */
export async function readFile(
  file: string | Uint8Array<ArrayBuffer>,
  { piece_bytes = 1000, bytes_max = 10_000_000, own }: {
    piece_bytes?: number;
    bytes_max?: number;
    own?: OwnAccount;
  } = {},
): Promise<BankRecord[]> {
  const bytes = typeof file === "string" ? new TextEncoder().encode(file) : file;
  return await Array.fromAsync(readBankFile(pieces(bytes, piece_bytes), bytes_max, own));
}

/** Returns the entries of a file, each with its details. */
export async function readEntries(
  file: string,
): Promise<(EntryRecord & { details: DetailRecord[] })[]> {
  const entries: (EntryRecord & { details: DetailRecord[] })[] = [];
  for (const record of await readFile(file)) {
    if (record.record === "entry") entries.push({ ...record, details: [] });
    if (record.record === "detail") entries.at(-1)!.details.push(record);
  }
  return entries;
}

/** Returns the warnings of a file. */
export async function readWarnings(file: string): Promise<string[]> {
  return (await readFile(file)).flatMap((record) =>
    record.record === "warning" ? [record.message] : []
  );
}

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** A status in a report: the id, or ids by element, the code and its reason. */
export type Told = [id: string | Record<string, string>, code?: string | null, reason?: string];
/** A batch in a report, and its orders. */
type ToldBatch = [batch: Told, ...orders: Told[]];

/** Writes a report about orders (pain.002), each status in a line of its own. */
export function writeReport(file: Told | null, ...batches: ToldBatch[]): string {
  const statuses = writeStatuses("Sts", "StsRsnInf", file, batches);
  return `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"><CstmrPmtStsRpt>` +
    `<GrpHdr><MsgId>M</MsgId></GrpHdr>${statuses}</CstmrPmtStsRpt></Document>`;
}

/** Writes the reply to a recall (camt.029). Null: it has no conclusion. */
export function writeRecallReply(
  conclusion: string | null,
  file: Told | null,
  ...batches: ToldBatch[]
): string {
  const confirmed = conclusion === null ? "" : `<Sts><Conf>${conclusion}</Conf></Sts>`;
  return `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.029.001.09"><RsltnOfInvstgtn>` +
    `<Assgnmt><Id>CASE-1</Id><CreDtTm>2026-11-20T20:00:00</CreDtTm></Assgnmt>${confirmed}` +
    `<CxlDtls>${writeStatuses("CxlSts", "CxlStsRsnInf", file, batches)}</CxlDtls>` +
    "</RsltnOfInvstgtn></Document>";
}

function writeStatuses(
  suffix: "Sts" | "CxlSts",
  reason_name: string,
  file: Told | null,
  batches: readonly ToldBatch[],
): string {
  const written = (level: string, id_name: string, [id, code, reason]: Told): string => {
    const ids = typeof id === "string" ? { [id_name]: id } : id;
    const reasons = reason?.startsWith("<") ? reason : `<Rsn><Cd>${reason}</Cd></Rsn>`;
    return Object.entries(ids).map(([name, text]) => `<${name}>${text}</${name}>`).join("") +
      (code ? `<${level}${suffix}>${code}</${level}${suffix}>` : "") +
      (reason ? `<${reason_name}>${reasons}</${reason_name}>` : "");
  };
  const group = file === null
    ? ""
    : `\n<OrgnlGrpInfAndSts>${written("Grp", "OrgnlMsgId", file)}</OrgnlGrpInfAndSts>`;
  return group + batches.map(([batch, ...orders]) => {
    const statuses = orders.map((order) =>
      `\n<TxInfAndSts>${written("Tx", "OrgnlEndToEndId", order)}</TxInfAndSts>`
    );
    const own = written("PmtInf", "OrgnlPmtInfId", batch);
    return `\n<OrgnlPmtInfAndSts>${own}${statuses.join("")}</OrgnlPmtInfAndSts>`;
  }).join("");
}
