/** The deliveries in the inbox of an endpoint that its receiver has not acknowledged. */

import type { InboxDelivery, InboxPage } from "../../../packages/client/mod.ts";
import { type Action, ActionButton, useAction } from "./action.tsx";
import { call } from "../data/calls.ts";
import { Card } from "./page_parts.tsx";
import { Json } from "./json.tsx";
import { type Live, useLive } from "../data/live.ts";
import { Empty, Reading } from "./notice.tsx";

/** Most deliveries that the card shows. */
const SHOWN = 20;

/** The card. It reads without a cursor, so it acknowledges nothing until the user asks for it. */
export function InboxCard({ endpoint_id }: { endpoint_id: string }) {
  const action = useAction();
  const live: Live<InboxPage> = useLive(
    call("webhookEndpoints", "inbox", endpoint_id, { limit: SHOWN }),
  );
  return (
    <Card
      title="Inbox"
      actions={live.data && live.data.data.length > 0
        ? <AcknowledgeButton endpoint_id={endpoint_id} page={live.data} action={action} />
        : null}
    >
      {action.notice}
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
    </Card>
  );
}

/** The button that acknowledges the shown deliveries, as a receiver does with its next read. */
function AcknowledgeButton(props: { endpoint_id: string; page: InboxPage; action: Action }) {
  const { endpoint_id, page: { data: { length: count }, next_cursor: after }, action } = props;
  return (
    <ActionButton
      of={action}
      needs="webhooks:write"
      title="They become delivered, and the receiver does not get them any more"
      build={() => call("webhookEndpoints", "inbox", endpoint_id, { after, limit: 1 })}
      done={count === 1 ? "1 delivery acknowledged." : `${count} deliveries acknowledged.`}
    >
      {count === 1 ? "Acknowledge it" : `Acknowledge these ${count}`}
    </ActionButton>
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
