/**
 * The page on which the payer of a sandbox payment completes 3-D Secure, in place of the bank's
 * page. It shows the payment, approves it or makes it fail, and sends the payer back to the shop.
 * Its calls have the token of the page and no API key, so they do not use the client.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Challenge } from "../../../shared/schema/challenge.ts";
import { apiBaseUrl } from "../data/api_base_url.ts";
import { cardText } from "../data/method_text.ts";
import { Logo } from "../parts/page_parts.tsx";
import { Fact, Money } from "../parts/text.tsx";

/** A view of the page. */
type View =
  | { state: "loading" | "unknown"; challenge: null }
  /**
   * `completed`: the payer has completed it just now. `over`: the payment waits for nobody, because
   * it was completed before, advanced or cancelled.
   */
  | { state: "asking" | "completed" | "over"; challenge: Challenge };

/** Titles for the statuses in which a payment can leave its challenge. */
const OUTCOMES: Readonly<Partial<Record<Challenge["status"], string>>> = {
  authorized: "The payment is approved",
  completed: "The payment is approved",
  declined: "The payment is declined",
  failed: "The payment has failed",
  cancelled: "The payment is cancelled",
};

const UNREACHABLE = "The service cannot be reached. Try again in a moment.";

/** The payer's page for the token of a payment. */
export function ChallengePage({ token }: { token: string }) {
  const [view, setView] = useState<View>({ state: "loading", challenge: null });
  const [failure, setFailure] = useState<string | null>(null);
  const [running, setRunning] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);

  /** Runs a call. A response that came too late shows the payment as it is now. */
  const run = async (ask: () => Promise<View>) => {
    setRunning(true);
    setFailure(null);
    try {
      setView(await ask());
    } catch (error) {
      const code = error instanceof ChallengeRefused ? error.code : null;
      if (code === "not_found") setView({ state: "unknown", challenge: null });
      else if (code === "invalid_state") return await run(() => show(token));
      else setFailure(code === null ? UNREACHABLE : (error as Error).message);
    } finally {
      setRunning(false);
    }
  };
  const complete = (result: "success" | "failure") => {
    if (running) return;
    return run(async () => {
      const challenge = await callChallenge(token, { result });
      // The back button then does not come to this page again.
      if (challenge.return_url !== null) location.replace(challenge.return_url);
      return { state: "completed", challenge };
    });
  };

  useEffect(() => {
    document.title = "3-D Secure · Sandbox";
    run(() => show(token));
  }, []);
  // Screen readers and the keyboard continue at the heading of the new view.
  useEffect(() => heading.current?.focus(), [view.state]);

  return (
    <main class="connect">
      <div class="connect-card challenge">
        <Logo />
        <h1 tabIndex={-1} ref={heading}>{titleOf(view)}</h1>
        <div role="alert">
          {failure && <p class="notice bad">{failure}</p>}
        </div>
        {view.state === "loading" && failure && (
          <button
            type="button"
            onClick={() => run(() => show(token))}
          >
            Try again
          </button>
        )}
        {view.state === "unknown" && (
          <p class="lead">
            The link is not complete, or the sandbox was reset and its payments are gone.
          </p>
        )}
        {view.challenge && <Bill challenge={view.challenge} />}
        {view.state === "asking" && (
          <>
            <div class="actions">
              <button
                type="button"
                class="primary"
                aria-disabled={running}
                onClick={() => complete("success")}
              >
                Approve
              </button>
              <button type="button" aria-disabled={running} onClick={() => complete("failure")}>
                Fail
              </button>
            </div>
            <p class="quiet">
              This page stands for the page of your bank. No real money moves.
            </p>
          </>
        )}
        {view.state === "completed" && (
          <Way to={view.challenge.return_url}>You are sent back to the shop.</Way>
        )}
        {view.state === "over" && (
          <Way to={view.challenge.return_url}>There is nothing to approve any more.</Way>
        )}
      </div>
    </main>
  );
}

/** Reads the payment and decides whether it still waits for the payer. */
async function show(token: string): Promise<View> {
  const challenge = await callChallenge(token);
  return { state: challenge.status === "requires_action" ? "asking" : "over", challenge };
}

function titleOf({ state, challenge }: View): string {
  if (challenge === null) {
    return state === "loading" ? "Loading the payment…" : "This link leads to no payment";
  }
  const only_saves = challenge.amount_minor === 0;
  if (state === "asking") return only_saves ? "Save this card?" : "Approve this payment?";
  if (only_saves && challenge.status === "completed") return "The card is saved";
  return OUTCOMES[challenge.status] ?? "The payment is over";
}

/** The payment, as the payer knows it. */
function Bill({ challenge }: { challenge: Challenge }) {
  const { amount_minor, currency, merchant, reference, card } = challenge;
  return (
    <div class="bill">
      <p class="bill-amount">
        <Money amount_minor={amount_minor} currency={currency} />
      </p>
      <dl class="facts">
        <Fact name="Merchant">{merchant}</Fact>
        <Fact name="Reference">{reference}</Fact>
        <Fact name="Card">{card && cardText(card)}</Fact>
      </dl>
      <p class="quiet">
        <code>{challenge.payment_id}</code>
      </p>
    </div>
  );
}

/** The way back to the shop, or the advice to close the window. */
function Way({ to, children }: { to: string | null; children: ComponentChildren }) {
  if (to === null) return <p class="lead">You can close this window.</p>;
  return (
    <>
      <p class="lead">{children}</p>
      <p>
        <a href={to}>Back to the shop</a>
      </p>
    </>
  );
}

/** The API has refused a call of the payer's page. */
class ChallengeRefused extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

/** Longest wait for a response. */
const DEADLINE_MS = 30_000;

/**
 * Reads the challenge of a token, or completes it with a result.
 * @throws {ChallengeRefused} if the API refuses the call; with any other error there was no response
 */
async function callChallenge(
  token: string,
  body?: { result: "success" | "failure" },
): Promise<Challenge> {
  const url = `${apiBaseUrl()}/api-v1-sandbox/challenges/${encodeURIComponent(token)}`;
  const response = await fetch(url, {
    ...(body && {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  const received = await response.json();
  if (response.ok) return received;
  throw new ChallengeRefused(received.error.code, received.error.message);
}
