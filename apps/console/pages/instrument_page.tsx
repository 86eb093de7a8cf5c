/** The page of an instrument: its payments, its events, a charge without the payer, and its end. */

import type { Instrument } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { methodText } from "../data/method_text.ts";
import { may } from "../data/permissions.ts";
import { href } from "../data/route.ts";
import { END_WORDS, USAGE_WORDS } from "../data/words.ts";
import { ChargeDialog } from "../forms/charge_dialog.tsx";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { CustomerFacts } from "../parts/customer_facts.tsx";
import { DialogButton } from "../parts/dialog.tsx";
import { Mention } from "../parts/mention.tsx";
import { ReadingList } from "../parts/notice.tsx";
import { Card, Columns, NewLink, resourcePage, Title } from "../parts/page_parts.tsx";
import { Fact, Id, Status } from "../parts/text.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { INSTRUMENT_PAYMENTS } from "./money_lists.tsx";

const SHOWN = 20;

function InstrumentView({ of: instrument }: { of: Instrument }) {
  const { id, status, usage, is_kept, ended_reason } = instrument;
  const payments = useLive(call("payments", "list", { instrument_id: id, limit: SHOWN }));
  return (
    <>
      <Title
        title={methodText(instrument)}
        under={
          <>
            <Status of={status} />
            <span>{USAGE_WORDS[usage]}</span>
            <Id id={id} />
          </>
        }
      >
        {status === "active" && <Actions instrument={instrument} />}
      </Title>
      {ended_reason && (
        <p class="notice warn">
          {END_WORDS[ended_reason]} <code>{ended_reason}</code>
        </p>
      )}
      <Columns details={<Details instrument={instrument} />}>
        <Card
          title="Payments"
          actions={is_kept && <a href={href(["payments"], { instrument_id: id })}>All of them</a>}
        >
          <ReadingList
            label="payments"
            live={payments}
            none="No payments"
            about_none={!is_kept && (
              <p>
                You send the IBAN with each payment under this mandate. Such a payment names the
                mandate, and not this instrument.
              </p>
            )}
            is_paged
          >
            {(items) => INSTRUMENT_PAYMENTS(items, payments.is_stale, {})}
          </ReadingList>
        </Card>
        <Card title="Timeline">
          <Timeline of={{ instrument_id: id }} />
        </Card>
      </Columns>
    </>
  );
}

function Actions({ instrument }: { instrument: Instrument }) {
  const { id, is_kept, usage } = instrument;
  const may_charge = is_kept && may("instruments:use");
  return (
    <div class="title-actions">
      <ConfirmButton
        ask="End…"
        class="danger"
        act="End instrument"
        build={(options) => call("instruments", "end", id, options)}
        done="Instrument ended."
      >
        <p>
          No later payment can use it. Payments that exist stay as they are. An ended instrument
          stays ended.
        </p>
      </ConfirmButton>
      {may_charge && (
        <NewLink section="payments" class="button" query={{ instrument: id }}>
          Charge with the payer…
        </NewLink>
      )}
      {may_charge && usage === "off_session" && (
        <DialogButton text="Charge…" needs="payments.create" class="primary">
          {(close) => <ChargeDialog instrument={instrument} close={close} />}
        </DialogButton>
      )}
    </div>
  );
}

function Details({ instrument }: { instrument: Instrument }) {
  const { method, mandate, is_kept } = instrument;
  return (
    <>
      {method && "card" in method && (
        <Fact name="Expires">{`${method.card.exp_month} / ${method.card.exp_year}`}</Fact>
      )}
      <Fact name="Mandate">{mandate?.id}</Fact>
      <Fact name="Signed" day={mandate?.signed_at} />
      <Fact name="IBAN">{is_kept ? null : "You send it with each payment"}</Fact>
      <CustomerFacts of={instrument} />
      <Fact name="Saved by payment">
        <Mention id={instrument.payment_id} />
      </Fact>
      <Fact name="Last use" at={instrument.last_used_at} />
      <Fact name="Sequence">{instrument.sequence}</Fact>
      <Fact name="Created" at={instrument.created_at} />
      <Fact name="Updated" at={instrument.updated_at} />
      <Fact name="Ended" at={instrument.ended_at} />
    </>
  );
}

export const InstrumentPage = resourcePage(
  "instruments",
  (id) => call("instruments", "retrieve", id),
  InstrumentView,
);
