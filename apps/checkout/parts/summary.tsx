/** The merchant, the price and the time limit, beside every view of a checkout. */

import { useLayoutEffect } from "preact/hooks";
import type { CheckoutPage } from "../../../shared/schema/checkout_page.ts";
import { useWords } from "../data/words.ts";

export function Summary({ page }: { page: CheckoutPage }) {
  const { say, money, time } = useWords();
  const { merchant, amount_minor, currency, description, expires_at, status } = page;
  useLayoutEffect(() => paint(merchant.color), [merchant.color]);
  return (
    <div class="summary">
      <p class="merchant">
        {merchant.logo
          ? <img src={merchant.logo} alt="" />
          : <span class="initial" aria-hidden="true">{[...merchant.name][0]?.toUpperCase()}</span>}
        <span>{merchant.name}</span>
      </p>
      <p class="amount">{money(amount_minor, currency)}</p>
      {amount_minor === 0 && <p>{say("nothing_taken")}</p>}
      {description && <p class="description">{description}</p>}
      {status === "open" && expires_at && (
        <p class="limit">
          {say("time_limit", { time: time(expires_at) })}
        </p>
      )}
    </div>
  );
}

/** Gives buttons the colour of the merchant, which is dark enough for white text. */
function paint(color: string | null): void {
  const { style } = document.documentElement;
  style.setProperty("--brand", color);
  style.setProperty("--on-brand", color && "#fff");
}
