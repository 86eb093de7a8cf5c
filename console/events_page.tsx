/** The page "Events": all events of the sandbox. */

import type { EventType } from "../client/mod.ts";
import { EVENT_TYPES } from "../shared/core/vocabulary.ts";
import { call } from "./calls.ts";
import { type Filter, Filters, readFilters } from "./filters.tsx";
import { useLive } from "./live.ts";
import { Empty, NoItems, Reading } from "./notice.tsx";
import { Pager } from "./pager.tsx";
import { Events } from "./timeline.tsx";

/** Number of events on a page. */
const PAGE_SIZE = 20;
const FILTERS: readonly Filter[] = [
  { name: "type", label: "Type", options: EVENT_TYPES.map((type) => [type, type]) },
];

/** The events with a filter by type. */
export function EventsPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { values } = readFilters(FILTERS, query);
  const { type } = values;
  const { starting_after } = query;
  const live = useLive(
    call("events", "list", {
      limit: PAGE_SIZE,
      ...(type && { type: type as EventType }),
      ...(starting_after && { starting_after }),
    }),
    { logged: true },
  );
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Events</h1>
      </div>
      <Filters
        label="Filter events"
        steps={["events"]}
        filters={FILTERS}
        values={values}
        failure={null}
      />
      <Reading label="events" live={live} rows={6}>
        {(page) => (
          <>
            {page.data.length === 0
              ? (
                <NoItems page={page}>
                  <Empty title={type ? "No event of this type" : "No events yet"} />
                </NoItems>
              )
              : (
                <section class="card" aria-label="Events">
                  <Events events={page.data} is_elsewhere />
                </section>
              )}
            <Pager page={page} query={query} steps={["events"]} />
          </>
        )}
      </Reading>
    </>
  );
}
