/**
 * Reads a file of a bank as a stream of records: camt.052, .053 and .054 of all versions, pain.002
 * and camt.029. A schema is not checked, because many real files fail their own. Whatever is used
 * is checked, and everything unusual beside it is a warning.
 *
 * The memory does not grow with the file. A wrong sum shows only at the end of its statement, so
 * the caller applies the records of a file in one transaction, and none of a file that is refused.
 */

import { BankFileError } from "./bank_file_error.ts";
import { readXml, textOf, type XmlElement, type XmlReading } from "./bank_xml_reader.ts";
import type { OwnAccount } from "./own_account.ts";
import type { MessageReader, Sink } from "./read_message.ts";
import type { BankRecord, MessageKind } from "./read_records.ts";
import { STATEMENT_CONTAINERS, StatementReader } from "./read_statement.ts";
import { STATUS_CONTAINERS, StatusReader } from "./read_status.ts";

const KINDS: ReadonlyMap<string, MessageKind> = new Map([
  ["BkToCstmrAcctRpt", "camt.052"],
  ["BkToCstmrStmt", "camt.053"],
  ["BkToCstmrDbtCdtNtfctn", "camt.054"],
  ["CstmrPmtStsRpt", "pain.002"],
  ["RsltnOfInvstgtn", "camt.029"],
]);

interface OpenMessage {
  place: XmlElement;
  reader: MessageReader;
  has_header: boolean;
  version: string | null;
}

/**
 * Reads a file.
 *
 * @param bytes the file in pieces of any size
 * @param bytes_max larger files are refused
 * @param own the account whose statements are read; without it all of them are
 * @throws {BankFileError} if the file is refused
 */
export async function* readBankFile(
  bytes: AsyncIterable<Uint8Array>,
  bytes_max: number,
  own: OwnAccount | null = null,
): AsyncGenerator<BankRecord> {
  const file = new BankFileReader(own);
  for await (const parts of readXml({ bytes, bytes_max, isContainer })) {
    for (const part of parts) {
      if (part.part === "start") file.start(part.place, part.namespace);
      else if (part.part === "whole") file.take(part.element);
      else file.end(part.place);
    }
    yield* file.records.splice(0);
  }
}

/** Finds the messages of a file, also in an envelope. */
class BankFileReader {
  readonly records: BankRecord[] = [];
  readonly #own: OwnAccount | null;
  #namespace: string | null = null;
  #message: OpenMessage | null = null;
  #parents: string[] = [];
  #messages = 0;
  readonly #sink: Sink = {
    add: (record) => this.records.push(record),
    warn: ({ line, element }, message) =>
      this.records.push({ record: "warning", line, element, message }),
  };

  constructor(own: OwnAccount | null) {
    this.#own = own;
  }

  start(place: XmlElement, namespace: string | null): void {
    this.#namespace = namespace ?? this.#namespace;
    if (this.#message !== null) {
      this.#addHeader(null);
      this.#message.reader.start(place);
      return;
    }
    const kind = kindOf(place.element);
    if (kind !== null) {
      this.#messages++;
      this.#message = {
        place,
        reader: readerOf(kind, this.#sink, this.#own),
        has_header: false,
        version: /\.\d{3}\.(\d{2})\b/.exec(this.#namespace ?? "")?.[1] ?? null,
      };
    } else if (this.#parents.at(-1) === "Document") {
      throw new BankFileError(
        `not one of the messages that banks send: ${[...KINDS.values()].join(", ")}`,
        place,
      );
    }
    this.#parents.push(place.element);
  }

  take(element: XmlElement): void {
    if (this.#message === null) return;
    this.#addHeader(/^(GrpHdr|Assgnmt)$/.test(element.element) ? element : null);
    this.#message.reader.take(element);
  }

  end(place: XmlElement): void {
    this.#message?.reader.end(place);
    if (place === this.#message?.place) this.#message = null;
    if (this.#message === null) this.#parents.pop();
    if (this.#parents.length === 0 && this.#messages === 0) {
      throw new BankFileError("the file has no message of a bank", place);
    }
  }

  /** Adds the record of the message, with its header if that comes first, as it has to. */
  #addHeader(header: XmlElement | null): void {
    const message = this.#message!;
    if (message.has_header) return;
    message.has_header = true;
    const { place, version } = message;
    this.#sink.add({
      record: "message",
      line: place.line,
      kind: kindOf(place.element)!,
      version,
      message_id: header && (textOf(header, "MsgId") ?? textOf(header, "Id")),
      created_at: header && textOf(header, "CreDtTm"),
    });
  }
}

/** Everything around a message is a container, so that envelopes of any form are read. */
const isContainer: XmlReading["isContainer"] = (name, containers) => {
  const message = containers.find(({ element }) => kindOf(element) !== null);
  if (message === undefined) return true;
  return containersOf(kindOf(message.element)!).has(name);
};

function containersOf(kind: MessageKind): ReadonlySet<string> {
  return isStatusKind(kind) ? STATUS_CONTAINERS : STATEMENT_CONTAINERS;
}

function readerOf(kind: MessageKind, sink: Sink, own: OwnAccount | null): MessageReader {
  if (!isStatusKind(kind)) return new StatementReader(kind, sink, own);
  return new StatusReader(kind === "pain.002" ? "status" : "cancellation", sink);
}

function isStatusKind(kind: MessageKind): boolean {
  return kind === "pain.002" || kind === "camt.029";
}

/** The kind of a message by its element, which has a version in its name in version 1. */
function kindOf(name: string): MessageKind | null {
  return KINDS.get(name.at(-3) === "V" ? name.slice(0, -3) : name) ?? null;
}
