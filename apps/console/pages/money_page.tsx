/** The page of a payment or a transfer: its status, its records, and the actions on it. */

import type { ComponentChildren } from "preact";
import type { Payment, Transfer } from "../../../packages/client/mod.ts";
import { railOf } from "../../../shared/domain/rails.ts";
import { call } from "../data/calls.ts";
import { Card, Title } from "../parts/page_parts.tsx";
import { DialogButton } from "../parts/dialog.tsx";
import { TriggerDialog } from "../forms/delivery_dialogs.tsx";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { EventDeliveries } from "../parts/deliveries.tsx";
import { Ledger, type Subject } from "../parts/ledger.tsx";
import { FailedNotice } from "../parts/notice.tsx";
import { may } from "../data/permissions.ts";
import { href } from "../data/route.ts";
import { Fact, Id, MetadataFacts, Money, Status } from "../parts/text.tsx";
import { Timeline } from "../parts/timeline.tsx";

export function MoneyPage(props: {
  of: Payment | Transfer;
  subject: Subject;
  /** The method or the destination in words. */
  text: string;
  actions: ComponentChildren;
  callout: ComponentChildren;
  /** What follows the reason of a failure. */
  advice?: ComponentChildren;
  /** Cards below the ledger. */
  records?: ComponentChildren;
  moves: ComponentChildren;
  details: ComponentChildren;
}) {
  const { of, subject } = props;
  return (
    <div class="columns">
      <div class="head">
        <Title
          title={<Money amount_minor={of.amount_minor} currency={of.currency} />}
          under={
            <>
              <Status of={of.status} />
              <span>{props.text}</span>
              <Id id={of.id} />
            </>
          }
        >
          {props.actions}
        </Title>
        {props.callout}
        <FailedNotice of={of} otherwise={`The ${of.object} did not succeed`}>
          {props.advice}
        </FailedNotice>
      </div>
      <aside class="side-column" aria-label={`About this ${of.object}`}>
        <Card title="Details" class="details">
          <dl class="facts">
            {props.details}
            {may("sandbox.listRequests") && (
              <Fact name="Requests">
                <a href={href(["requests"], { source: "any", resource_id: of.id })}>
                  Those of this {of.object}
                </a>
              </Fact>
            )}
            <MetadataFacts of={of.metadata} />
          </dl>
          <BankDetailsButton of={of} />
        </Card>
        {props.moves}
      </aside>
      <div class="main-column">
        <Card title="Timeline">
          <Timeline of={subject} />
        </Card>
        <Card
          title="Webhook deliveries"
          actions={"payment_id" in subject && (
            <DialogButton text="Trigger an event…" needs="sandbox.trigger">
              {(close) => <TriggerDialog payment_id={subject.payment_id} close={close} />}
            </DialogButton>
          )}
        >
          <EventDeliveries of={subject} />
        </Card>
        <Card title="Ledger">
          <Ledger of={subject} />
        </Card>
        {props.records}
      </div>
    </div>
  );
}

function BankDetailsButton({ of }: { of: Payment | Transfer }) {
  const { id } = of;
  if (railOf(of).bank === null) return null;
  return (
    <ConfirmButton
      keep="Keep them"
      act="Delete bank details"
      build={(options) =>
        of.object === "payment"
          ? call("payments", "deleteBankDetails", id, options)
          : call("transfers", "deleteBankDetails", id, options)}
      done="Bank details deleted."
    >
      <p>
        IBAN, name and address are deleted. Country and last four characters stay.
        {of.object === "payment" && " A later refund must name its destination."}
      </p>
    </ConfirmButton>
  );
}
