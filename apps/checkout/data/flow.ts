/** A checkout as the page follows it: reads, waiting, and the payer's attempts. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { CheckoutPage, PayPageBody } from "../../../shared/schema/checkout_page.ts";
import { payCheckout, readCheckout, Refused } from "./api.ts";
import { isWaiting } from "./view.ts";
import { keepAttempt, ownAttempt } from "./visit.ts";

/** First and longest time between two reads. */
const FIRST_MS = 2_000;
const LONGEST_MS = 30_000;
const GROWTH = 1.4;

/** The reason why the page cannot go on. */
export type Trouble =
  | { kind: "unknown" | "offline" | "unsure" }
  | { kind: "limited"; until_ms: number }
  /** The API has refused the attempt, for this field of the body if any. */
  | { kind: "refused"; param: string | null };

export interface Flow {
  page: CheckoutPage | null;
  trouble: Trouble | null;
  is_busy: boolean;
  pay(body: PayPageBody): Promise<void>;
  read(): Promise<void>;
}

/** Follows the checkout of a token. */
export function useFlow(token: string): Flow {
  const [page, setPage] = useState<CheckoutPage | null>(null);
  const [trouble, setTrouble] = useState<Trouble | null>(null);
  const [is_busy, setBusy] = useState(false);
  const paying = useRef(false);

  const read = useCallback(async () => {
    if (paying.current) return;
    try {
      const read_page = await readCheckout(token, ownAttempt());
      setPage(read_page);
      // The payer still has to see why an attempt was refused.
      setTrouble((now) => now?.kind === "refused" || now?.kind === "limited" ? now : null);
    } catch (error) {
      if (!(error instanceof Refused)) setTrouble({ kind: "offline" });
      else if (error.status === 429) setTrouble(limitedBy(error));
      else setTrouble({ kind: "unknown" });
    }
  }, [token]);

  const pay = useCallback(async (body: PayPageBody) => {
    if (paying.current) return;
    paying.current = true;
    setBusy(true);
    setTrouble(null);
    try {
      const paid = await send(token, body, () => setTrouble({ kind: "unsure" }));
      if (paid.attempt) keepAttempt(paid.attempt.payment_id);
      setPage(paid);
      setTrouble(null);
      const action = paid.attempt?.next_action;
      if (action?.type === "authenticate") location.assign(action.url);
    } catch (error) {
      const refused = error as Refused;
      if (refused.status === 404) setTrouble({ kind: "unknown" });
      else if (refused.status === 429) setTrouble(limitedBy(refused));
      else setTrouble({ kind: "refused", param: refused.param });
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

/** Sends an attempt until there is a response. Each try has the same key, so only one counts. */
async function send(
  token: string,
  body: PayPageBody,
  onLost: () => void,
): Promise<CheckoutPage> {
  const key = crypto.randomUUID();
  for (let wait_ms = FIRST_MS;; wait_ms = Math.min(wait_ms * GROWTH, LONGEST_MS)) {
    try {
      return await payCheckout(token, key, body);
    } catch (error) {
      if (error instanceof Refused && error.code !== "idempotency_in_progress") throw error;
      onLost();
      await new Promise((resolve) => setTimeout(resolve, wait_ms));
    }
  }
}

function limitedBy({ retry_ms }: Refused): Trouble {
  return { kind: "limited", until_ms: Date.now() + retry_ms };
}

/** Reads again while the payer waits and looks, when they come back, and at the end of the time. */
function useReads(
  read: () => Promise<void>,
  page: CheckoutPage | null,
  trouble: Trouble | null,
): void {
  const waits = page === null ? trouble !== null && trouble.kind !== "unknown" : isWaiting(page) ||
    trouble?.kind === "offline";
  const until_ms = page === null && trouble?.kind === "limited" ? trouble.until_ms : 0;
  const end_ms = page?.status === "open" && page.expires_at !== null
    ? Date.parse(page.expires_at) - Date.parse(page.now)
    : null;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wait_ms = Math.max(FIRST_MS, until_ms - Date.now());
    const plan = () => {
      clearTimeout(timer);
      if (!waits || document.visibilityState !== "visible") return;
      timer = setTimeout(async () => {
        await read();
        wait_ms = Math.min(wait_ms * GROWTH, LONGEST_MS);
        plan();
      }, wait_ms);
    };
    const look = async () => {
      clearTimeout(timer);
      if (document.visibilityState !== "visible") return;
      wait_ms = FIRST_MS;
      await read();
      plan();
    };
    plan();
    document.addEventListener("visibilitychange", look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [read, waits, until_ms]);
  useEffect(() => {
    if (end_ms === null || end_ms > LONGEST_TIMER_MS) return;
    const timer = setTimeout(read, Math.max(end_ms, 0) + FIRST_MS);
    return () => clearTimeout(timer);
  }, [read, end_ms]);
}

/** Longer timers fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 10_000;
