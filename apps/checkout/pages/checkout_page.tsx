/** The page of a checkout: the price, and the view that its attempts ask for. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CheckoutPage as Page } from "../../../shared/schema/checkout_page.ts";
import { faultsOf } from "../data/attempt.ts";
import { type Flow, type Trouble, useFlow } from "../data/flow.ts";
import { type View, viewOf } from "../data/view.ts";
import { endVisit, ownAttempt } from "../data/visit.ts";
import { type Key, useWords } from "../data/words.ts";
import { Frame, Notice, Title } from "../parts/panel.tsx";
import { PayForm } from "../parts/pay_form.tsx";
import { Summary } from "../parts/summary.tsx";
import { TransferDetails } from "../parts/transfer.tsx";

interface CheckoutPageProps {
  token: string;
  onLocale(locale: string | null): void;
}

export function CheckoutPage({ token, onLocale }: CheckoutPageProps) {
  const flow = useFlow(token);
  const { say } = useWords();
  const [left, setLeft] = useState<string | null>(null);
  const { page, trouble } = flow;
  useEffect(() => page ? onLocale(page.locale) : undefined, [page?.locale]);
  if (page === null || trouble?.kind === "unknown") return <NoPage flow={flow} />;
  const { attempt } = page;
  const view = viewOf(page, attempt !== null && left === attempt.payment_id);
  return (
    <Frame is_test={!page.livemode} aside={<Summary page={page} />}>
      <div key={`${view.kind} ${attempt?.payment_id}`}>
        <Shown view={view} flow={flow} page={page} />
        {page.status === "open" && (view.kind === "action" || view.kind === "transfer") && (
          <button
            type="button"
            onClick={() => setLeft(attempt!.payment_id)}
          >
            {say("pay_otherwise")}
          </button>
        )}
      </div>
    </Frame>
  );
}

/** The page before it has a checkout, or without one. */
export function NoPage({ flow: { trouble, read } }: { flow: Flow }) {
  const { say, clock } = useWords();
  const kind = trouble?.kind ?? "loading";
  if (kind === "loading") {
    return (
      <Frame is_test={false}>
        <p class="waiting" role="status">{say("loading")}</p>
      </Frame>
    );
  }
  const text = kind === "unknown"
    ? "unknown_text"
    : kind === "limited"
    ? "limited_text"
    : "offline_text";
  const time = trouble?.kind === "limited" ? clock(trouble.until_ms) : "";
  return (
    <Frame is_test={false}>
      <Title
        key={kind}
        text={say(kind === "unknown" || kind === "limited" ? `${kind}_title` : "offline_title")}
      />
      <p>{say(text, { time })}</p>
      {kind !== "unknown" && <button type="button" onClick={read}>{say("try_again")}</button>}
    </Frame>
  );
}

function Shown({ view, flow, page }: { view: View; flow: Flow; page: Page }) {
  const { say, money } = useWords();
  const merchant = page.merchant.name;
  const amountOf = ({ amount_minor, currency }: { amount_minor: number; currency: string }) =>
    money(amount_minor, currency);
  switch (view.kind) {
    case "form":
      return (
        <FormView ended={view.ended} flow={flow} page={page}>
          <PayForm
            page={page}
            is_busy={flow.is_busy}
            refused={refusedBy(flow)}
            onPay={flow.pay}
          />
        </FormView>
      );
    case "action":
      return <ActionView url={urlOf(view.attempt)} trouble={flow.trouble} />;
    case "transfer": {
      const action = view.attempt.next_action!;
      if (action.type === "authenticate") return null;
      const is_bank = action.type === "bank_transfer";
      return (
        <>
          <Title
            text={say(is_bank ? "transfer_title" : "stablecoin_title", {
              amount: amountOf(view.attempt),
            })}
          />
          <Connection trouble={flow.trouble} />
          <TransferDetails action={action} merchant={merchant} />
        </>
      );
    }
    case "processing": {
      const { method } = view.attempt;
      const kind = method === "card" || method === "stablecoin" ? method : "other";
      return (
        <>
          <Title text={say("processing_title")} />
          <Connection trouble={flow.trouble} />
          <p>{say(`processing_${kind}`, { merchant })}</p>
          <p class="waiting" role="status">{say("waiting")}</p>
        </>
      );
    }
    case "paid":
      return <PaidView page={page} attempt={view.attempt} />;
    default:
      return (
        <>
          <Title text={say(`${view.kind}_title`)} />
          <p>{say(`${view.kind}_text`, { merchant })}</p>
          <Back to={page.cancel_url ?? page.return_url} merchant={merchant} />
        </>
      );
  }
}

