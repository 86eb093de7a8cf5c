/**
 * Writes the names in lists of SQL files, from the lists of the API and the tables of statuses and
 * rails. A comment says which list it is: `in (/* open *\/ 'pending', …)`.
 */

import { METHOD_KINDS, PAYMENT_STATUSES, REFUND_STATUSES } from "../../shared/core/vocabulary.ts";
import { isCapturable, isOpenDeposit } from "../../shared/domain/payments/lifecycle.ts";
import { STATUSES } from "../../shared/domain/payment_statuses.ts";
import { LIVE_CONNECTORS, RAILS } from "../../shared/domain/rails.ts";
import { wrapped } from "./wrapped.ts";

/** Columns of a line of SQL. */
const LINE_WIDTH = 100;

const isOpen = (status: typeof PAYMENT_STATUSES[number]) => STATUSES[status].result === null;

/** The lists by their comments. Functions, because a new status or rail has no row at first. */
const LISTS: Readonly<Record<string, () => readonly string[]>> = {
  "payment statuses": () => PAYMENT_STATUSES,
  "open": () => PAYMENT_STATUSES.filter(isOpen),
  "waits for money": () => PAYMENT_STATUSES.filter((status) => isOpenDeposit({ status })),
  "waits for the payer": () =>
    PAYMENT_STATUSES.filter((status) => isOpen(status) && !isCapturable({ status })),
  "waits for its capture": () => PAYMENT_STATUSES.filter((status) => isCapturable({ status })),
  "paid": () => PAYMENT_STATUSES.filter((status) => STATUSES[status].result === "paid"),
  "refund statuses": () => REFUND_STATUSES,
  "method kinds": () => METHOD_KINDS,
  "rails with a token": () => METHOD_KINDS.filter((kind) => RAILS[kind].needs_token),
  "rails that collect": () => METHOD_KINDS.filter((kind) => RAILS[kind].collects),
  "rails of banks": () => METHOD_KINDS.filter((kind) => RAILS[kind].bank !== null),
  "connectors": () => LIVE_CONNECTORS,
};

/**
 * Returns the SQL with the names in its lists. One that begins a line can have several lines.
 * @throws {Error} if there is no list, or an unknown one
 */
export function replaceNameLists(sql: string): string {
  let lists = 0;
  const text = sql.replaceAll(
    /^(.*)\/\* ([\w ]+) \*\/ '[^)\]]*'/gm,
    (_, before: string, name: string) => {
      const list = LISTS[name];
      if (list === undefined) throw new Error(`there is no list "${name}"`);
      lists++;
      const words = `/* ${name} */ '${list().join("', '")}'`.split(/(?<=,) /);
      const width = before.trim() === "" ? LINE_WIDTH - before.length : Infinity;
      return before + wrapped(words, width).join(`\n${before}`);
    },
  );
  if (lists === 0) throw new Error("the lists are missing");
  return text;
}
