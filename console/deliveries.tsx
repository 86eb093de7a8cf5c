/** A list of webhook deliveries with their attempts. */

import { useState } from "preact/hooks";
import type { DeliveryAttempt, Page, WebhookDelivery } from "../client/mod.ts";
import { call, change } from "./calls.ts";
import { type Failure, failureOf } from "./failure.ts";
import { showFlash } from "./flash.tsx";
import type { Live } from "./live.ts";
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
                <Delivery key={delivery.id} delivery={delivery} shows={shows} />
              ))}
            </ul>
          )}
    </Reading>
  );
}

function Delivery({ delivery, shows }: { delivery: WebhookDelivery; shows: OtherEnd }) {
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
        {delivery.next_attempt_at && (
          <li class="quiet">
            <span>Next attempt</span>
            <Time at={delivery.next_attempt_at} />
          </li>
        )}
      </ol>
      {failure && <FailureNotice failure={failure} />}
    </li>
  );
}

function isTaken({ response_status }: DeliveryAttempt): boolean {
  return response_status !== null && response_status >= 200 && response_status < 300;
}

/** The result of an attempt: the status of the answer, or the reason why there is none. */
export function resultOf({ response_status, error }: DeliveryAttempt): string {
  return response_status === null
    ? (error ?? "no answer").replaceAll("_", " ")
    : `${response_status}`;
}
