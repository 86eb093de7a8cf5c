/** A list of webhook deliveries with their attempts. */

import { useState } from "preact/hooks";
import type { DeliveryAttempt, Page, WebhookDelivery } from "../client/mod.ts";
import { call, change } from "./calls.ts";
import { Exchanges } from "./exchanges.tsx";
import { type Failure, failureOf } from "./failure.ts";
import { showFlash } from "./flash.tsx";
import { type Live, useLive } from "./live.ts";
import { Mention } from "./mention.tsx";
import { Empty, FailureNotice, NoItems, Reading } from "./notice.tsx";
import { href } from "./route.ts";
import { Status, Time } from "./text.tsx";

/** The resource that the list shows for each delivery, because the page is about the other one. */
type OtherEnd = "endpoint" | "payment";

/** The list. */
export function Deliveries(props: { live: Live<Page<WebhookDelivery>>; shows: OtherEnd }) {
  const { live, shows } = props;
  return (
    <Reading label="deliveries" live={live} rows={2}>
      {(page) =>
        page.data.length === 0
          ? (
            <NoItems page={page}>
              <Empty title="No deliveries">
                <p>
                  The API sends an event to the <a href={href(["webhooks"])}>webhook endpoints</a>
                  {" "}
                  that exist at that time.
                </p>
              </Empty>
            </NoItems>
          )
          : (
            <ul class="records">
              {page.data.map((delivery) => (
                <Delivery
                  key={delivery.id}
                  delivery={delivery}
                  blocker={page.data.find(({ id }) => id === delivery.blocked_by)}
                  shows={shows}
                />
              ))}
            </ul>
          )}
    </Reading>
  );
}

function Delivery({ delivery, blocker, shows }: {
  delivery: WebhookDelivery;
  /** The delivery that this one waits for, if the page has it. */
  blocker: WebhookDelivery | undefined;
  shows: OtherEnd;
}) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const redeliver = async () => {
    setFailure(null);
    try {
      await change(call("webhookDeliveries", "redeliver", delivery.id));
      showFlash("The API sends the event again.");
    } catch (error) {
      setFailure(failureOf(error));
    }
  };
  return (
    <li>
      <div class="record">
        <Status of={delivery.status} />
        <code>{delivery.event_type}</code>
        {shows === "endpoint"
          ? <Mention section="webhooks" id={delivery.endpoint_id} />
          : delivery.payment_id && <Mention section="payments" id={delivery.payment_id} />}
        <button
          type="button"
          class="small"
          aria-label={`Redeliver ${delivery.event_type}, ${delivery.id}`}
          onClick={redeliver}
        >
          Redeliver
        </button>
      </div>
      <ol class="attempts">
        {delivery.attempts.map((attempt) => (
          <li key={attempt.number}>
            <span>Attempt {attempt.number}</span>
            <span class={isTaken(attempt) ? "answer good" : "answer bad"}>{resultOf(attempt)}</span>
            <span class="quiet">{attempt.duration_ms} ms</span>
            <Time at={attempt.at} />
          </li>
        ))}
        {delivery.next_attempt_at && delivery.blocked_by === undefined && (
          <li class="quiet">
            <span>Next attempt</span>
            <Time at={delivery.next_attempt_at} />
          </li>
        )}
        {delivery.blocked_by !== undefined && (
          <Waiting blocked_by={delivery.blocked_by} blocker={blocker} />
        )}
      </ol>
      {delivery.attempts.length > 0 && <Exchanges delivery={delivery} />}
      {failure && <FailureNotice failure={failure} />}
    </li>
  );
}

/** Names the delivery that another one waits for. Reads it if the page does not have it. */
function Waiting({ blocked_by, blocker }: {
  blocked_by: string;
  blocker: WebhookDelivery | undefined;
}) {
  const { data } = useLive(blocker ? null : call("webhookDeliveries", "retrieve", blocked_by));
  const { event_type, attempts } = blocker ?? data ?? {};
  const last = attempts?.at(-1);
  return (
    <li class="blocked">
      <span title={blocked_by}>
        Waits for <code>{event_type ?? blocked_by}</code> of the same payment
        {last && `, whose attempt ${last.number} failed: ${resultOf(last)}`}
      </span>
    </li>
  );
}

function isTaken({ response_status }: DeliveryAttempt): boolean {
  return response_status !== null && response_status >= 200 && response_status < 300;
}

/** The result of an attempt: the status of the response, or the reason why there is none. */
export function resultOf({ response_status, error }: DeliveryAttempt): string {
  return response_status === null
    ? (error ?? "no answer").replaceAll("_", " ")
    : `${response_status}`;
}
