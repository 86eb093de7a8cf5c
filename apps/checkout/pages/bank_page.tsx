/**
 * The bank step of a sandbox payment (3-D Secure): the payer sees the payment, and approves or
 * declines it. Then the page goes back to the checkout from which they have come, or to the shop.
 */

import { useEffect, useState } from "preact/hooks";
import type { Challenge } from "../../../shared/schema/challenge.ts";
import { callChallenge, Refused } from "../data/api.ts";
import { checkoutBehind } from "../data/visit.ts";
import { useWords } from "../data/words.ts";
import { Frame, Notice, Title } from "../parts/panel.tsx";
import { Back } from "./checkout_page.tsx";

type State =
  | { kind: "loading" | "unknown"; challenge: null }
  | { kind: "asking" | "over"; challenge: Challenge };

export function BankPage({ token }: { token: string }) {
  const { say } = useWords();
  const [state, setState] = useState<State>({ kind: "loading", challenge: null });
  const [is_offline, setOffline] = useState(false);
  const [is_busy, setBusy] = useState(false);

  const call = async (result?: "success" | "failure") => {
    if (is_busy) return;
    setBusy(true);
    setOffline(false);
    try {
      const challenge = await callChallenge(token, result);
      const is_asking = challenge.status === "requires_action";
      setState({ kind: is_asking ? "asking" : "over", challenge });
      if (result) leave(challenge);
    } catch (error) {
      if (!(error instanceof Refused)) setOffline(true);
      else if (error.status === 404) setState({ kind: "unknown", challenge: null });
      else if (result) await call();
    }
    setBusy(false);
  };
  useEffect(() => void call(), []);

  const { kind, challenge } = state;
  return (
    <Frame is_test>
      <div key={kind}>
        {kind === "unknown" && (
          <>
            <Title text={say("unknown_title")} />
            <p>{say("unknown_text")}</p>
          </>
        )}
        {kind === "loading" && !is_offline && <p class="waiting" role="status">{say("loading")}</p>}
        {is_offline && (
          <>
            <Notice tone="wait" title={say("offline_title")} text={say("offline_text")} />
            <button type="button" onClick={() => call()}>{say("try_again")}</button>
          </>
        )}
        {challenge && kind === "asking" && (
          <Question challenge={challenge} is_busy={is_busy} onAnswer={call} />
        )}
        {challenge && kind === "over" && <Over challenge={challenge} />}
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
  const is_saving = challenge.amount_minor === 0;
  return (
    <>
      <Title text={say(is_saving ? "bank_title_save" : "bank_title")} />
      <p>{say(is_saving ? "bank_text_save" : "bank_text")}</p>
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
