/**
 * The ledger transactions of a payment or a transfer as T-accounts: debits on the left, credits on
 * the right.
 */

import type { LedgerEntry } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { ReadingList } from "./notice.tsx";
import { TableBox } from "./table_box.tsx";
import { Time } from "./text.tsx";
import { label } from "../data/words.ts";

/** The payment or the transfer whose records a list shows, as the API filters by it. */
export type Subject = { payment_id: string } | { transfer_id: string };

/** Names of ledger transactions by the debited and the credited account (contract §3). */
const TRANSACTION_NAMES: Readonly<Record<string, string>> = {
  "processor available": "Capture",
  "available processor": "Capture reversed",
  "available chargebacks": "Chargeback",
  "chargebacks available": "Chargeback reversed",
  "available in_transit": "Transfer",
  "in_transit external": "Transfer completed",
  "in_transit available": "Transfer reversed",
  "external available": "Transfer returned",
  "processor unapplied": "Unmatched",
  "unapplied processor": "Unmatched reversed",
  "reserve processor": "Reserve",
  "processor reserve": "Reserve released",
};
const REFUND_NAMES: Readonly<Record<string, string>> = {
  "available processor": "Refund",
  "processor available": "Refund reversed",
};

/** The ledger transactions, newest first. */
export function Ledger({ of }: { of: Subject }) {
  const live = useLive(call("ledgerEntries", "list", { ...of, limit: MAX_PAGE }));
  return (
    <ReadingList label="ledger entries" live={live} none="No money has moved">
      {(entries) => (
        <div class="transactions">
          {transactionsOf(entries).map((entries) => (
            <LedgerTransaction key={entries[0]!.transaction_id} entries={entries} />
          ))}
        </div>
      )}
    </ReadingList>
  );
}

/** A ledger transaction: its entries, debits first, and both sums. */
function LedgerTransaction({ entries }: { entries: readonly LedgerEntry[] }) {
  const { currency, created_at, transaction_id } = entries[0]!;
  const sum = (direction: LedgerEntry["direction"]) =>
    formatMinor(
      entries.reduce(
        (total, entry) => entry.direction === direction ? total + entry.amount_minor : total,
        0,
      ),
      currency,
    );
  const debits_first = entries.toSorted((a, b) => b.direction.localeCompare(a.direction));
  return (
    <TableBox label={nameOf(entries)}>
      <table class="ledger">
        <caption>
          <span class="ledger-name">{nameOf(entries)}</span>
          <code>{transaction_id}</code>
          <Time at={created_at} />
        </caption>
        <thead>
          <tr>
            <th scope="col">Account</th>
            <th scope="col" class="right">Debit</th>
            <th scope="col" class="right">Credit</th>
          </tr>
        </thead>
        <tbody>
          {debits_first.map((entry) => {
            const amount = formatMinor(entry.amount_minor, currency);
            return (
              <tr key={entry.id} class={entry.direction}>
                <th scope="row">{label(entry.account)}</th>
                <td class="right">{entry.direction === "debit" ? amount : ""}</td>
                <td class="right">{entry.direction === "credit" ? amount : ""}</td>
              </tr>
            );
          })}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{currency}</th>
            <td class="right">{sum("debit")}</td>
            <td class="right">{sum("credit")}</td>
          </tr>
        </tfoot>
      </table>
    </TableBox>
  );
}

/** Groups the entries by transaction, in the order of the list. */
function transactionsOf(entries: readonly LedgerEntry[]): LedgerEntry[][] {
  return [...Map.groupBy(entries, ({ transaction_id }) => transaction_id).values()];
}

function nameOf(entries: readonly LedgerEntry[]): string {
  const accountOf = (side: LedgerEntry["direction"]) =>
    entries.find(({ direction }) => direction === side)?.account;
  const accounts = `${accountOf("debit")} ${accountOf("credit")}`;
  // A refund has the accounts of a reversed capture, and a refund that failed those of a capture.
  const names = entries[0]!.refund_id === null ? TRANSACTION_NAMES : REFUND_NAMES;
  return names[accounts] ?? label("transaction");
}
