/** The page "Events": all events of the sandbox. */

import { EVENT_TYPES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import type { Filter } from "../parts/filters.tsx";
import { ListPage } from "../parts/list_page.tsx";
import { Events } from "../parts/timeline.tsx";

const FILTERS: readonly Filter[] = [
  { name: "type", label: "Type", options: EVENT_TYPES.map((type) => [type, type]) },
];

/** The columns of the file. */
const COLUMNS = [
  "id",
  "created_at",
  "type",
  "sequence",
  "data.object.id",
  "data.object.status",
  "request.id",
  "request.idempotency_key",
];

/** The events with a filter by type. */
export function EventsPage({ query }: { query: Readonly<Record<string, string>> }) {
  return (
    <ListPage
      section="events"
      title="Events"
      noun="events"
      one="event"
      query={query}
      filters={FILTERS}
      read={(params) => call("events", "list", params)}
      columns={COLUMNS}
      empty={<p>Each change of a payment, a refund, a dispute or a transfer makes an event.</p>}
    >
      {(events) => (
        <section class="card" aria-label="Events">
          <Events events={events} is_elsewhere />
        </section>
      )}
    </ListPage>
  );
}
