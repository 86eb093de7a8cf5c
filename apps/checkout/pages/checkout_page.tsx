/** The page of a checkout: the price, and the view that its attempts ask for. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CheckoutPage as Page, PageView } from "../../../shared/schema/checkout_page.ts";
import { faultsOf } from "../data/attempt.ts";
import { type Flow, type Trouble, useFlow } from "../data/flow.ts";
import { endVisit, ownAttempt } from "../data/visit.ts";
import { type Key, useWords, useWordsOf } from "../data/words.ts";
import { Frame, Notice, Title } from "../parts/panel.tsx";
import { PayForm } from "../parts/pay_form.tsx";
import { Summary } from "../parts/summary.tsx";
import { TransferDetails } from "../parts/transfer.tsx";

type Attempt = NonNullable<Page["attempt"]>;

export function CheckoutPage({ token }: { token: string }) {
  const flow = useFlow(token);
  const { say } = useWords();
  const [left, setLeft] = useState<string | null>(null);
  const { page, trouble } = flow;
  useWordsOf(page);
  if (page === null || trouble?.kind === "unknown") {
    return <NoPage trouble={trouble} onRead={flow.read} />;
  }
  const { attempt, may_leave } = page;
  const has_left = may_leave && left === attempt!.payment_id;
  const view = has_left ? "form" : page.view;
  return (
    <Frame is_test={!page.livemode} aside={<Summary page={page} />}>
      <div key={`${view} ${attempt?.payment_id}`}>
        <Shown view={view} flow={flow} page={page} has_left={has_left} />
        {may_leave && !has_left && (
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

/** The title and the text of a trouble. */
const TROUBLES: Readonly<Record<Trouble["kind"], [title: Key, text: Key]>> = {
  unknown: ["unknown_title", "unknown_text"],
  unavailable: ["refused_title", "unavailable_text"],
  offline: ["offline_title", "offline_text"],
  unsure: ["offline_title", "unsure_text"],
  lost: ["offline_title", "lost_text"],
  limited: ["limited_title", "limited_text"],
  refused: ["refused_title", "refused_text"],
};

function timeOf(trouble: Trouble, clock: (at_ms: number) => string) {
  return { time: trouble.kind === "limited" ? clock(trouble.until_ms) : "" };
}

/** The page before it has a checkout or a bank step, or without one. */
export function NoPage({ trouble, is_test = false, onRead }: {
  trouble: Trouble | null;
  is_test?: boolean;
  onRead?(): void;
}) {
  const { say, clock } = useWords();
  if (trouble === null) {
    return (
      <Frame is_test={is_test}>
        <p class="waiting" role="status">{say("loading")}</p>
      </Frame>
    );
  }
  const [title, text] = TROUBLES[trouble.kind];
  return (
    <Frame is_test={is_test}>
      <Title key={title} text={say(title)} />
      <p>{say(text, timeOf(trouble, clock))}</p>
      {trouble.kind !== "unknown" && (
        <button type="button" onClick={onRead}>{say("try_again")}</button>
      )}
    </Frame>
  );
}

/** Tells of a trouble. Only that of a lost connection does not take the focus. */
export function TroubleNotice({ trouble }: { trouble: Trouble | null }) {
  const { say, clock } = useWords();
  if (trouble === null) return null;
  const [title, text] = TROUBLES[trouble.kind];
  const is_bad = title !== "offline_title";
  return (
    <Notice
      key={trouble.kind}
      tone={is_bad ? "bad" : "wait"}
      title={say(title)}
      text={say(text, timeOf(trouble, clock))}
      focus={is_bad}
    />
  );
}

