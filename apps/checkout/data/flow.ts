/** A checkout as the page follows it: reads, waiting, and the payer's attempts. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { CheckoutPage, PageView, PayPageBody } from "../../../shared/schema/checkout_page.ts";
import { payCheckout, readCheckout, Refused } from "./api.ts";
import { keepAttempt, ownAttempt } from "./visit.ts";

/** First and longest time between two reads. */
const FIRST_MS = 2_000;
const LONGEST_MS = 30_000;
const GROWTH = 1.4;
/** The page sends an attempt again for this time. Then the payer decides whether it goes on. */
const UNANSWERED_MS = 120_000;

/** The reason why the page cannot go on. */
export type Trouble =
  /** `unsure` and `lost`: no response, and the page sends it again or has stopped. */
  | { kind: "unknown" | "unavailable" | "offline" | "unsure" | "lost" }
  | { kind: "limited"; until_ms: number }
  /** The API has refused the attempt, for this field of the body if any. */
  | { kind: "refused"; param: string | null };

/** A read does not take them away: the payer still has to see them. */
const LASTING: readonly Trouble["kind"][] = ["refused", "limited", "unavailable", "lost"];

export interface Flow {
  page: CheckoutPage | null;
  trouble: Trouble | null;
  is_busy: boolean;
  /** Makes an attempt. Without a body it sends the one that has no response again. */
  pay(body?: PayPageBody): Promise<void>;
  read(): Promise<void>;
}

/** Follows the checkout of a token. */
export function useFlow(token: string): Flow {
  const [page, setPage] = useState<CheckoutPage | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [is_busy, setBusy] = useState(false);
  const paying = useRef(false);
  /** The last attempt with its key, by which a second try makes no second payment. */
  const sent = useRef<{ body: PayPageBody; key: string } | null>(null);

  const read = useCallback(async () => {
    if (paying.current) return;
    try {
      setPage(await readCheckout(token, ownAttempt()));
      setTrouble((now) => now && LASTING.includes(now.kind) ? now : null);
    } catch (error) {
      const found = troubleOf(error);
      // The payer of a lost attempt still has to send it again.
      setTrouble((now) => now?.kind === "lost" ? { ...now } : found);
    }
  }, [token]);

  const pay = useCallback(async (body?: PayPageBody) => {
    if (paying.current) return;
    paying.current = true;
    setBusy(true);
    setTrouble(null);
    if (body) sent.current = { body, key: crypto.randomUUID() };
    const attempt = sent.current!;
    try {
      const paid = await untilAnswered(
        () => payCheckout(token, attempt.key, attempt.body),
        () => setTrouble({ kind: "unsure" }),
      );
      if (paid.attempt) keepAttempt(paid.attempt.payment_id);
      setPage(paid);
      setTrouble(null);
      const action = paid.attempt?.next_action;
      if (action?.type === "authenticate") location.assign(action.url);
    } catch (error) {
      const found = troubleOf(error);
      setTrouble(found.kind === "offline" ? { kind: "lost" } : found);
    }
    paying.current = false;
    setBusy(false);
    // After a refusal the page shows the checkout as it is: paid in another tab, or over.
    await read();
  }, [token, read]);

  useEffect(() => void read(), [read]);
  useReads(read, page, trouble);
  return { page, trouble, is_busy, pay, read };
}

/** Sends an attempt until there is a response or the time is over. Throws the last error. */
async function untilAnswered<Answer>(
  send: () => Promise<Answer>,
  onLost: () => void,
): Promise<Answer> {
  const end_ms = Date.now() + UNANSWERED_MS;
  let is_lost = false;
  for (let wait_ms = FIRST_MS;; wait_ms = Math.min(wait_ms * GROWTH, LONGEST_MS)) {
    try {
      return await send();
    } catch (error) {
      // A limit ends no attempt that may have arrived: the fields would make another one.
      const is_passing = !(error instanceof Refused) || error.is_passing ||
        is_lost && error.status === 429;
      if (!is_passing) throw error;
      if (Date.now() > end_ms) throw new Error("No response", { cause: error });
      is_lost = true;
      onLost();
      await new Promise((resolve) => setTimeout(resolve, wait_ms));
    }
  }
}

function troubleOf(error: unknown): Trouble {
  if (!(error instanceof Refused) || error.is_passing) return { kind: "offline" };
  const { status, param, retry_ms } = error;
  if (status === 404) return { kind: "unknown" };
  if (status === 429) return { kind: "limited", until_ms: Date.now() + retry_ms };
  return status >= 500 ? { kind: "unavailable" } : { kind: "refused", param };
}

/** Views in which something happens at the payment without the page. */
const WAITING: readonly PageView[] = ["action", "transfer", "processing"];
/** Longer timers fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 10_000;

/** Reads again while the payer waits and looks, when they come back, and at the end of the time. */
function useReads(
  read: () => Promise<void>,
  page: CheckoutPage | null,
  trouble: Trouble | null,
): void {
  const reads = useRef(0);
  useEffect(() => void (reads.current = 0), [page?.view]);
  useEffect(() => {
    const wait_ms = timeToRead(page, trouble, reads.current++);
    if (wait_ms > LONGEST_TIMER_MS) return;
    const timer = setTimeout(() => {
      if (document.visibilityState === "visible") void read();
    }, wait_ms);
    return () => clearTimeout(timer);
  }, [page, trouble]);
  useEffect(() => {
    const look = () => {
      reads.current = 0;
      if (document.visibilityState === "visible") void read();
    };
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, [read]);
}

/** Returns the time until the next read, after some in the same view. Infinite: there is none. */
function timeToRead(page: CheckoutPage | null, trouble: Trouble | null, reads: number): number {
  const kind = trouble?.kind;
  const until_ms = page === null && trouble?.kind === "limited" ? trouble.until_ms - Date.now() : 0;
  const waits = kind === "offline" || kind === "lost" || until_ms > 0 ||
    page !== null && WAITING.includes(page.view);
  const step_ms = Math.max(Math.min(FIRST_MS * GROWTH ** reads, LONGEST_MS), until_ms);
  const end_ms = page?.status === "open" && page.expires_at !== null
    ? Math.max(Date.parse(page.expires_at) - Date.parse(page.now), 0) + FIRST_MS
    : Infinity;
  return Math.min(waits ? step_ms : Infinity, end_ms);
}
