/**
 * Writes the names in lists of SQL files, from the lists of the API and the tables of statuses and
 * rails. A comment says which list it is: `in (/* open *\/ 'pending', …)`.
 */

import { METHOD_KINDS, PAYMENT_STATUSES, REFUND_STATUSES } from "../../shared/core/vocabulary.ts";
import { advancesOf, isCapturable, isOpenDeposit } from "../../shared/domain/payments/lifecycle.ts";
import { STATUSES, type WaitsFor } from "../../shared/domain/payment_statuses.ts";
import { LIVE_CONNECTORS, RAILS } from "../../shared/domain/rails.ts";
import { wrapped } from "./wrapped.ts";

/** Columns of a line of SQL. */
const LINE_WIDTH = 100;

type Status = typeof PAYMENT_STATUSES[number];

const isOpen = (status: Status) => STATUSES[status].result === null;
const waitingFor = (...steps: WaitsFor[]) =>
  PAYMENT_STATUSES.filter((status) => steps.some((step) => STATUSES[status].waits_for === step));
const withResult = (result: "paid" | "unpaid") =>
  PAYMENT_STATUSES.filter((status) => STATUSES[status].result === result);

/** The moves between events of a payment. Only one at an address shows that it is `pending`. */
function movesOfPayments(): string[] {
  const address = {
    ...{ status: "pending", method_kind: "stablecoin", capture: "automatic" } as const,
    ...{ amount_minor: 1, amount_received: 0 },
    ...{ amount_captured: 0, amount_refunded: 0, amount_refunding: 0 },
  };
  return [
    ["created", "pending"],
    ...advancesOf(address).map((to) => ["pending", to]),
    ...PAYMENT_STATUSES.flatMap((from) =>
      Object.keys(STATUSES[from].moves).map((to) => [from === "pending" ? "created" : from, to])
    ),
  ].map(([from, to]) => `payment.${from}>${to}`);
}

/** The lists by their comments. Functions, because a new status or rail has no row at first. */
const LISTS: Readonly<Record<string, () => readonly string[]>> = {
  "payment statuses": () => PAYMENT_STATUSES,
  "open": () => PAYMENT_STATUSES.filter(isOpen),
  "waits for money": () => PAYMENT_STATUSES.filter((status) => isOpenDeposit({ status })),
  "waits for the payer": () =>
    PAYMENT_STATUSES.filter((status) => isOpen(status) && !isCapturable({ status })),
  "waits for money or an authentication": () => waitingFor("money", "authentication"),
  "waits for its result": () => waitingFor("result"),
  "waits for its capture": () => waitingFor("capture"),
  "paid": () => withResult("paid"),
  "unpaid": () => withResult("unpaid"),
  "moves of payments": movesOfPayments,
  // A bank can return a payment with refunds.
  "events without money": () =>
    PAYMENT_STATUSES.filter((status) => STATUSES[status].result !== "paid" && status !== "failed")
      .map((status) => `payment.${status}`),
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
