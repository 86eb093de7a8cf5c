/**
 * A list of webhook deliveries with their attempts: what each sent, and the beginning of the
 * response.
 */

import { useRef, useState } from "preact/hooks";
import type {
  DeliveryAttempt,
  DeliveryExchange,
  Page,
  WebhookDelivery,
} from "../../../packages/client/mod.ts";
import { ActionButton, useAction } from "./action.tsx";
import { isTaken } from "../data/attempts.ts";
import { call } from "../data/calls.ts";
import { Json, jsonText } from "./json.tsx";
import { type Live, useLive } from "../data/live.ts";
import { Reading, ReadingList } from "./notice.tsx";
import { Mention } from "./mention.tsx";
import { href } from "../data/route.ts";
import { CopyButton, Status, Time } from "./text.tsx";

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
  /** Whether a pager follows. */
  is_paged?: boolean;
}) {
  const { live, shows, grouped = false, is_paged = false } = props;
  return (
    <ReadingList
      label="deliveries"
      live={live}
      none="No deliveries"
      about_none={
        <p>
          The API sends an event to the <a href={href(["webhooks"])}>webhook endpoints</a>{" "}
          that exist at that time.
        </p>
      }
      is_paged={is_paged}
    >
      {(deliveries) => (
        <ul class="records">
          {groupsOf(deliveries, grouped).map((group) => (
            <GroupItem key={group.id} group={group} shows={shows} />
          ))}
        </ul>
      )}
    </ReadingList>
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

/**
 * A group. The delivery that blocks others can be on another page, and newer deliveries can move it
 * there while the user reads it: the same component then reads it, so that nothing closes.
 */
function GroupItem({ group, shows }: { group: Group; shows: OtherEnd }) {
  const { id, waiting } = group;
  const live = useLive(group.delivery ? null : call("webhookDeliveries", "retrieve", id));
  const last = useRef<WebhookDelivery | null>(null);
  const delivery = last.current = group.delivery ?? live.data ?? last.current;
  return (
    <li>
      {delivery === null
        ? <Reading label="the delivery that blocks" live={live} rows={1}>{() => null}</Reading>
        : <Delivery delivery={delivery} waiting={waiting} shows={shows} />}
    </li>
  );
}

function Delivery({ delivery, waiting, shows }: {
  delivery: WebhookDelivery;
  /** The deliveries that wait for this one, newest first. */
  waiting: readonly WebhookDelivery[];
  shows: OtherEnd;
}) {
  const action = useAction();
  return (
    <>
      <div class="record">
        <Status of={delivery.status} />
        <code>{delivery.event_type}</code>
        {shows === "endpoint"
          ? <Mention id={delivery.endpoint_id} />
          : delivery.payment_id && <Mention id={delivery.payment_id} />}
        <ActionButton
          of={action}
          class="small"
          label={`Redeliver ${delivery.event_type}, ${delivery.id}`}
          build={(options) => call("webhookDeliveries", "redeliver", delivery.id, options)}
          done="The API sends the event again."
        >
          Redeliver
        </ActionButton>
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
      {action.notice}
    </>
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

/** A part of a delivery that opens. It reads the delivery only while it is open. */
function Exchanges({ delivery }: { delivery: WebhookDelivery }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="exchanges" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Requests and responses</summary>
      {open && <ExchangeList id={delivery.id} />}
    </details>
  );
}

function ExchangeList({ id }: { id: string }) {
  const live = useLive(call("webhookDeliveries", "retrieve", id), { logged: true });
  return (
    <Reading label="the requests and responses" live={live} rows={3}>
      {({ exchanges = [] }) =>
        exchanges.length === 0
          ? (
            <p class="quiet">
              None is kept. The API keeps those of the newest 5 attempts for 7 days.
            </p>
          )
          : exchanges.toReversed().map((exchange) => (
            <ExchangeView key={exchange.attempt} id={id} exchange={exchange} />
          ))}
    </Reading>
  );
}

function ExchangeView(props: { id: string; exchange: DeliveryExchange }) {
  const { id, exchange: { attempt, request, response } } = props;
  const { url, headers, body } = request;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <>
      <div class="record-line">
        <span>Request of attempt {attempt}</span>
        <CopyButton text={body} label={`Copy body of attempt ${attempt}, ${id}`}>
          Copy body
        </CopyButton>
      </div>
      <Json
        value={[`POST ${url}`, ...lines, "", jsonText(body)].join("\n")}
        label={`Request of attempt ${attempt}, ${id}`}
      />
      <p class="record-line">
        {response === null
          ? "There was no response."
          : `Response to attempt ${attempt}${response.truncated ? ": the first kilobyte" : ""}`}
      </p>
      {response && <Json value={response.text} label={`Response to attempt ${attempt}, ${id}`} />}
    </>
  );
}
