/** The list of webhook endpoints, and the page for a new one. */

import { useState } from "preact/hooks";
import type { WebhookEndpoint } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { Crumb } from "../parts/crumb.tsx";
import { draftOf, endpointBody, EndpointFields } from "../forms/endpoint_form.tsx";
import { new_secret } from "../parts/endpoint_secret.tsx";
import { showFlash } from "../data/flash.ts";
import { Form } from "../parts/form.tsx";
import { LinkedRow } from "../parts/linked_row.tsx";
import { ListTable } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { go, href, hrefOfList } from "../data/route.ts";
import { Status, Time, TimeColumn } from "../parts/text.tsx";
import { endpointName } from "../data/words.ts";

/** All endpoints. */
export function EndpointsPage() {
  const live = useLive(call("webhookEndpoints", "list", { limit: MAX_PAGE }), { logged: true });
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Webhooks</h1>
        <a class="button primary" href={href(["webhooks", "new"])}>Add endpoint</a>
      </div>
      <Reading label="endpoints" live={live} rows={3}>
        {({ data }) =>
          data.length === 0
            ? (
              <Empty title="No endpoints yet">
                <p>
                  An endpoint is a URL of yours that gets signed events, or an inbox from which your
                  program reads them.
                </p>
                <a class="button" href={href(["webhooks", "new"])}>Add the first endpoint</a>
              </Empty>
            )
            : <EndpointTable endpoints={data} />}
      </Reading>
    </>
  );
}

function EndpointTable({ endpoints }: { endpoints: readonly WebhookEndpoint[] }) {
  return (
    <ListTable label="Webhook endpoints">
      <thead>
        <tr>
          <th scope="col">URL</th>
          <th scope="col">Status</th>
          <th scope="col">Events</th>
          <TimeColumn />
        </tr>
      </thead>
      <tbody>
        {endpoints.map((endpoint) => (
          <LinkedRow key={endpoint.id}>
            <td class="grow">
              <a class="row-link" href={href(["webhooks", endpoint.id])}>
                {endpointName(endpoint)}
              </a>
              {endpoint.description && <p class="quiet">{endpoint.description}</p>}
            </td>
            <td>
              <Status of={endpoint.status} />
              {endpoint.failing && <span class="status bad">Failing</span>}
            </td>
            <td>
              {endpoint.events.includes("*")
                ? "All events"
                : endpoint.events.length === 1
                ? <code>{endpoint.events[0]}</code>
                : `${endpoint.events.length} types`}
            </td>
            <td class="when wide-only">
              <Time at={endpoint.created_at} />
            </td>
          </LinkedRow>
        ))}
      </tbody>
    </ListTable>
  );
}

/** The page for a new endpoint. */
export function NewEndpointPage() {
  const [draft, setDraft] = useState(draftOf());
  return (
    <>
      <div class="title">
        <Crumb section="webhooks" label="Webhooks" />
        <h1 tabIndex={-1}>Add an endpoint</h1>
      </div>
      <div class="narrow">
        <Form
          label="Add an endpoint"
          build={(options) => call("webhookEndpoints", "create", endpointBody(draft), options)}
          done={({ id, secret }) => {
            new_secret.value = { endpoint_id: id, secret };
            go(["webhooks", id]);
            showFlash("Endpoint added.");
          }}
          actions={(sending) => (
            <>
              <button type="submit" class="primary" aria-disabled={sending}>
                {sending ? "Adding…" : "Add endpoint"}
              </button>
              <a class="button" href={hrefOfList("webhooks")}>Cancel</a>
            </>
          )}
        >
          <EndpointFields
            draft={draft}
            change={(changed) => setDraft((last) => ({ ...last, ...changed }))}
          />
        </Form>
      </div>
    </>
  );
}
