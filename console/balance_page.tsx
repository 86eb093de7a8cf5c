/** The page "Balance": the accounts of each currency. */

import type { Balance } from "../client/mod.ts";
import { call } from "./calls.ts";
import { useLive } from "./live.ts";
import { formatMinor } from "./money.ts";
import { Empty, Reading } from "./notice.tsx";
import { Money } from "./text.tsx";

/** The balance by currency. */
export function BalancePage() {
  const live = useLive(call("balance", "retrieve"), { logged: true });
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Balance</h1>
      </div>
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
        <span class="quiet">available</span>
      </div>
      <table class="list" aria-label={`Accounts in ${currency}`}>
        <thead>
          <tr>
            <th scope="col">Account</th>
            <th scope="col" class="right">Debits</th>
            <th scope="col" class="right">Credits</th>
            <th scope="col" class="right">Balance</th>
          </tr>
        </thead>
        <tbody>
          {accounts.map(({ account, debits_minor, credits_minor, amount_minor }) => (
            <tr key={account}>
              <th scope="row">{account.replaceAll("_", " ")}</th>
              <td class="right">{formatMinor(debits_minor, currency)}</td>
              <td class="right">{formatMinor(credits_minor, currency)}</td>
              <td class="right strong">{formatMinor(amount_minor, currency)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
