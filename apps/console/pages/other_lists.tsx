/** The lists of events, webhook endpoints, logged requests, declared faults and API keys. */

import type {
  ApiKey,
  Event,
  Fault,
  ListParams,
  LoggedRequest,
  WebhookEndpoint,
} from "../../../packages/client/mod.ts";
import { EVENT_TYPES } from "../../../shared/core/vocabulary.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { KeyTable, MakeKeyButton } from "./api_keys.tsx";
import { call } from "../data/calls.ts";
import { FoldedFaults } from "./fault_table.tsx";
import { choiceOf } from "../parts/filters.tsx";
import { type List, tableOf } from "../parts/list_page.tsx";
import { type Column, timeColumn } from "../parts/list_table.tsx";
import { endOfPath, statusTone } from "../data/logged_request.ts";
import { Mention } from "../parts/mention.tsx";
import { href } from "../data/route.ts";
import { NewSecret } from "../parts/secret_card.tsx";
import { Breaking, Status, Time } from "../parts/text.tsx";
import { Events } from "../parts/timeline.tsx";
import { endpointName } from "../data/words.ts";

export const EVENTS: List<Event> = {
  section: "events",
  filters: () => [
    choiceOf("type", "Type", EVENT_TYPES, String),
    { name: "request_id", label: "Request id", placeholder: "req_…" },
  ],
  read: (params) => call("events", "list", params),
  csv: "id created_at type sequence data.object.id data.object.status request.id " +
    "request.idempotency_key",
  empty: () => <p>Each change of a payment, a refund, a dispute or a transfer makes an event.</p>,
  show: (events) => (
    <section class="card" aria-label="Events">
      <Events events={events} is_elsewhere />
    </section>
  ),
};

export const ENDPOINTS: List<WebhookEndpoint> = {
  section: "webhooks",
  page_size: MAX_PAGE,
  read: (params) => call("webhookEndpoints", "list", params),
  empty: () => (
    <p>
      An endpoint is a URL of yours that gets signed events, or an inbox from which your program
      reads them.
    </p>
  ),
  show: tableOf("Webhook endpoints", [
    {
      heading: "URL",
      class: "grow",
      cell: (endpoint) => (
        <>
          <a class="row-link" href={href(["webhooks", endpoint.id])}>{endpointName(endpoint)}</a>
          {endpoint.description && <p class="quiet">{endpoint.description}</p>}
        </>
      ),
    },
    {
      heading: "Status",
      cell: ({ status, failing }) => (
        <>
          <Status of={status} />
          {failing && <span class="status bad">Failing</span>}
        </>
      ),
    },
    {
      heading: "Events",
      class: "from-460",
      cell: ({ events }) =>
        events.includes("*")
          ? "All events"
          : events.length === 1
          ? <code>{events[0]}</code>
          : `${events.length} types`,
    },
    timeColumn(),
  ]),
};

/** The value of the filter by source that shows all requests. */
const ANY_SOURCE = "any";

const KEY_CHARACTERS = 14;

const REQUEST_COLUMNS: readonly Column<LoggedRequest>[] = [
  {
    heading: "Status",
    cell: ({ status }) => <span class={`status ${statusTone(status)}`}>{status}</span>,
  },
  {
    heading: "Request",
    class: "grow whole",
    cell: (request) => (
      <>
        <a class="row-link" href={href(["requests", request.id])}>
          <code>{request.method}</code> <Breaking text={endOfPath(request)} />
        </a>
        <RequestTags request={request} />
        <span class="until-600">
          <Time at={request.created_at} />
        </span>
      </>
    ),
  },
  {
    heading: "Resource",
    class: "from-460",
    cell: ({ resource_id, method }) =>
      resource_id
        ? <Mention id={resource_id} />
        : method === "POST" && <span class="quiet">None</span>,
  },
  {
    heading: "Idempotency key",
    class: "from-940",
    cell: ({ idempotency_key: key }) =>
      key !== null && (
        <a href={href(["requests"], { source: ANY_SOURCE, idempotency_key: key })} title={key}>
          <code>
            {key.length <= KEY_CHARACTERS ? key : `${key.slice(0, KEY_CHARACTERS - 1)}…`}
          </code>
        </a>
      ),
  },
  {
    heading: "Duration",
    class: "right from-760",
    cell: ({ duration_ms }) => `${Math.max(1, Math.round(duration_ms))} ms`,
  },
  timeColumn("Time"),
];

export const REQUESTS: List<LoggedRequest> = {
  section: "requests",
  filters: () => [
    {
      name: "source",
      label: "Sent by",
      none: "My programs",
      options: [["web_page", "Web pages"], [ANY_SOURCE, "Any"]],
    },
    { name: "status", label: "HTTP status", placeholder: "402, 4xx or error" },
    { name: "idempotency_key", label: "Idempotency key", placeholder: "order-1001" },
    { name: "path", label: "Path", placeholder: "/api-v1-payments/v1/payments" },
    { name: "request_id", label: "Request id", placeholder: "req_…" },
    { name: "resource_id", label: "Resource", placeholder: "pay_…" },
    { name: "fault_id", label: "Fault", placeholder: "flt_…" },
  ],
  all: { source: ANY_SOURCE },
  read: ({ source = "program", ...others }: ListParams & { source?: string }) =>
    call("sandbox", "listRequests", {
      ...others,
      ...(source !== ANY_SOURCE && { source: source as LoggedRequest["source"] }),
    }),
  csv: "id created_at method path query status error_code idempotency_key idempotent_replay " +
    "duration_ms api_key_id source resource_id fault fault_id",
  about: () => <p class="about-page">New requests appear by themselves.</p>,
  empty: ({ source }) =>
    source ? <p>Reads from a web page such as this one are left out.</p> : (
      <>
        <p>The requests of your programs with a key of this sandbox appear here.</p>
        <a href={href(["requests"], { source: ANY_SOURCE })}>Show those of this page too</a>
      </>
    ),
  show: tableOf("Requests", REQUEST_COLUMNS, titleOf),
};

function titleOf({ method, path, query }: LoggedRequest) {
  return { title: `${method} ${path}${query === null ? "" : `?${query}`}` };
}

/** The error code of a request, its fault, and whether it is a replay or from a web page. */
export function RequestTags({ request }: { request: LoggedRequest }) {
  const { error_code, fault, idempotent_replay, source } = request;
  return (
    <>
      {error_code !== null && <span class="tag">{error_code}</span>}
      {fault !== null && <span class="tag">fault</span>}
      {idempotent_replay && <span class="tag">replay</span>}
      {source === "web_page" && <span class="tag">web page</span>}
    </>
  );
}

export const FAULTS: List<Fault> = {
  section: "faults",
  read: (params) => call("sandbox", "listFaults", params),
  empty: () => (
    <p>
      A fault makes the next matching request, delivery or call to the simulated provider fail.
    </p>
  ),
  show: (faults) => <FoldedFaults faults={faults} />,
};

export const KEYS: List<ApiKey> = {
  section: "keys",
  read: (params) => call("apiKeys", "list", params),
  csv: "id created_at name scopes secrets last_used_at expires_at revoked_at",
  action: <MakeKeyButton />,
  about: () => (
    <>
      <p class="about-page">
        The test keys of this sandbox. A key can have fewer scopes, an end, and several secrets
        while you rotate it. Only the operator makes live keys.
      </p>
      <NewSecret of="keys" />
    </>
  ),
  empty: () => <p>This sandbox has no keys.</p>,
  show: (keys, busy) => <KeyTable keys={keys} busy={busy} />,
};
