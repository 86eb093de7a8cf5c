/** The page of an event: what changed since the event before, its deliveries and its payload. */

import type { Event } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { Card, resourcePage, Title } from "../parts/page_parts.tsx";
import { Deliveries } from "../parts/deliveries.tsx";
import { ChangeTable, Json, jsonChanges } from "../parts/json.tsx";
import { useLive } from "../data/live.ts";
import { Mention } from "../parts/mention.tsx";
import { Reading } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { CopyButton, Fact, Id, Money, Time } from "../parts/text.tsx";
import { ownerOf } from "../parts/timeline.tsx";
import { itemName } from "../data/titles.ts";
import { eventNote, eventTone } from "../data/words.ts";

type Resource = Event["data"]["object"];

/** The filter of a list of events by the resource of each section. */
const FILTERS = {
  payments: "payment_id",
  transfers: "transfer_id",
  instruments: "instrument_id",
} as const;

/** Members that change with every event. */
const ALWAYS: ReadonlySet<string> = new Set(["sequence", "updated_at"]);

function EventView({ of: event }: { of: Event }) {
  const { id, type, data: { object } } = event;
  const deliveries = useLive(call("webhookDeliveries", "list", { event_id: id, limit: MAX_PAGE }));
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
      <div class="columns">
        <div class="main-column">
          <Card title="What changed">
            <Changes event={event} />
          </Card>
          <Card title="Webhook deliveries">
            <Deliveries live={deliveries} shows="endpoint" />
          </Card>
          <Card
            title="Payload"
            class="body"
            actions={
              <CopyButton text={JSON.stringify(event, null, 2)} label="Copy the payload">
                Copy
              </CopyButton>
            }
          >
            <Json value={event} label={`Payload of ${type}`} />
          </Card>
        </div>
        <Card title="Details" class="side-column details">
          <Details event={event} />
        </Card>
      </div>
    </>
  );
}

function Details({ event: { data: { object }, request, sequence } }: { event: Event }) {
  const owner = ownerOf(object);
  return (
    <dl class="facts">
      {owner && (
        <Fact name={itemName(owner.section)}>
          <Mention id={owner.id} />
        </Fact>
      )}
      {object.object === "webhook_endpoint" && (
        <Fact name="Endpoint">
          <Mention id={object.id} />
        </Fact>
      )}
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
    </dl>
  );
}

/** The members of the resource that differ from the event before, if there is one. */
function Changes({ event }: { event: Event }) {
  const { id, data: { object } } = event;
  const owner = ownerOf(object);
  const subject = owner && { [FILTERS[owner.section]]: owner.id };
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

function nounOf({ object }: Resource): string {
  return object.replaceAll("_", " ");
}

/** The page of an event. */
export const EventPage = resourcePage(
  "events",
  (id) => call("events", "retrieve", id),
  EventView,
);
