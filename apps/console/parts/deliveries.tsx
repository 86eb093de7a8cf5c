/** Webhook deliveries with their attempts: what each sent, and the beginning of the response. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import type {
  DeliveryAttempt,
  DeliveryExchange,
  Page,
  WebhookDelivery,
} from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { ActionButton, useAction } from "./action.tsx";
import { isTaken } from "../data/attempts.ts";
import { call } from "../data/calls.ts";
import { Json, jsonText } from "./json.tsx";
import type { Subject } from "./ledger.tsx";
import { ListTable } from "./list_table.tsx";
import { type Live, useLive } from "../data/live.ts";
import { Reading, ReadingList } from "./notice.tsx";
import { Mention } from "./mention.tsx";
import { hrefOf } from "../data/resource_link.ts";
import { href } from "../data/route.ts";
import { Breaking, CopyButton, Status, Time } from "./text.tsx";
import { endpointName } from "../data/words.ts";

/** Most waiting events that a delivery names. */
const NAMED = 5;
/** Most failing deliveries that are open below a table. */
const OPEN = 5;
/** Characters of a receiver's reason. */
const REASON = 300;

/**
 * The deliveries of events: a table with a row for each event and a column for each endpoint, and
 * below it those that fail. A row leads to the event, whose page has all of its deliveries.
 */
export function EventDeliveries({ of }: { of: Subject | { event_id: string } }) {
  const live = useLive(call("webhookDeliveries", "list", { ...of, limit: MAX_PAGE }));
  const { data } = useLive(call("webhookEndpoints", "list", { limit: MAX_PAGE }));
  const nameOf = (id: string) => {
    const endpoint = data?.data.find((endpoint) => endpoint.id === id);
    if (!endpoint) return <Mention id={id} />;
    return <a href={hrefOf(id)!}>{endpoint.description ?? endpointName(endpoint)}</a>;
  };
  const listOf = (deliveries: readonly WebhookDelivery[]) => (
    <ul class="records">
      {deliveries.map((delivery) => (
        <li key={delivery.id}>
          <Delivery delivery={delivery} about={nameOf(delivery.endpoint_id)} explains />
        </li>
      ))}
    </ul>
  );
  return (
    <DeliveryList live={live}>
      {(deliveries) => {
        if ("event_id" in of) return listOf(deliveries);
        const failing = deliveries.filter(isFailing);
        return (
          <>
            <Matrix deliveries={deliveries} nameOf={nameOf} />
            {listOf(failing.slice(0, OPEN))}
            {failing.length > OPEN && (
              <p class="quiet">{OPEN} of {failing.length} failing deliveries are open here.</p>
            )}
          </>
        );
      }}
    </DeliveryList>
  );
}

function Matrix({ deliveries, nameOf }: {
  deliveries: readonly WebhookDelivery[];
  nameOf: (endpoint_id: string) => ComponentChildren;
}) {
  const events = Map.groupBy(deliveries, ({ event_id }) => event_id);
  const endpoints = [...new Set(deliveries.map(({ endpoint_id }) => endpoint_id))].sort();
  return (
    <ListTable
      label="Deliveries by event and endpoint"
      items={[...events].map(([id, of]) => ({ id, of }))}
      columns={[
        {
          heading: "Event",
          is_name: true,
          cell: ({ id, of }) => (
            <a class="row-link" href={hrefOf(id)!}>
              <Breaking text={of[0]!.event_type} />
            </a>
          ),
        },
        ...endpoints.map((id) => ({
          heading: nameOf(id),
          cell: ({ of }: { of: readonly WebhookDelivery[] }) =>
            of.filter(({ endpoint_id }) => endpoint_id === id).map(resultText),
        })),
      ]}
    />
  );
}

function resultText({ id, status, attempts, blocked_by }: WebhookDelivery) {
  const last = attempts.at(-1);
  return (
    <span key={id}>
      <span class={last && "from-460"}>
        {blocked_by === undefined ? <Status of={status} /> : <span class="status">Waits</span>}
      </span>{" "}
      {last && <Result of={last} />}
    </span>
  );
}

