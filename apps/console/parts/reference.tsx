/** Links to the documentation of the API, and the request that a form sends. */

import { apiBaseUrl, isLocalStart } from "../data/api_base_url.ts";
import { Json } from "./json.tsx";

/** The groups of the reference that describe the sections of the console. */
const GROUPS: Readonly<Record<string, string>> = {
  payments: "payments",
  checkouts: "checkouts",
  instruments: "instruments",
  transfers: "transfers",
  balance: "ledger",
  events: "events",
  webhooks: "webhook-endpoints",
  requests: "requests",
  faults: "sandbox",
};

/** The attributes of links that leave the console. In the same tab the page would lose its key. */
const NEW_TAB = { target: "_blank", rel: "noreferrer" } as const;

/**
 * Returns the URL of a place in the reference page, which the local start serves beside the
 * console.
 * @param place a group, or an operation: `payments/POST/api-v1-payments/v1/payments`
 */
function referenceUrl(place: string): string {
  return `../docs/reference/#tag/${place}`;
}

/**
 * A link to the documentation. The local start has a reference page, which opens at the group of
 * the section. Another host has the OpenAPI document of the API.
 */
export function ReferenceLink({ section }: { section?: string | undefined }) {
  if (!isLocalStart()) {
    return (
      <a href={`${apiBaseUrl()}/api-v1-payments/v1/openapi.json`} {...NEW_TAB}>OpenAPI document</a>
    );
  }
  const group = GROUPS[section ?? ""];
  return (
    <a href={group === undefined ? "../docs/reference/" : referenceUrl(group)} {...NEW_TAB}>
      API reference
    </a>
  );
}

/**
 * The method, the path and the body of the request.
 * @param props.group the group of the operation in the reference
 * @param props.body builds the body; its error is shown in place of the body
 */
export function Preview(
  { path, group, body }: { path: string; group: string; body: () => unknown },
) {
  return (
    <aside class="preview" aria-label="The request">
      <p class="preview-title">
        <span>
          <strong>POST</strong> <code>{path}</code>
        </span>
        {isLocalStart() && (
          <a href={referenceUrl(`${group}/POST${path}`)} {...NEW_TAB}>
            Reference
          </a>
        )}
      </p>
      <Json value={previewOf(body)} label="Body of the request" />
    </aside>
  );
}

function previewOf(body: () => unknown): unknown {
  try {
    return body();
  } catch (error) {
    return (error as Error).message;
  }
}
