/** The page "Requests": the log of the requests that the sandbox has handled. */

import { Fragment } from "preact";
import type { ListParams, LoggedRequest } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { ExportButton } from "../parts/export_button.tsx";
import { concerns, failureOf } from "../data/failure.ts";
import { type Filter, Filters, readFilters } from "../parts/filters.tsx";
import { LinkedRow } from "../parts/linked_row.tsx";
import { ListTable } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { endOfPath, statusTone } from "../data/logged_request.ts";
import { Mention } from "../parts/mention.tsx";
import { Empty, NoItems, Reading } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { hrefOf, idIn } from "../data/resource_link.ts";
import { href } from "../data/route.ts";
import { Time, TimeColumn } from "../parts/text.tsx";

/** Number of requests on a page. */
const PAGE_SIZE = 20;
/** The value of the filter by source that shows all requests. */
const ANY_SOURCE = "any";
const FILTERS: readonly Filter[] = [
  {
    name: "source",
    label: "Sent by",
    none: "My programs",
    options: [["web_page", "Web pages"], [ANY_SOURCE, "Any"]],
  },
  { name: "status", label: "HTTP status", placeholder: "402 or 4xx" },
  { name: "idempotency_key", label: "Idempotency key", placeholder: "order-1001" },
  { name: "path", label: "Path", placeholder: "/api-v1-payments/v1/payments" },
  { name: "request_id", label: "Request id", placeholder: "req_…" },
];
const NAMES = FILTERS.map(({ name }) => name);
/** The columns of the file. */
const COLUMNS = [
  "id",
  "created_at",
  "method",
  "path",
  "query",
  "status",
  "error_code",
  "idempotency_key",
  "idempotent_replay",
  "duration_ms",
  "api_key_id",
  "source",
];

/** The requests, newest first, with filters. */
export function RequestsPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { values } = readFilters(FILTERS, query);
  const { source = "program", ...others } = values;
  const read = (params: ListParams) =>
    call("sandbox", "listRequests", {
      ...others,
      ...(source !== ANY_SOURCE && { source: source as LoggedRequest["source"] }),
      ...params,
    });
  const { starting_after } = query;
  const live = useLive(
    read({ limit: PAGE_SIZE, ...(starting_after && { starting_after }) }),
    { logged: true },
  );
  const failure = live.error === null ? null : failureOf(live.error);
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Requests</h1>
        <div class="title-actions">
          <ExportButton
            noun="requests"
            read={concerns(failure, NAMES) ? null : read}
            columns={COLUMNS}
          />
        </div>
      </div>
      <p class="about-page">New requests appear by themselves.</p>
      <Filters
        label="Filter requests"
        steps={["requests"]}
        filters={FILTERS}
        values={values}
        failure={failure}
      />
      {concerns(failure, NAMES)
        ? <Empty title="These filters cannot be applied" />
        : (
          <Reading label="requests" live={live} rows={6}>
            {(page) => (
              <>
                {page.data.length === 0
                  ? (
                    <NoItems page={page}>
                      <NoRequests is_filtered={Object.keys(others).length > 0} source={source} />
                    </NoItems>
                  )
                  : <RequestTable requests={page.data} busy={live.is_stale} />}
                <Pager page={page} query={query} steps={["requests"]} />
              </>
            )}
          </Reading>
        )}
    </>
  );
}

function NoRequests({ is_filtered, source }: { is_filtered: boolean; source: string }) {
  if (is_filtered) {
    return (
      <Empty title="No request matches">
        <a href={href(["requests"], { source: "any" })}>Show all requests</a>
      </Empty>
    );
  }
  return (
    <Empty title="No requests yet">
      <p>
        {source === "program"
          ? "The requests of your programs with a key of this sandbox appear here."
          : "Reads from a web page such as this one are left out."}
      </p>
      {source === "program" && (
        <a href={href(["requests"], { source: "any" })}>Show those of this page too</a>
      )}
    </Empty>
  );
}

/** The table of requests. */
export function RequestTable(
  { requests, busy }: { requests: readonly LoggedRequest[]; busy: boolean },
) {
  return (
    <ListTable label="Requests" busy={busy}>
      <thead>
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Request</th>
          <th scope="col" class="wide-only">Resource</th>
          <th scope="col" class="wide-only">Idempotency key</th>
          <th scope="col" class="right wide-only">Duration</th>
          <TimeColumn name="Time" />
        </tr>
      </thead>
      <tbody>
        {requests.map((request) => <RequestRow key={request.id} request={request} />)}
      </tbody>
    </ListTable>
  );
}

function RequestRow({ request }: { request: LoggedRequest }) {
  const { id, status, method, path, query, idempotency_key } = request;
  const resource = idIn(path);
  return (
    <LinkedRow>
      <td>
        <span class={`status ${statusTone(status)}`}>{status}</span>
        <RequestTags request={request} />
      </td>
      <td class="grow whole" title={`${method} ${path}${query === null ? "" : `?${query}`}`}>
        <a class="row-link" href={href(["requests", id])}>
          <code>{method}</code> <Path text={endOfPath(request)} />
        </a>
        <span class="phone-only">
          <Time at={request.created_at} />
        </span>
      </td>
      <td class="wide-only">
        {resource !== null && hrefOf(resource) !== null && <Mention id={resource} />}
      </td>
      <td class="wide-only">
        {idempotency_key !== null && (
          <a
            href={href(["requests"], { source: "any", idempotency_key })}
            title={idempotency_key}
          >
            <code>{cutKey(idempotency_key)}</code>
          </a>
        )}
      </td>
      <td class="right wide-only">{Math.max(1, Math.round(request.duration_ms))} ms</td>
      <td class="when wide-only">
        <Time at={request.created_at} />
      </td>
    </LinkedRow>
  );
}

/** The error code of a request, and whether it is a replay or from a web page. */
export function RequestTags({ request }: { request: LoggedRequest }) {
  const { error_code, idempotent_replay, source } = request;
  return (
    <>
      {error_code !== null && <span class="tag">{error_code}</span>}
      {idempotent_replay && <span class="tag">replay</span>}
      {source === "web_page" && <span class="tag">web page</span>}
    </>
  );
}

/** A path, which can break before each of its steps. Its end tells what the request does. */
function Path({ text }: { text: string }) {
  return (
    <code>
      {text.split(/(?=\/)/).map((step, i) => (
        <Fragment key={i}>
          {step}
          <wbr />
        </Fragment>
      ))}
    </code>
  );
}

/** Characters of an idempotency key in the table. */
const KEY_CHARACTERS = 14;

function cutKey(key: string): string {
  return key.length <= KEY_CHARACTERS ? key : `${key.slice(0, KEY_CHARACTERS - 1)}…`;
}
