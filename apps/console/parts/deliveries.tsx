/** A list of webhook deliveries with their attempts. */

import type { DeliveryAttempt, Page, WebhookDelivery } from "../../../packages/client/mod.ts";
import { useAction } from "../data/action.ts";
import { isTaken } from "../data/attempts.ts";
import { call } from "../data/calls.ts";
import { Exchanges } from "./exchanges.tsx";
import { type Live, useLive } from "../data/live.ts";
import { Mention } from "./mention.tsx";
import { Empty, FailureNotice, NoItems, Reading } from "./notice.tsx";
import { href } from "../data/route.ts";
import { Status, Time } from "./text.tsx";

/** The resource that the list shows for each delivery, because the page is about the other one. */
type OtherEnd = "endpoint" | "payment";

/** A delivery, and those that wait for it. */
interface Group {
  /** Its id. The page need not have the delivery. */
  id: string;
  delivery: WebhookDelivery | undefined;
  waiting: WebhookDelivery[];
}

/** Most waiting events that a delivery names. */
const NAMED = 5;

/** The list. With `grouped` the deliveries that wait are below the one that blocks them. */
export function Deliveries(props: {
  live: Live<Page<WebhookDelivery>>;
  shows: OtherEnd;
  grouped?: boolean;
}) {
  const { live, shows, grouped = false } = props;
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
              {groupsOf(page.data, grouped).map(({ id, delivery, waiting }) =>
                delivery
                  ? <Delivery key={id} delivery={delivery} waiting={waiting} shows={shows} />
                  : <Blocker key={id} id={id} waiting={waiting} shows={shows} />
              )}
            </ul>
          )}
    </Reading>
  );
}

/** The groups, in the order of the newest delivery of each. */
function groupsOf(deliveries: readonly WebhookDelivery[], grouped: boolean): Group[] {
  const groups = new Map<string, Group>();
  for (const delivery of deliveries) {
    const blocker_id = grouped ? delivery.blocked_by : undefined;
    const id = blocker_id ?? delivery.id;
    const group = groups.get(id) ?? { id, delivery: undefined, waiting: [] };
    groups.set(id, group);
    if (blocker_id === undefined) group.delivery = delivery;
    else group.waiting.push(delivery);
  }
  return [...groups.values()];
}

/** A delivery that blocks others of the page and is on another page. */
function Blocker(
  { id, waiting, shows }: { id: string; waiting: WebhookDelivery[]; shows: OtherEnd },
) {
  const live = useLive(call("webhookDeliveries", "retrieve", id));
  if (live.data) return <Delivery delivery={live.data} waiting={waiting} shows={shows} />;
  return (
    <li>
      <Reading label="the delivery that blocks" live={live} rows={1}>{() => null}</Reading>
    </li>
  );
}

function Delivery({ delivery, waiting, shows }: {
  delivery: WebhookDelivery;
  /** The deliveries that wait for this one, newest first. */
  waiting: readonly WebhookDelivery[];
  shows: OtherEnd;
}) {
  const { failure, running, run } = useAction();
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
          aria-disabled={running}
          onClick={() =>
            run(
              (options) => call("webhookDeliveries", "redeliver", delivery.id, options),
              "The API sends the event again.",
            )}
        >
          Redeliver
        </button>
      </div>
      <ol class="attempts">
        {delivery.attempts.map((attempt) => (
          <li key={attempt.number}>
            <span>Attempt {attempt.number}</span>
            <span class={isTaken(attempt) ? "response good" : "response bad"}>
              {resultOf(attempt)}
            </span>
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
        {delivery.blocked_by !== undefined && <Waiting blocked_by={delivery.blocked_by} />}
      </ol>
      {waiting.length > 0 && <WaitingList waiting={waiting} />}
      {delivery.attempts.length > 0 && <Exchanges delivery={delivery} />}
      {failure && <FailureNotice failure={failure} />}
    </li>
  );
}

/** Names the later events that wait for a delivery, oldest first. */
function WaitingList({ waiting }: { waiting: readonly WebhookDelivery[] }) {
  const count = waiting.length;
  return (
    <p class="waiting">
      {count === 1 ? "1 later event waits for it: " : `${count} later events wait for it: `}
      {waiting.toReversed().slice(0, NAMED).map(({ id, event_type }, i) => (
        <span key={id}>
          {i > 0 && ", "}
          <code title={id}>{event_type}</code>
        </span>
      ))}
      {count > NAMED && ` and ${count - NAMED} more`}
    </p>
  );
}

/** Names the delivery that another one waits for. */
function Waiting({ blocked_by }: { blocked_by: string }) {
  const { data } = useLive(call("webhookDeliveries", "retrieve", blocked_by));
  const { event_type, attempts } = data ?? {};
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

/** The result of an attempt: the status of the response, or the reason why there is none. */
export function resultOf({ response_status, error }: DeliveryAttempt): string {
  return response_status === null
    ? (error ?? "no response").replaceAll("_", " ")
    : `${response_status}`;
}
