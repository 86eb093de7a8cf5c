/** The page of an event: what changed since the event before, its deliveries and its payload. */

import type { Event } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { Card, Columns, resourcePage, Title } from "../parts/page_parts.tsx";
import { EventDeliveries } from "../parts/deliveries.tsx";
import { ChangeTable, Json, jsonChanges } from "../parts/json.tsx";
import { useLive } from "../data/live.ts";
import { Mention } from "../parts/mention.tsx";
import { Reading } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { CopyButton, Fact, Id, Money, Time } from "../parts/text.tsx";
import { eventNote, eventTone, label } from "../data/words.ts";

type Resource = Event["data"]["object"];

/** Members that change with every event. */
const ALWAYS: ReadonlySet<string> = new Set(["sequence", "updated_at"]);

function EventView({ of: event }: { of: Event }) {
  const { id, type, data: { object } } = event;
  return (
    <>
      <Title
        title={type}
        is_long
        under={
          <>
            <span class={`status ${eventTone(type)}`}>{eventNote(type) ?? nounOf(object)}</span>
            {event.triggered && <span class="tag">triggered</span>}
            <Time at={event.created_at} />
            <Id id={id} />
          </>
        }
      />
      <Columns details={<Details event={event} />}>
        <Card title="What changed">
          <Changes event={event} />
        </Card>
        <Card title="Webhook deliveries">
          <EventDeliveries of={{ event_id: id }} />
        </Card>
        <Card
          title="Payload"
          class="body"
          actions={<CopyButton text={JSON.stringify(event, null, 2)} label="Copy the payload" />}
        >
          <Json value={event} label={`Payload of ${type}`} />
        </Card>
      </Columns>
    </>
  );
}

function Details({ event: { data: { object }, request, sequence } }: { event: Event }) {
  return (
    <>
      <Fact name={label(object.object)}>
        <Mention id={object.id} />
      </Fact>
      {"amount_minor" in object && (
        <Fact name="Amount">
          <Money amount_minor={object.amount_minor} currency={object.currency} />
        </Fact>
      )}
      <Fact name="Sequence">{sequence}</Fact>
      <Fact name="Request">
        {request.id === null
          ? "None: a provider, the payer or the clock"
          : <Mention id={request.id} />}
      </Fact>
      <Fact name="Idempotency key">{request.idempotency_key}</Fact>
    </>
  );
}

/** The members of the resource that differ from the event before, if there is one. */
function Changes({ event }: { event: Event }) {
  const { id, data: { object } } = event;
  const subject = subjectOf(object);
  const live = useLive(
    subject && call("events", "list", { ...subject, starting_after: id, limit: MAX_PAGE }),
  );
  if (event.triggered) return <p class="quiet">A trigger sent it. Nothing changed.</p>;
  if (subject === null) return <p class="quiet">The API has no earlier event to compare with.</p>;
  return (
    <Reading label="the event before" live={live} rows={2}>
      {({ data }) => {
        const before = data.find((other) => !other.triggered && other.data.object.id === object.id);
        if (!before) return <p class="quiet">This is the first event of the {nounOf(object)}.</p>;
        const changes = jsonChanges(before.data.object, object)
          .filter(({ path }) => !ALWAYS.has(path));
        return (
          <>
            <p class="about">
              Since <a href={href(["events", before.id])}>{before.type}</a>,{" "}
              <Time at={before.created_at} />
            </p>
            <ChangeTable
              label="What changed"
              before="Before"
              after="After"
              changes={changes}
              none="No member changed."
            />
          </>
        );
      }}
    </Reading>
  );
}

/** The resource whose events the resource belongs to; null: it is an endpoint. */
function subjectOf(object: Resource) {
  switch (object.object) {
    case "payment":
      return { payment_id: object.id };
    case "transfer":
      return { transfer_id: object.id };
    case "instrument":
      return { instrument_id: object.id };
    case "refund":
    case "dispute":
      return { payment_id: object.payment_id };
    default:
      return null;
  }
}

function nounOf({ object }: Resource): string {
  return object.replaceAll("_", " ");
}

export const EventPage = resourcePage("events", (id) => call("events", "retrieve", id), EventView);
