/** The events of a payment, a transfer, an instrument or a request, newest first, with payloads. */

import { useState } from "preact/hooks";
import type { Event, EventType } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { EventDeliveries } from "./deliveries.tsx";
import { Json } from "./json.tsx";
import type { Subject } from "./ledger.tsx";
import { useLive } from "../data/live.ts";
import { ReadingList } from "./notice.tsx";
import { Money, Time } from "./text.tsx";
import { eventNote, eventTone } from "../data/words.ts";

/** The events. Those of an instrument or a request are events of several resources. */
export function Timeline(
  { of }: { of: Subject | { instrument_id: string } | { request_id: string } },
) {
  const live = useLive(call("events", "list", { ...of, limit: MAX_PAGE }));
  return (
    <ReadingList label="events" live={live} none="No events">
      {(events) => (
        <Events events={events} is_elsewhere={!("payment_id" in of || "transfer_id" in of)} />
      )}
    </ReadingList>
  );
}

/**
 * A list of events. With `is_elsewhere` each event shows its amount and a link to its payment or
 * transfer.
 */
export function Events(props: { events: readonly Event[]; is_elsewhere?: boolean }) {
  const { events, is_elsewhere = false } = props;
  return (
    <ol class="timeline">
      {events.map((event, i) => (
        <EventItem
          key={event.id}
          event={event}
          note={eventNote(event.type, is_elsewhere ? undefined : eventBefore(events, i))}
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

function EventItem(props: { event: Event; note: string | null; is_elsewhere: boolean }) {
  const { event, note, is_elsewhere } = props;
  const [open, setOpen] = useState(false);
  const { object } = event.data;
  return (
    <li class={eventTone(event.type)}>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class="event-title">
            <code>{event.type}</code> {note && <span class="quiet event-note">{note}</span>}
            {event.triggered && <span class="tag">triggered</span>}
          </span>
          {is_elsewhere && "amount_minor" in object && (
            <Money amount_minor={object.amount_minor} currency={object.currency} />
          )}
          <Time at={event.created_at} />
        </summary>
        {open && <Json value={event} label={`Payload of ${event.type}`} />}
        {open && is_elsewhere && (
          <section class="event-deliveries" aria-label="Deliveries of this event">
            <EventDeliveries of={{ event_id: event.id }} />
          </section>
        )}
      </details>
    </li>
  );
}
