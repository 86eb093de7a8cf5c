/** The deliveries in the inbox of an endpoint that its receiver has not acknowledged. */

import type { InboxDelivery, InboxPage } from "../../../packages/client/mod.ts";
import { useAction } from "../data/action.ts";
import { call } from "../data/calls.ts";
import { Json } from "./json.tsx";
import { type Live, useLive } from "../data/live.ts";
import { Empty, FailureNotice, Reading } from "./notice.tsx";

/** Most deliveries that the card shows. */
const SHOWN = 20;

/** The card. It reads without a cursor, so it acknowledges nothing until the user asks for it. */
export function InboxCard({ endpoint_id }: { endpoint_id: string }) {
  const { failure, running, run } = useAction();
  const acknowledge = (count: number, after: string) =>
    run(
      () => call("webhookEndpoints", "inbox", endpoint_id, { after, limit: 1 }),
      count === 1 ? "1 delivery acknowledged." : `${count} deliveries acknowledged.`,
    );
  const live: Live<InboxPage> = useLive(
    call("webhookEndpoints", "inbox", endpoint_id, { limit: SHOWN }),
  );
  return (
    <section class="card" aria-labelledby="inbox">
      <div class="card-title">
        <h2 id="inbox">Inbox</h2>
        {live.data && live.data.data.length > 0 && (
          <AcknowledgeButton page={live.data} running={running} acknowledge={acknowledge} />
        )}
      </div>
      {failure && <FailureNotice failure={failure} />}
      <Reading label="the inbox" live={live} rows={2}>
        {({ data, has_more }) =>
          data.length === 0
            ? (
              <Empty title="The inbox is empty">
                <p>Your program has acknowledged every delivery, or there was none.</p>
              </Empty>
            )
            : (
              <>
                <ul class="records">
                  {data.map((delivery) => <Entry key={delivery.id} delivery={delivery} />)}
                </ul>
                {has_more && <p class="quiet">These are the oldest {SHOWN}. There are more.</p>}
              </>
            )}
      </Reading>
    </section>
  );
}

/** The button that acknowledges the shown deliveries, as a receiver does with its next read. */
function AcknowledgeButton(props: {
  page: InboxPage;
  running: boolean;
  acknowledge: (count: number, after: string) => void;
}) {
  const { page: { data, next_cursor }, running, acknowledge } = props;
  return (
    <button
      type="button"
      aria-disabled={running}
      title="They become delivered, and the receiver does not get them any more"
      onClick={() => acknowledge(data.length, next_cursor)}
    >
      {data.length === 1 ? "Acknowledge it" : `Acknowledge these ${data.length}`}
    </button>
  );
}

function Entry({ delivery }: { delivery: InboxDelivery }) {
  const { id, headers, body } = delivery;
  return (
    <li>
      <div class="record">
        <code>{JSON.parse(body).type}</code>
        <span class="quiet">{id}</span>
      </div>
      <details>
        <summary>Headers and body</summary>
        <Json value={headers} label={`Headers of ${id}`} />
        <Json value={body} label={`Body of ${id}`} />
      </details>
    </li>
  );
}
