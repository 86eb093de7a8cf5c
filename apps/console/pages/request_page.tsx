/** The page of a request of the log: its bodies, its events, and the way to send it again. */

import type { LoggedRequest } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Card, Columns, resourcePage, Title } from "../parts/page_parts.tsx";
import { DialogButton } from "../parts/dialog.tsx";
import { Json } from "../parts/json.tsx";
import { endOfPath, isChange, isWhole, statusTone } from "../data/logged_request.ts";
import { Mention } from "../parts/mention.tsx";
import { Empty } from "../parts/notice.tsx";
import { RequestTags } from "./other_lists.tsx";
import { href } from "../data/route.ts";
import { SendAgainDialog } from "../forms/send_again_dialog.tsx";
import { session } from "../data/session.ts";
import { SnippetTabs } from "../parts/snippet_tabs.tsx";
import { curlOf, fetchOf, pythonOf } from "../../../tools/generate/code_samples/snippets.ts";
import { CopyButton, Fact, Id, Time } from "../parts/text.tsx";
import { Timeline } from "../parts/timeline.tsx";

function RequestView({ of: request }: { of: LoggedRequest }) {
  return (
    <>
      <Title
        title={
          <>
            <code>{request.method}</code> <code>{endOfPath(request)}</code>
          </>
        }
        is_long
        under={
          <>
            <span class={`status ${statusTone(request.status)}`}>{request.status}</span>
            <RequestTags request={request} />
            {request.resource_id && <Mention id={request.resource_id} />}
            <Time at={request.created_at} />
            <Id id={request.id} />
          </>
        }
      >
        {isWhole(request) && (
          <div class="title-actions">
            <DialogButton text="Send again…" needs={null} class="primary">
              {(close) => <SendAgainDialog request={request} close={close} />}
            </DialogButton>
          </div>
        )}
      </Title>
      <Decision request={request} />
      <Columns details={<Details request={request} />}>
        {isChange(request) && <Body title="Request body" body={request.request_body} />}
        <Body title="Response body" body={request.response_body} />
        <Card title="Events">
          {isChange(request) && !request.idempotent_replay
            ? <Timeline of={{ request_id: request.id }} />
            : <Empty title="None: it changed nothing" />}
        </Card>
        <Card title="The request as code" class="snippets">
          <Snippets request={request} />
        </Card>
      </Columns>
    </>
  );
}

/** The fault that decided the response. Renders nothing if there is none. */
function Decision({ request: { fault, fault_id } }: { request: LoggedRequest }) {
  return fault && (
    <p class="notice warn">
      <strong>
        {fault_id === null ? "A fault that the request asked for" : "A declared fault"}
      </strong>{" "}
      decided the response: <code>{fault}</code> {fault_id && <Mention id={fault_id} />}
    </p>
  );
}

function Body({ title, body }: { title: string; body: LoggedRequest["request_body"] }) {
  const copy = body && (
    <CopyButton text={JSON.stringify(body, null, 2)} label={`Copy the ${title.toLowerCase()}`} />
  );
  return (
    <Card title={title} class="body" actions={copy ?? null}>
      {body ? <Json value={body} label={`${title} as JSON`} /> : (
        <p class="quiet">
          The log has no body. It stores JSON up to 16 KiB, of at most 20 requests a second.
        </p>
      )}
    </Card>
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
  return (
    <>
      <Fact name="Path" code={path} />
      <Fact name="Query" code={query} />
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
        <Mention id={api_key_id} />
      </Fact>
    </>
  );
}

export const RequestPage = resourcePage(
  "requests",
  (id) => call("sandbox", "retrieveRequest", id),
  RequestView,
);
