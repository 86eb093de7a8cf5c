/** The page "Balance": the accounts of each currency. */

import type { Balance } from "../../../packages/client/mod.ts";
import { ACCOUNT_TEXTS, label } from "../data/words.ts";
import { call } from "../data/calls.ts";
import { type Column, ListTable } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { Title } from "../parts/page_parts.tsx";
import { href } from "../data/route.ts";
import { Money } from "../parts/text.tsx";

export function BalancePage() {
  const live = useLive(call("balance", "retrieve"), { logged: true });
  return (
    <>
      <Title title="Balance">
        <a class="button" href={href(["ledger"])}>All ledger entries</a>
      </Title>
      <p class="about-page">
        The ledger books each movement of money twice: as a debit of one account and as a credit of
        another. The balance of an account is its credits less its debits, so the balances of a
        currency add up to zero. An account leads to its entries.
      </p>
      <Reading label="balance" live={live} rows={4}>
        {({ balances }) =>
          balances.length === 0
            ? (
              <Empty title="No money has moved">
                <p>The first completed payment creates ledger entries.</p>
              </Empty>
            )
            : [...Map.groupBy(balances, ({ currency }) => currency)].map(([currency, accounts]) => (
              <CurrencyBalance key={currency} currency={currency} accounts={accounts} />
            ))}
      </Reading>
    </>
  );
}

function CurrencyBalance(props: { currency: string; accounts: Balance["balances"] }) {
  const { currency, accounts } = props;
  const available = accounts.find(({ account }) => account === "available")?.amount_minor ?? 0;
  return (
    <section class="card" aria-label={`Balance in ${currency}`}>
      <div class="card-title">
        <h2>
          <Money amount_minor={available} currency={currency} class="large" />
        </h2>
      </div>
      <ListTable
        label={`Accounts in ${currency}`}
        items={accounts.map((account) => ({ ...account, id: account.account }))}
        columns={COLUMNS}
      />
    </section>
  );
}

const COLUMNS: readonly Column<Balance["balances"][number] & { id: string }>[] = [
  {
    heading: "Account",
    is_name: true,
    cell: ({ account, currency }) => (
      <>
        <a class="row-link" href={href(["ledger"], { account, currency })}>{label(account)}</a>
        <p class="quiet">{ACCOUNT_TEXTS[account]}</p>
      </>
    ),
  },
  {
    heading: "Debits",
    class: "right from-600",
    cell: ({ debits_minor, currency }) => formatMinor(debits_minor, currency),
  },
  {
    heading: "Credits",
    class: "right from-600",
    cell: ({ credits_minor, currency }) => formatMinor(credits_minor, currency),
  },
  {
    heading: "Balance",
    class: "right strong",
    cell: ({ amount_minor, currency }) => formatMinor(amount_minor, currency),
  },
];
