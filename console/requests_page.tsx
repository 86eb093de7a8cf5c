/** The page "Requests": the log of the requests that the sandbox has answered. */

import type { TargetedEvent } from "preact";
import type { LoggedRequest } from "../client/mod.ts";
import { call } from "./calls.ts";
import { concerns, type Failure, failureOf } from "./failure.ts";
import { FieldFault } from "./form.tsx";
import { useLive } from "./live.ts";
import { Empty, NoItems, Reading } from "./notice.tsx";
import { Pager } from "./pager.tsx";
import { go, href } from "./route.ts";
import { Time } from "./text.tsx";

/** Number of requests on a page. */
const PAGE_SIZE = 20;
/** The filters, with the words of their fields and an example of each. */
const FILTERS = [
  ["status", "HTTP status", "402"],
  ["idempotency_key", "Idempotency key", "order-1001"],
  ["path", "Path", "/api-v1-payments/v1/payments"],
  ["request_id", "Request id", "req_…"],
] as const;
const NAMES = FILTERS.map(([name]) => name);

/** The requests, newest first, with filters. */
export function RequestsPage({ query }: { query: Readonly<Record<string, string>> }) {
  const filters = Object.fromEntries(
    NAMES.flatMap((name) => query[name] ? [[name, query[name]]] : []),
  );
  const live = useLive(
    call("sandbox", "listRequests", {
      limit: PAGE_SIZE,
      ...filters,
      ...(query["starting_after"] && { starting_after: query["starting_after"] }),
    }),
    { logged: true },
  );
  const failure = live.error === null ? null : failureOf(live.error);
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Requests</h1>
      </div>
      <Filters values={filters} failure={failure} />
      {concerns(failure, NAMES)
        ? <Empty title="These filters cannot be applied" />
        : (
          <Reading label="requests" live={live} rows={6}>
            {(page) => (
              <>
                {page.data.length === 0
                  ? (
                    <NoItems page={page}>
                      <NoRequests is_filtered={Object.keys(filters).length > 0} />
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

function NoRequests({ is_filtered }: { is_filtered: boolean }) {
  if (is_filtered) {
    return (
      <Empty title="No request matches">
        <a href={href(["requests"])}>Show all requests</a>
      </Empty>
    );
  }
  return (
    <Empty title="No requests yet">
      <p>
        The requests of your program appear here. Reads from a web page such as this one are left
        out.
      </p>
    </Empty>
  );
}

function Filters(props: { values: Readonly<Record<string, string>>; failure: Failure | null }) {
  const { values, failure } = props;
  const set = (name: string) => (event: TargetedEvent<HTMLInputElement>) =>
    go(["requests"], { ...values, [name]: event.currentTarget.value.trim() }, true);
  return (
    <form
      class="filters"
      role="search"
      aria-label="Filter requests"
      onSubmit={(event) => event.preventDefault()}
    >
      {FILTERS.map(([name, label, example]) => (
        <div key={name} class="filter">
          <label>
            <span>{label}</span>
            <input
              type="text"
              autoComplete="off"
              spellcheck={false}
              placeholder={example}
              value={values[name] ?? ""}
              onChange={set(name)}
              {...(concerns(failure, [name]) &&
                { "aria-invalid": "true" as const, "aria-describedby": `${name}-error` })}
            />
          </label>
          {concerns(failure, [name]) && <FieldFault id={`${name}-error`} failure={failure} />}
        </div>
      ))}
    </form>
  );
}

function RequestTable({ requests, busy }: { requests: readonly LoggedRequest[]; busy: boolean }) {
  return (
    <table class="list" aria-label="Requests" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col">Status</th>
          <th scope="col">Request</th>
          <th scope="col" class="wide-only">Idempotency key</th>
          <th scope="col" class="right wide-only">Duration</th>
          <th scope="col" class="wide-only">Time</th>
        </tr>
      </thead>
      <tbody>
        {requests.map((request) => <RequestRow key={request.id} request={request} />)}
      </tbody>
    </table>
  );
}

function RequestRow({ request }: { request: LoggedRequest }) {
  const { status, method, path, query, error_code, idempotency_key, idempotent_replay } = request;
  const whole = `${method} ${path}${query === null ? "" : `?${query}`}`;
  return (
    <tr>
      <td>
        <span class={`status ${toneOf(status)}`}>{status}</span>
        {error_code !== null && <span class="tag">{error_code}</span>}
        {idempotent_replay && <span class="tag">replay</span>}
      </td>
      <td class="grow" title={`${whole} · ${request.id}`}>
        <code>{whole}</code>
        <span class="phone-only">
          <Time at={request.created_at} />
        </span>
      </td>
      <td class="wide-only">
        {idempotency_key !== null && (
          <a href={href(["requests"], { idempotency_key })} title={idempotency_key}>
            <code>{shortened(idempotency_key)}</code>
          </a>
        )}
      </td>
      <td class="right wide-only">{request.duration_ms} ms</td>
      <td class="when wide-only">
        <Time at={request.created_at} />
      </td>
    </tr>
  );
}

/** Characters of an idempotency key in the table. */
const KEY_CHARACTERS = 14;

function shortened(key: string): string {
  return key.length <= KEY_CHARACTERS ? key : `${key.slice(0, KEY_CHARACTERS - 1)}…`;
}

function toneOf(status: number): "good" | "warn" | "bad" {
  if (status < 400) return "good";
  return status < 500 ? "warn" : "bad";
}
