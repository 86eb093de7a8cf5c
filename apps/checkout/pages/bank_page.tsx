/**
 * The bank step of a sandbox payment (3-D Secure): the payer sees the payment, and approves or
 * declines it. Then the page goes back to the checkout from which they have come, or to the shop.
 */

import { useEffect, useState } from "preact/hooks";
import type { Challenge } from "../../../shared/schema/challenge.ts";
import { callChallenge, Refused } from "../data/api.ts";
import { checkoutBehind } from "../data/visit.ts";
import { useWords, useWordsOf } from "../data/words.ts";
import type { Trouble } from "../data/flow.ts";
import { Frame, Title } from "../parts/panel.tsx";
import { Back, NoPage, TroubleNotice } from "./checkout_page.tsx";

/** Time until the next read without a connection. */
const AGAIN_MS = 5_000;

export function BankPage({ token }: { token: string }) {
  const { say } = useWords();
  const [challenge, setChallenge] = useState<Challenge | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [is_busy, setBusy] = useState(false);
  useWordsOf(challenge && { ...challenge, locale: null });

  const call = async (result?: "success" | "failure") => {
    if (is_busy) return;
    setBusy(true);
    setTrouble(null);
    try {
      const known = await callChallenge(token, result);
      setChallenge(known);
      if (result) leave(known);
    } catch (error) {
      const is_answer = error instanceof Refused && !error.is_passing;
      if (!is_answer) setTrouble({ kind: "offline" });
      else if (error.status === 404) setTrouble({ kind: "unknown" });
      else if (result) await call();
    }
    setBusy(false);
  };
  useEffect(() => void call(), []);
  useEffect(() => {
    if (trouble?.kind !== "offline" || challenge !== null) return;
    const timer = setTimeout(call, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [trouble]);

  if (challenge === null || trouble?.kind === "unknown") {
    return <NoPage trouble={trouble} is_test onRead={() => call()} />;
  }
  const is_asking = challenge.status === "requires_action";
  return (
    <Frame is_test>
      <div key={challenge.status}>
        <TroubleNotice trouble={trouble} />
        {is_asking
          ? <Question challenge={challenge} is_busy={is_busy} onAnswer={call} />
          : <Over challenge={challenge} />}
        <p class="hint">{say("bank_stand_in")}</p>
      </div>
    </Frame>
  );
}

/** Goes on where the payer has come from. The back button does not lead here again. */
function leave({ payment_id, return_url }: Challenge): void {
  const to = checkoutBehind(payment_id) ?? return_url;
  if (to !== null) location.replace(to);
}

function Question({ challenge, is_busy, onAnswer }: {
  challenge: Challenge;
  is_busy: boolean;
  onAnswer(result: "success" | "failure"): void;
}) {
  const { say } = useWords();
  return (
    <>
      <Title text={say("bank_title")} />
      <p>{say("bank_text")}</p>
      <Facts challenge={challenge} />
      <div class="answers">
        <button
          type="button"
          class="primary"
          aria-disabled={is_busy}
          onClick={() => onAnswer("success")}
        >
          {say("approve")}
        </button>
        <button type="button" aria-disabled={is_busy} onClick={() => onAnswer("failure")}>
          {say("decline")}
        </button>
      </div>
    </>
  );
}

function Over({ challenge }: { challenge: Challenge }) {
  const { say } = useWords();
  const { status, return_url, merchant, payment_id } = challenge;
  const is_approved = status === "completed" || status === "authorized";
  const title = is_approved
    ? "approved_title"
    : status === "declined"
    ? "declined_by_you"
    : "over_title";
  return (
    <>
      <Title text={say(title)} />
      <Facts challenge={challenge} />
      <Back to={checkoutBehind(payment_id) ?? return_url} merchant={merchant} />
    </>
  );
}

/** The payment, as the payer knows it. */
function Facts({ challenge: { merchant, amount_minor, currency, card } }: {
  challenge: Challenge;
}) {
  const { say, money } = useWords();
  return (
    <dl class="facts">
      <div>
        <dt>{say("merchant")}</dt>
        <dd>{merchant}</dd>
      </div>
      <div>
        <dt>{say("amount")}</dt>
        <dd>{money(amount_minor, currency)}</dd>
      </div>
      {card && (
        <div>
          <dt>{say("card")}</dt>
          <dd>{brandText(card.brand)} {say("card_ending", { last4: card.last4 })}</dd>
        </div>
      )}
    </dl>
  );
}

/** Names of brands that are no capitalised word. */
const BRANDS: Readonly<Record<string, string>> = {
  amex: "American Express",
  jcb: "JCB",
  unionpay: "UnionPay",
};

function brandText(brand: string): string {
  return BRANDS[brand] ?? brand[0]!.toUpperCase() + brand.slice(1);
}
