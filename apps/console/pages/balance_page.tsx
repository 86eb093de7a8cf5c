/** The page "Balance": the accounts of each currency. */

import type { Balance } from "../../../packages/client/mod.ts";
import { ACCOUNT_TEXTS } from "../data/accounts.ts";
import { call } from "../data/calls.ts";
import { LinkedRow } from "../parts/linked_row.tsx";
import { ListTable } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { formatMinor } from "../data/money.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { Money } from "../parts/text.tsx";
import { label } from "../data/words.ts";

/** The balance by currency. */
export function BalancePage() {
  const live = useLive(call("balance", "retrieve"), { logged: true });
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Balance</h1>
        <a class="button" href={href(["ledger"])}>All ledger entries</a>
      </div>
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
      <ListTable label={`Accounts in ${currency}`}>
        <thead>
          <tr>
            <th scope="col">Account</th>
            <th scope="col" class="right wide-only">Debits</th>
            <th scope="col" class="right wide-only">Credits</th>
            <th scope="col" class="right">Balance</th>
          </tr>
        </thead>
        <tbody>
          {accounts.map(({ account, debits_minor, credits_minor, amount_minor }) => (
            <LinkedRow key={account}>
              <th scope="row">
                <a class="row-link" href={href(["ledger"], { account, currency })}>
                  {label(account)}
                </a>
                <p class="quiet">{ACCOUNT_TEXTS[account]}</p>
              </th>
              <td class="right wide-only">{formatMinor(debits_minor, currency)}</td>
              <td class="right wide-only">{formatMinor(credits_minor, currency)}</td>
              <td class="right strong">{formatMinor(amount_minor, currency)}</td>
            </LinkedRow>
          ))}
        </tbody>
      </ListTable>
    </section>
  );
}
