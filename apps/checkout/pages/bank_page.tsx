/**
 * The bank step of a sandbox payment (3-D Secure): the payer sees the payment, and approves or
 * declines it. Then the page goes back to the checkout from which they have come, or to the shop.
 */

import { useEffect, useState } from "preact/hooks";
import type { Challenge } from "../../../shared/schema/challenge.ts";
import { callChallenge, Refused } from "../data/api.ts";
import { checkoutBehind } from "../data/visit.ts";
import { type Key, useWords, useWordsOf } from "../data/words.ts";
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
  const { status, return_url, merchant, payment_id } = challenge;
  return (
    <Frame is_test>
      <div key={status}>
        <TroubleNotice trouble={trouble} />
        <Title text={say(TITLES[status] ?? "over_title")} />
        {status === "requires_action" && <p>{say("bank_text")}</p>}
        <Facts challenge={challenge} />
        {status === "requires_action"
          ? <Answers is_busy={is_busy} onAnswer={call} />
          : <Back to={checkoutBehind(payment_id) ?? return_url} merchant={merchant} />}
        <p class="hint">{say("bank_stand_in")}</p>
      </div>
    </Frame>
  );
}

/** The titles of the statuses that follow from an answer of the payer. */
const TITLES: Partial<Record<Challenge["status"], Key>> = {
  requires_action: "bank_title",
  completed: "approved_title",
  authorized: "approved_title",
  declined: "declined_by_you",
};

/** Goes on where the payer has come from. The back button does not lead here again. */
function leave({ payment_id, return_url }: Challenge): void {
  const to = checkoutBehind(payment_id) ?? return_url;
  if (to !== null) location.replace(to);
}

function Answers({ is_busy, onAnswer }: {
  is_busy: boolean;
  onAnswer(result: "success" | "failure"): void;
}) {
  const { say } = useWords();
  const answer = (result: "success" | "failure") => ({
    type: "button" as const,
    "aria-disabled": is_busy,
    onClick: () => onAnswer(result),
  });
  return (
    <div class="answers">
      <button {...answer("success")} class="primary">{say("approve")}</button>
      <button {...answer("failure")}>{say("decline")}</button>
    </div>
  );
}

/** The payment, as the payer knows it. */
function Facts({ challenge: { merchant, amount_minor, currency, card } }: {
  challenge: Challenge;
}) {
  const { say, money } = useWords();
  const facts: [Key, string][] = [
    ["merchant", merchant],
    ["amount", money(amount_minor, currency)],
  ];
  if (card) {
    facts.push(["card", `${brandText(card.brand)} ${say("card_ending", { last4: card.last4 })}`]);
  }
  return (
    <dl class="facts">
      {facts.map(([name, fact]) => (
        <div key={name}>
          <dt>{say(name)}</dt>
          <dd>{fact}</dd>
        </div>
      ))}
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
