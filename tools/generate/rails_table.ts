/** The table of the rails in contract §2. */

import { METHOD_KINDS } from "../../shared/core/vocabulary.ts";
import { type Rail, RAILS } from "../../shared/domain/rails.ts";
import { renderTable } from "./markdown_table.ts";

const SENDS_TO: Record<NonNullable<Rail["payer_sends"]>["to"], string> = {
  account: "the payer sends a bank transfer",
  address: "the payer sends to an address",
};

const REFUND_TO: Record<Rail["refund_to"], string> = {
  payer: "back to where the money came from",
  account: "back, or to the IBAN in `destination`",
  wallet: "back, or to the wallet in `destination`",
};

export function renderRailsTable(): string {
  const head = [
    "`method_kind`",
    "Currency",
    "Without an instrument",
    "A refund goes",
    "A payment can be",
  ];
  return renderTable(head, METHOD_KINDS.map((kind) => [kind, ...cellsOf(RAILS[kind])])).join("\n");
}

function cellsOf(rail: Rail): string[] {
  const { is_for_stablecoins, only_currency, payer_sends, refund_to } = rail;
  const abilities = [
    ...rail.has_manual_capture ? ["captured later"] : [],
    ...rail.collects ? ["collected under a mandate"] : [],
    ...rail.returns === null ? [] : ["returned by a bank"],
  ];
  return [
    is_for_stablecoins
      ? "stablecoins; with a test key all"
      : only_currency ?? "all but stablecoins",
    payer_sends ? SENDS_TO[payer_sends.to] : "`pending` until an advance",
    REFUND_TO[refund_to],
    abilities.join(", "),
  ];
}
