/** The events of a payment, newest first, each with the payload that receivers get. */

import { useState } from "preact/hooks";
import type { Event, EventType } from "../client/mod.ts";
import { MAX_PAGE } from "../shared/schema/limits.ts";
import { call } from "./calls.ts";
import { Json } from "./json.tsx";
import { useLive } from "./live.ts";
import { Mention } from "./mention.tsx";
import { Cut, Empty, NoItems, Reading } from "./notice.tsx";
import { Money, Time } from "./text.tsx";
import { eventTitle, eventTone } from "./words.ts";

/** The events of a payment. */
export function Timeline({ payment_id }: { payment_id: string }) {
  const live = useLive(call("events", "list", { payment_id, limit: MAX_PAGE }));
  return (
    <Reading label="events" live={live} rows={2}>
      {(page) =>
        page.data.length === 0
          ? (
            <NoItems page={page}>
              <Empty title="No events" />
            </NoItems>
          )
          : (
            <>
              <Events events={page.data} />
              <Cut page={page} />
            </>
          )}
    </Reading>
  );
}

/** A list of events. With `is_elsewhere` each event shows its amount and a link to its payment. */
export function Events(props: { events: readonly Event[]; is_elsewhere?: boolean }) {
  const { events, is_elsewhere = false } = props;
  return (
    <ol class="timeline">
      {events.map((event, i) => (
        <EventItem
          key={event.id}
          event={event}
          title={eventTitle(event.type, is_elsewhere ? undefined : eventBefore(events, i))}
          is_elsewhere={is_elsewhere}
        />
      ))}
    </ol>
  );
}

/** Returns the type of the payment's event before the one at `index`, if that is its event too. */
function eventBefore(events: readonly Event[], index: number): EventType | undefined {
  const is_change = ({ type, triggered }: Event) => !triggered && type.startsWith("payment.");
  return is_change(events[index]!) ? events.slice(index + 1).find(is_change)?.type : undefined;
}

function EventItem(props: { event: Event; title: string; is_elsewhere: boolean }) {
  const { event, title, is_elsewhere } = props;
  const [open, setOpen] = useState(false);
  const { object } = event.data;
  const payment_id = object.object === "payment"
    ? object.id
    : object.object === "refund" || object.object === "dispute"
    ? object.payment_id
    : null;
  return (
    <li class={eventTone(event.type)}>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class="event-title">
            {title}
            {event.triggered && <span class="tag">triggered</span>}
          </span>
          <code>{event.type}</code>
          {is_elsewhere && "amount_minor" in object && (
            <Money amount_minor={object.amount_minor} currency={object.currency} />
          )}
          <Time at={event.created_at} />
        </summary>
        {open && is_elsewhere && payment_id !== null && (
          <p class="about">
            About <Mention section="payments" id={payment_id} />
          </p>
        )}
        {open && <Json value={event} label={`Payload of ${event.type}`} />}
      </details>
    </li>
  );
}
