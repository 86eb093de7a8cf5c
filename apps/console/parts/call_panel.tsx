/** The panel of API calls, with the request, the response, curl and TypeScript of each call. */

import { useEffect, useState } from "preact/hooks";
import { call_log, type LoggedCall, REQUEST } from "../data/calls.ts";
import { jsonText } from "./json.tsx";
import { shortened } from "../data/resource_link.ts";
import { href } from "../data/route.ts";
import { SnippetTabs } from "./snippet_tabs.tsx";
import { curlOf, fetchOf, typescriptOf } from "../../../tools/generate/code_samples/snippets.ts";

/** A bar with the newest call. It opens a list of the logged calls. */
export function CallPanel() {
  const calls = call_log.value;
  const [open, setOpen] = useState(false);
  const [picked, setPicked] = useState<number | null>(null);
  const newest = calls[0];
  // A new call is selected.
  useEffect(() => setPicked(null), [newest?.number]);
  if (!newest) return null;
  const shown = calls.find(({ number }) => number === picked) ?? newest;
  return (
    <section class={open ? "calls open" : "calls"} aria-label="API calls">
      <button
        type="button"
        class="calls-bar"
        aria-expanded={open}
        aria-controls="calls-body"
        onClick={() => setOpen(!open)}
      >
        <span class="calls-label">API calls</span>
        <CallLine logged={open ? shown : newest} />
        <span class="chevron" aria-hidden="true" />
      </button>
      <div id="calls-body" class="calls-body" hidden={!open}>
        {open && (
          <>
            <ol class="calls-list" aria-label="Calls, newest first">
              {calls.map((logged) => (
                <li key={logged.number}>
                  <button
                    type="button"
                    aria-pressed={logged === shown}
                    onClick={() => setPicked(logged.number)}
                  >
                    <CallLine logged={logged} />
                  </button>
                </li>
              ))}
            </ol>
            <CallDetail logged={shown} />
          </>
        )}
      </div>
    </section>
  );
}

function CallLine({ logged: { exchange, call } }: { logged: LoggedCall }) {
  if (!exchange) {
    return <span class="call-line">{call.resource}.{call.method}: waiting for a response</span>;
  }
  const { request, response, duration_ms } = exchange;
  const tone = response === null || response.status >= 400 ? "bad" : "good";
  return (
    <span class="call-line">
      <strong>{request.method}</strong>
      <code>{shortPath(request.url)}</code>
      <span class={`response ${tone}`}>{response?.status ?? "no response"}</span>
      <span class="quiet">{Math.max(1, Math.round(duration_ms))} ms</span>
    </span>
  );
}

/** The path after the name of the function, with shortened ids. */
function shortPath(url: string): string {
  return shortened(pathOf(url).replace(/^\/api-v1-[a-z]+/, ""));
}

/** The path after the base URL. */
function pathOf(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname.slice(Math.max(0, pathname.indexOf("/api-v1-"))) + search;
}

function CallDetail({ logged }: { logged: LoggedCall }) {
  const { exchange, call, base_url } = logged;
  if (!exchange) return <p class="quiet call-detail">Waiting for a response.</p>;
  const { request, response, error } = exchange;
  const texts = {
    Request: message(`${request.method} ${pathOf(request.url)}`, request.headers, request.body),
    Response: response === null
      ? `No response: ${error?.message ?? "the connection failed"}`
      : message(`HTTP ${response.status}`, response.headers, response.body),
    curl: curlOf(request),
    TypeScript: call.resource === REQUEST ? fetchOf(request) : typescriptOf(call, base_url),
  };
  const key = request.headers["Idempotency-Key"];
  return (
    <div class="call-detail">
      <SnippetTabs
        label="The call as"
        texts={texts}
        note={(tab) => {
          if (tab === "curl" || tab === "TypeScript") {
            return "It reads the key from the environment variable PAYMENTS_API_KEY.";
          }
          if (tab !== "Response" || key === undefined) return null;
          return <a href={href(["idempotency_keys", key])}>Stored record of the idempotency key</a>;
        }}
      />
    </div>
  );
}

function message(first: string, headers: Record<string, string>, body: string | null): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [first, ...lines, ...(body ? ["", jsonText(body)] : [])].join("\n");
}