function Shown({ view, flow, page, has_left }: {
  view: PageView;
  flow: Flow;
  page: Page;
  has_left: boolean;
}) {
  const { say, money } = useWords();
  const { trouble, is_busy } = flow;
  const merchant = page.merchant.name;
  const attempt = page.attempt!;
  switch (view) {
    case "form":
      return (
        <FormView flow={flow} page={page} has_left={has_left}>
          <PayForm page={page} is_busy={is_busy} refused={refusedBy(trouble)} onPay={flow.pay} />
        </FormView>
      );
    case "action":
      return (
        <>
          <Title text={say("action_title")} />
          <TroubleNotice trouble={trouble} />
          <p>{say("action_text")}</p>
          <a class="primary" href={urlOf(attempt)}>{say("to_bank")}</a>
        </>
      );
    case "transfer": {
      const action = attempt.next_action!;
      if (action.type === "authenticate") return null;
      const { amount_received, currency } = attempt;
      const amount = money(action.amount_minor, currency);
      const received = amount_received ? money(amount_received, currency) : "";
      const title = action.type === "bank_transfer" ? "transfer_title" : "stablecoin_title";
      return (
        <>
          <Title text={say(title, { amount })} />
          <TroubleNotice trouble={trouble} />
          {received && <p class="important">{say("partly_paid", { received, amount })}</p>}
          <TransferDetails action={action} merchant={merchant} />
        </>
      );
    }
    case "processing": {
      const { method } = attempt;
      const kind = method === "card" || method === "stablecoin" ? method : "other";
      return (
        <>
          <Title text={say("processing_title")} />
          <TroubleNotice trouble={trouble} />
          <p>{say(`processing_${kind}`, { merchant })}</p>
          <p class="waiting" role="status">{say("waiting")}</p>
        </>
      );
    }
    case "paid":
      return <PaidView page={page} attempt={page.attempt} />;
    default:
      return (
        <>
          <Title text={say(`${view}_title`)} />
          <p>{say(`${view}_text`, { merchant })}</p>
          <Back to={page.cancel_url ?? page.return_url} merchant={merchant} />
        </>
      );
  }
}

function urlOf({ next_action }: Attempt): string {
  return next_action?.type === "authenticate" ? next_action.url : "";
}

/** The fields, with the reason why the payer sees them again; or the way on from a lost attempt. */
export function FormView({ flow, page, has_left = false, children }: {
  flow: Flow;
  page: Page;
  has_left?: boolean;
  children: ComponentChildren;
}) {
  const { say } = useWords();
  const { trouble, is_busy } = flow;
  const { status, method } = page.attempt ?? {};
  const ended = !has_left && (status === "declined" || status === "failed") ? status : null;
  const is_at_field = Object.keys(faultsOf(refusedBy(trouble))).length > 0;
  const text: Key = ended === "failed"
    ? "failed_text"
    : method === "card"
    ? "declined_card"
    : "declined_other";
  return (
    <>
      <Title text={say("pay_merchant", { merchant: page.merchant.name })} focus={ended === null} />
      {ended && !trouble && !is_busy && (
        <Notice tone="bad" title={say(`${ended}_title`)} text={say(text)} focus />
      )}
      {!is_at_field && <TroubleNotice trouble={trouble} />}
      {trouble?.kind === "lost"
        ? <button type="button" onClick={() => flow.pay()}>{say("try_again")}</button>
        : children}
    </>
  );
}

/** The field of the body that the API has refused in the last attempt. */
function refusedBy(trouble: Trouble | null): string | null {
  return trouble?.kind === "refused" ? trouble.param : null;
}

/** The result. The payer who has just paid goes back to the shop by themselves. */
function PaidView({ page, attempt }: { page: Page; attempt: Attempt | null }) {
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
  const date = result_on ? day(result_on) : "";
  return (
    <>
      <span class="tick" aria-hidden="true">✓</span>
      <Title text={say(`${kind}_title`)} />
      <p>{say(result_on ? "collecting_on" : `${kind}_text`, { merchant, amount, date })}</p>
      {attempt?.mandate_id && <p class="hint">{say("mandate_title")}: {attempt.mandate_id}</p>}
      <Back to={back} merchant={merchant} is_on_the_way={is_own} />
    </>
  );
}

/** The kind of success that an attempt is. */
function resultOf({ status }: Attempt) {
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
