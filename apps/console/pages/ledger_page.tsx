/** The ledger entries of all payments and transfers, by account and currency. */

import type { LedgerEntry } from "../../../packages/client/mod.ts";
import { ACCOUNT_TEXTS, ACCOUNTS } from "../data/accounts.ts";
import { call } from "../data/calls.ts";
import { Crumb } from "../parts/crumb.tsx";
import type { Filter } from "../parts/filters.tsx";
import { ListPage } from "../parts/list_page.tsx";
import { ListTable } from "../parts/list_table.tsx";
import { Mention } from "../parts/mention.tsx";
import { href } from "../data/route.ts";
import { Money, Time, TimeColumn } from "../parts/text.tsx";
import { label } from "../data/words.ts";

const FILTERS: readonly Filter[] = [
  {
    name: "account",
    label: "Account",
    options: ACCOUNTS.map((account) => [account, label(account)]),
  },
  { name: "currency", label: "Currency", placeholder: "EUR" },
  { name: "payment_id", label: "Payment", placeholder: "pay_…" },
  { name: "transfer_id", label: "Transfer", placeholder: "tr_…" },
  { name: "transaction_id", label: "Transaction", placeholder: "txn_…" },
];

/** The columns of the file. */
const COLUMNS = [
  "id",
  "created_at",
  "transaction_id",
  "account",
  "direction",
  "amount_decimal",
  "currency",
  "amount_minor",
  "payment_id",
  "refund_id",
  "transfer_id",
];

/** All ledger entries of the sandbox. */
export function LedgerPage({ query }: { query: Readonly<Record<string, string>> }) {
  const account = ACCOUNTS.find((name) => name === query["account"]);
  return (
    <>
      <Crumb section="balance" label="Balance" />
      <ListPage
        section="ledger"
        title={account ? `Ledger: ${label(account).toLowerCase()}` : "Ledger"}
        noun="ledger entries"
        one="ledger entry"
        query={query}
        filters={FILTERS}
        read={(params) => call("ledgerEntries", "list", params)}
        columns={COLUMNS}
        about={account && <p class="about-page">{ACCOUNT_TEXTS[account]}</p>}
        empty={<p>The first completed payment creates ledger entries.</p>}
      >
        {(entries, busy) => <EntryTable entries={entries} busy={busy} found={query["entry"]} />}
      </ListPage>
    </>
  );
}

function EntryTable({ entries, busy, found }: {
  entries: readonly LedgerEntry[];
  busy: boolean;
  /** The id of the entry to mark. */
  found: string | undefined;
}) {
  return (
    <ListTable label="Ledger entries" busy={busy}>
      <thead>
        <tr>
          <th scope="col">Account</th>
          <th scope="col" class="right">Debit</th>
          <th scope="col" class="right">Credit</th>
          <th scope="col" class="wide-only">Of</th>
          <th scope="col" class="wide-only">Transaction</th>
          <TimeColumn />
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <EntryRow key={entry.id} entry={entry} is_found={entry.id === found} />
        ))}
      </tbody>
    </ListTable>
  );
}

function EntryRow({ entry, is_found }: { entry: LedgerEntry; is_found: boolean }) {
  const { account, direction, currency, payment_id, transfer_id, transaction_id } = entry;
  const of = payment_id !== null
    ? <Mention section="payments" id={payment_id} />
    : transfer_id !== null && <Mention section="transfers" id={transfer_id} />;
  const amount = <Money amount_minor={entry.amount_minor} currency={currency} />;
  return (
    <tr title={entry.id} aria-current={is_found ? "true" : undefined}>
      <td>
        {label(account)}
        <span class="phone-only">
          {of} <Time at={entry.created_at} />
        </span>
      </td>
      <td class="right">{direction === "debit" && amount}</td>
      <td class="right">{direction === "credit" && amount}</td>
      <td class="wide-only">{of}</td>
      <td class="grow wide-only">
        <a href={href(["ledger"], { transaction_id })} title="Both sides of the transaction">
          <code>{transaction_id}</code>
        </a>
      </td>
      <td class="when wide-only">
        <Time at={entry.created_at} />
      </td>
    </tr>
  );
}