/** Whether the delivery has failed, or its newest attempt has, so that it is tried again. */
function isFailing({ status, attempts, blocked_by }: WebhookDelivery): boolean {
  if (status !== "pending") return status === "failed";
  const last = attempts.at(-1);
  return last !== undefined && !isTaken(last) && blocked_by === undefined;
}

/** The deliveries to an endpoint. Those that wait are below the one that blocks them. */
export function EndpointDeliveries({ live }: { live: Live<Page<WebhookDelivery>> }) {
  return (
    <DeliveryList live={live} is_paged>
      {(deliveries) => (
        <ul class="records">
          {[...Map.groupBy(deliveries, ({ id, blocked_by }) => blocked_by ?? id)].map((
            [id, of],
          ) => <Group key={id} id={id} of={of} />)}
        </ul>
      )}
    </DeliveryList>
  );
}

function DeliveryList(props: {
  live: Live<Page<WebhookDelivery>>;
  /** Whether a pager follows. */
  is_paged?: boolean;
  children: (deliveries: readonly WebhookDelivery[]) => ComponentChildren;
}) {
  return (
    <ReadingList
      label="deliveries"
      none="No deliveries"
      about_none={
        <p>
          The API sends an event to the <a href={href(["webhooks"])}>webhook endpoints</a>{" "}
          that exist at that time.
        </p>
      }
      {...props}
    />
  );
}

/**
 * A delivery and those that wait for it. It can be on another page, and newer deliveries can move
 * it there while the user reads it: the same component then reads it, so that nothing closes.
 */
function Group({ id, of }: { id: string; of: readonly WebhookDelivery[] }) {
  const shown = of.find((delivery) => delivery.id === id);
  const waiting = of.filter((delivery) => delivery !== shown);
  const live = useLive(shown ? null : call("webhookDeliveries", "retrieve", id));
  const last = useRef<WebhookDelivery | null>(null);
  const delivery = last.current = shown ?? live.data ?? last.current;
  return (
    <li>
      {delivery === null
        ? <Reading label="the delivery that blocks" live={live} rows={1}>{() => null}</Reading>
        : (
          <Delivery
            delivery={delivery}
            about={delivery.payment_id && <Mention id={delivery.payment_id} />}
          >
            {waiting.length > 0 && <WaitingList waiting={waiting} />}
          </Delivery>
        )}
    </li>
  );
}

function Delivery({ delivery, about, explains = false, children }: {
  delivery: WebhookDelivery;
  /** Its endpoint or its payment, of which the page is not. */
  about: ComponentChildren;
  /** Whether the reason of a receiver is shown that has refused the newest attempt. */
  explains?: boolean;
  children?: ComponentChildren;
}) {
  const action = useAction();
  return (
    <>
      <div class="record">
        <Status of={delivery.status} />
        <code>{delivery.event_type}</code>
        {about}
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
            <Result of={attempt} />
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
        {delivery.status === "failed" && delivery.attempts.length === 0 && (
          <li class="quiet">Dropped without an attempt by a declared fault</li>
        )}
      </ol>
      {children}
      {delivery.attempts.length > 0 && (
        <Exchanges id={delivery.id} explains={explains && isFailing(delivery)} />
      )}
      {action.notice}
    </>
  );
}

function Result({ of }: { of: DeliveryAttempt }) {
  return <span class={isTaken(of) ? "response good" : "response bad"}>{resultOf(of)}</span>;
}

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

/** The requests and responses of a delivery. It reads them only while they are open or explain. */
function Exchanges({ id, explains }: { id: string; explains: boolean }) {
  const [open, setOpen] = useState(false);
  const read = open || explains ? call("webhookDeliveries", "retrieve", id) : null;
  const live = useLive(read, { logged: open });
  const { text = "" } = live.data?.exchanges?.at(-1)?.response ?? {};
  const reason = text.replace(/^.*?\r?\n\r?\n/s, "").trim().slice(0, REASON);
  return (
    <>
      {explains && reason && <p class="waiting">The receiver responded: {reason}</p>}
      <details class="exchanges" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>Requests and responses</summary>
        {open && (
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
        )}
      </details>
    </>
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
