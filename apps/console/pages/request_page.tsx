/** The page of a request of the log: its bodies, its events, and the way to send it again. */

import { useState } from "preact/hooks";
import type { LoggedRequest } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { Crumb } from "../parts/crumb.tsx";
import { Json } from "../parts/json.tsx";
import { useLive } from "../data/live.ts";
import {
  endOfPath,
  isChange,
  isWhole,
  resourceOf,
  statusTone,
  subjectOf,
} from "../data/logged_request.ts";
import { Mention } from "../parts/mention.tsx";
import { Empty, Reading } from "../parts/notice.tsx";
import { RequestTags } from "./requests_page.tsx";
import { hrefOf } from "../data/resource_link.ts";
import { href } from "../data/route.ts";
import { SendAgainDialog } from "../forms/send_again_dialog.tsx";
import { session } from "../data/session.ts";
import { SnippetTabs } from "../parts/snippet_tabs.tsx";
import { curlOf, fetchOf, pythonOf } from "../data/snippets.ts";
import { CopyButton, Fact, Facts, Id, Time } from "../parts/text.tsx";
import { Events } from "../parts/timeline.tsx";

/** The page of a request. */
export function RequestPage({ id }: { id: string }) {
  const live = useLive(call("sandbox", "retrieveRequest", id), { logged: true });
  return (
    <>
      <Crumb section="requests" label="Requests" />
      {live.data === null && <h1 tabIndex={-1}>Request</h1>}
      <Reading label="this request" live={live} rows={5}>
        {(request) => <RequestView request={request} />}
      </Reading>
    </>
  );
}

function RequestView({ request }: { request: LoggedRequest }) {
  const [sending, setSending] = useState(false);
  return (
    <>
      <div class="title payment-title">
        <div>
          <h1 tabIndex={-1} class="url">
            <code>{request.method}</code> <code>{endOfPath(request)}</code>
          </h1>
          <p class="under-title">
            <span class={`status ${statusTone(request.status)}`}>{request.status}</span>
            <RequestTags request={request} />
            <Time at={request.created_at} />
            <Id id={request.id} />
          </p>
        </div>
        {isWhole(request) && (
          <div class="title-actions">
            <button type="button" class="primary" onClick={() => setSending(true)}>
              Send again…
            </button>
          </div>
        )}
      </div>
      <div class="columns">
        <div class="main-column">
          {isChange(request) && (
            <Body title="Request body" id="request-body" body={request.request_body} />
          )}
          <Body title="Response body" id="response-body" body={request.response_body} />
          <section class="card" aria-labelledby="events">
            <h2 id="events">Events</h2>
            <RequestEvents request={request} />
          </section>
          <section class="card snippets" aria-labelledby="snippets">
            <h2 id="snippets">The request as code</h2>
            <Snippets request={request} />
          </section>
        </div>
        <section class="card side-column details" aria-labelledby="details">
          <h2 id="details">Details</h2>
          <Details request={request} />
        </section>
      </div>
      {sending && <SendAgainDialog request={request} close={() => setSending(false)} />}
    </>
  );
}

function Body(props: {
  title: string;
  id: string;
  body: Record<string, unknown> | null | undefined;
}) {
  const { title, id, body = null } = props;
  return (
    <section class="card body" aria-labelledby={id}>
      <div class="card-title">
        <h2 id={id}>{title}</h2>
        {body && (
          <CopyButton
            text={JSON.stringify(body, null, 2)}
            label={`Copy the ${title.toLowerCase()}`}
          >
            Copy
          </CopyButton>
        )}
      </div>
      {body ? <Json value={body} label={`${title} as JSON`} /> : (
        <p class="quiet">
          The log has no body. It stores JSON up to 16 KiB, of at most 20 requests a second.
        </p>
      )}
    </section>
  );
}

/** The events that the request has caused, newest first. */
function RequestEvents({ request }: { request: LoggedRequest }) {
  const subject = isChange(request) && !request.idempotent_replay ? subjectOf(request) : null;
  const live = useLive(subject && call("events", "list", { ...subject, limit: MAX_PAGE }));
  if (subject === null) {
    return (
      <Empty
        title={request.idempotent_replay
          ? "None: a replay changes nothing"
          : "None that a payment or a transfer shows"}
      />
    );
  }
  return (
    <Reading label="events" live={live} rows={2}>
      {({ data }) => {
        const caused = data.filter((event) => event.request.id === request.id);
        return caused.length === 0
          ? <Empty title="None" />
          : <Events events={caused} is_elsewhere />;
      }}
    </Reading>
  );
}

function Snippets({ request }: { request: LoggedRequest }) {
  const { path, query, method, idempotency_key, request_body } = request;
  const is_change = isChange(request);
  const sent = {
    method,
    url: `${session.value!.base_url}${path}${query === null ? "" : `?${query}`}`,
    headers: {
      ...(is_change && { "Content-Type": "application/json" }),
      ...(idempotency_key !== null && { "Idempotency-Key": idempotency_key }),
    },
    body: is_change ? JSON.stringify(request_body ?? {}) : null,
  };
  return (
    <SnippetTabs
      label="The request as"
      texts={{ curl: curlOf(sent), TypeScript: fetchOf(sent), Python: pythonOf(sent) }}
      note={() =>
        "It reads the key from the environment variable PAYMENTS_API_KEY. Replace each … by a value that the log leaves out."}
    />
  );
}

function Details({ request }: { request: LoggedRequest }) {
  const { path, query, idempotency_key, duration_ms, source, api_key_id } = request;
  const resource = resourceOf(request);
  return (
    <Facts>
      {resource !== null && hrefOf(resource) !== null && (
        <Fact name="Resource">
          <Mention id={resource} />
        </Fact>
      )}
      <Fact name="Path">
        <code>{path}</code>
      </Fact>
      <Fact name="Query">{query && <code>{query}</code>}</Fact>
      {idempotency_key !== null && (
        <Fact name="Idempotency key">
          <a href={href(["requests"], { source: "any", idempotency_key })}>
            <code>{idempotency_key}</code>
          </a>
        </Fact>
      )}
      <Fact name="Duration">{Math.max(1, Math.round(duration_ms))} ms</Fact>
      <Fact name="Sent by">{source === "web_page" ? "A web page" : "A program"}</Fact>
      <Fact name="API key">
        <code>{api_key_id}</code>
      </Fact>
    </Facts>
  );
}