function urlOf({ next_action }: NonNullable<Page["attempt"]>): string {
  return next_action?.type === "authenticate" ? next_action.url : "";
}

/** The fields, with the reason why the payer sees them again. */
export function FormView({ ended, flow, page, children }: {
  ended: "declined" | "failed" | null;
  flow: Flow;
  page: Page;
  children: ComponentChildren;
}) {
  const { say, clock } = useWords();
  const { trouble, is_busy } = flow;
  const has_field = Object.keys(faultsOf(refusedBy(flow))).length > 0;
  const merchant = page.merchant.name;
  const by_card = page.attempt?.method === "card";
  const text: Key = ended === "declined"
    ? by_card ? "declined_card" : "declined_other"
    : "failed_text";
  return (
    <>
      <Title
        text={say(page.amount_minor === 0 ? "save_for" : "pay_merchant", { merchant })}
        focus={ended === null}
      />
      {ended && !trouble && !is_busy && (
        <Notice tone="bad" title={say(`${ended}_title`)} text={say(text)} focus />
      )}
      {trouble?.kind === "refused" && !has_field && (
        <Notice tone="bad" title={say("refused_title")} text={say("refused_text")} focus />
      )}
      {trouble?.kind === "limited" && (
        <Notice
          tone="bad"
          title={say("limited_title")}
          text={say("limited_text", { time: clock(trouble.until_ms) })}
          focus
        />
      )}
      <Connection trouble={trouble} />
      {children}
    </>
  );
}

/** The field of the body that the API has refused in the last attempt. */
function refusedBy({ trouble }: Flow): string | null {
  return trouble?.kind === "refused" ? trouble.param : null;
}

/** Tells that the page has lost the connection, without taking the focus. */
function Connection({ trouble }: { trouble: Trouble | null }) {
  const { say } = useWords();
  if (trouble?.kind !== "offline" && trouble?.kind !== "unsure") return null;
  return <Notice tone="wait" title={say("offline_title")} text={say(`${trouble.kind}_text`)} />;
}

/** The way to the bank, for a payer who has come back before the end. */
function ActionView({ url, trouble }: { url: string; trouble: Trouble | null }) {
  const { say } = useWords();
  return (
    <>
      <Title text={say("action_title")} />
      <Connection trouble={trouble} />
      <p>{say("action_text")}</p>
      <a class="primary" href={url}>{say("to_bank")}</a>
    </>
  );
}

/** The result. The payer who has just paid goes back to the shop by themselves. */
function PaidView({ page, attempt }: { page: Page; attempt: Page["attempt"] }) {
  const { say, money, day } = useWords();
  const merchant = page.merchant.name;
  const [is_own] = useState(attempt !== null && ownAttempt() === attempt.payment_id);
  const back = attempt?.return_url ?? page.return_url;
  useEffect(() => {
    if (!is_own || back === null) return;
    endVisit();
    location.replace(back);
  }, []);
  const kind = is_own && attempt ? resultOf(attempt) : "done";
  const amount = attempt === null ? "" : money(attempt.amount_minor, attempt.currency);
  const result_on = kind === "collecting" ? attempt!.result_on : null;
  return (
    <>
      <span class="tick" aria-hidden="true" />
      <Title text={say(`${kind}_title`)} />
      <p>
        {say(result_on ? "collecting_on" : `${kind}_text`, {
          ...{ merchant, amount, date: result_on ? day(result_on) : "" },
        })}
      </p>
      {attempt?.mandate_id && <p class="hint">{say("mandate_title")}: {attempt.mandate_id}</p>}
      <Back to={back} merchant={merchant} is_on_the_way={is_own} />
    </>
  );
}

/** The kind of success that an attempt is. */
function resultOf({ status, amount_minor }: NonNullable<Page["attempt"]>) {
  if (amount_minor === 0) return "saved";
  if (status === "processing") return "collecting";
  return status === "authorized" ? "reserved" : status === "completed" ? "paid" : "done";
}

/** The way back to the shop, or the advice to close the page. */
export function Back({ to, merchant, is_on_the_way = false }: {
  to: string | null;
  merchant: string;
  is_on_the_way?: boolean;
}) {
  const { say } = useWords();
  if (to === null) return <p>{say("close")}</p>;
  return (
    <>
      {is_on_the_way && <p class="waiting" role="status">{say("returning", { merchant })}</p>}
      <a class="primary" href={to}>{say("back_to", { merchant })}</a>
    </>
  );
}
