/**
 * Reads pain.002, the statuses of what we sent, and camt.029, the results of recalls. Both tell of
 * a group, of a batch, or of one transaction.
 */

import { childOf, childrenOf, textOf, type XmlElement } from "./bank_xml_reader.ts";
import { readReason } from "./read_details.ts";
import type { PayeeCheck } from "../../schema/bank_account.ts";
import { keep, type MessageReader, type Sink } from "./read_message.ts";
import type { StatusRecord, StatusResult } from "./read_records.ts";

/**
 * The results of the verification of a payee by their codes. The code of a file, RVCM, only says
 * that they differ. Source: ISO 20022 external code sets; EPC verification of payee.
 */
export const PAYEE_CHECKS_BY_CODE: ReadonlyMap<string, PayeeCheck> = new Map([
  ["RCVC", "match"],
  ["RVMC", "close_match"],
  ["RVNM", "no_match"],
  ["RVNA", "unavailable"],
  ["PDNG", "pending"],
]);

/** Statuses by their result. Source: as above. */
const CODES: Readonly<Record<StatusResult, string>> = {
  accepted: "ACCP ACSP ACSC ACCC ACTC ACWC ACWP ACFC ACPD ACIS ACCR CNCL",
  rejected: "RJCT CANC RJCR",
  pending: "RCVD PATC PRES ACFW BLCK PDCR UWFW RVNC",
  partial: "PART PACR PECR RVCM",
  payee_check: [...PAYEE_CHECKS_BY_CODE.keys()].join(" "),
};
const RESULTS: ReadonlyMap<string, StatusResult> = new Map(
  (Object.keys(CODES) as StatusResult[]).flatMap((result) =>
    CODES[result].split(" ").map((code) => [code, result])
  ),
);

/** The elements inside of a message that are read one by one. */
export const STATUS_CONTAINERS: ReadonlySet<string> = new Set(["OrgnlPmtInfAndSts", "CxlDtls"]);

export class StatusReader implements MessageReader {
  readonly #record: StatusRecord["record"];
  readonly #sink: Sink;
  /** `Cxl` in the names of camt.029. */
  readonly #infix: "" | "Cxl";
  #message_id: string | null = null;
  /** The status of the group, and that of the present batch. */
  #group_code: string | null = null;
  #batch_code: string | null = null;
  #batch: XmlElement | null = null;
  /** Whether the status of the batch is out: it stands before those of the transactions. */
  #is_batch_read = false;
  /** The result of an investigation, which stands before the message that it is about. */
  #conclusion: XmlElement | null = null;
  #statuses = 0;
  /** The messages that an investigation is about. */
  #messages = 0;

  constructor(record: StatusRecord["record"], sink: Sink) {
    this.#record = record;
    this.#sink = sink;
    this.#infix = record === "status" ? "" : "Cxl";
  }

  start(place: XmlElement): void {
    if (place.element === "CxlDtls") {
      // Each is about a message of its own.
      this.#message_id = null;
      this.#group_code = null;
      this.#messages++;
    } else if (place.element === "OrgnlPmtInfAndSts") {
      this.#batch = place;
      this.#is_batch_read = false;
    }
  }

  take(element: XmlElement): void {
    if (element.element === "OrgnlGrpInfAndSts") {
      this.#message_id = textOf(element, "OrgnlMsgId");
      this.#group_code = textOf(element, `Grp${this.#infix}Sts`);
      this.#add("group", element, this.#group_code);
    } else if (element.element === "TxInfAndSts") {
      this.#endBatchHead();
      const code = textOf(element, `Tx${this.#infix}Sts`) ?? this.#codeAround(element);
      this.#add("transaction", element, code);
    } else if (element.element === "Sts" && this.#batch === null) {
      this.#conclusion = element;
    } else if (this.#batch !== null && !this.#is_batch_read) {
      keep(this.#batch, element);
    }
  }

  end(place: XmlElement): void {
    if (place.element === "OrgnlPmtInfAndSts") {
      this.#endBatchHead();
      this.#batch = null;
      this.#batch_code = null;
    } else if (place.element !== "CxlDtls") {
      const conclusion = this.#conclusion;
      if (this.#messages > 1) this.#message_id = null;
      if (conclusion) this.#add("group", conclusion, this.#conclusionCode());
      if (this.#statuses === 0) this.#sink.warn(place, "the file has no status");
    }
  }

  #endBatchHead(): void {
    if (this.#batch === null || this.#is_batch_read) return;
    this.#is_batch_read = true;
    this.#batch_code = textOf(this.#batch, `PmtInf${this.#infix}Sts`);
    this.#add("payment_information", this.#batch, this.#batch_code);
  }

  /**
   * The status around a transaction that has none: banks then write only its reason. A transaction
   * of a report without a reason tells nothing more than its batch, and one of a recall with a
   * reason is not given back.
   */
  #codeAround(transaction: XmlElement): string | null {
    const has_reason = childOf(transaction, `${this.#infix}StsRsnInf`) !== null;
    const code = this.#batch_code ?? this.#group_code ?? this.#conclusionCode();
    if (this.#record === "status") return has_reason ? code : null;
    return has_reason && RESULTS.get(code ?? "") === "accepted" ? null : code;
  }

  #conclusionCode(): string | null {
    return this.#conclusion && textOf(this.#conclusion, "Conf");
  }

  #add(level: StatusRecord["level"], element: XmlElement, code: string | null): void {
    if (code === null) return;
    this.#statuses++;
    const result = RESULTS.get(code);
    if (result === undefined) this.#sink.warn(element, "the status is not known: it is pending");
    this.#sink.add({
      record: this.#record,
      line: element.line,
      level,
      code,
      result: result ?? "pending",
      reasons: childrenOf(element, `${this.#infix}StsRsnInf`).map((info) => readReason(info)!),
      original_message_id: textOf(element, "OrgnlGrpInf", "OrgnlMsgId") ?? this.#message_id,
      payment_information_id: this.#batch &&
        (textOf(this.#batch, "OrgnlPmtInfId") ?? textOf(this.#batch, "OrgnlPmtInfCxlId")),
      instruction_id: textOf(element, "OrgnlInstrId"),
      end_to_end_id: textOf(element, "OrgnlEndToEndId"),
      uetr: textOf(element, "OrgnlUETR"),
    });
  }
}
