/** The page of a webhook endpoint: its settings, its new secret and its deliveries. */

import { useEffect, useState } from "preact/hooks";
import type {
  DeliveryStatus,
  ListParams,
  WebhookDelivery,
  WebhookEndpoint,
} from "../../../packages/client/mod.ts";
import { DELIVERY_STATUSES } from "../../../shared/core/vocabulary.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { useAction } from "../data/action.ts";
import { call } from "../data/calls.ts";
import { Crumb } from "../parts/crumb.tsx";
import { Deliveries } from "../parts/deliveries.tsx";
import { DeleteDialog, EditDialog, RotateDialog } from "../forms/endpoint_dialogs.tsx";
import { EndpointHealth } from "../parts/endpoint_health.tsx";
import { new_secret, NewSecret } from "../parts/endpoint_secret.tsx";
import { ExportButton } from "../parts/export_button.tsx";
import { InboxCard } from "../parts/inbox_card.tsx";
import { useLive, useNewest } from "../data/live.ts";
import { FailureNotice, Reading } from "../parts/notice.tsx";
import { Pager } from "../parts/pager.tsx";
import { RecoverDialog } from "../forms/recover_dialog.tsx";
import { go } from "../data/route.ts";
import { Fact, Facts, Id, Status, Time } from "../parts/text.tsx";
import { TriggerDialog } from "../forms/trigger_dialog.tsx";
import { endpointName, label } from "../data/words.ts";

/** Number of deliveries on a page. */
const PAGE_SIZE = 20;
/** The columns of the file of deliveries. */
const COLUMNS = [
  "id",
  "created_at",
  "event_type",
  "event_id",
  "payment_id",
  "status",
  "attempts.length",
  "next_attempt_at",
  "blocked_by",
  "attempts",
];

type Open = "edit" | "rotate" | "delete" | "trigger" | "recover" | null;

/** The page of one endpoint. */
export function EndpointPage(props: { id: string; query: Readonly<Record<string, string>> }) {
  const { id, query } = props;
  const live = useLive(call("webhookEndpoints", "retrieve", id), { logged: true });
  useEffect(() => () => {
    new_secret.value = null;
  }, []);
  return (
    <>
      <Crumb section="webhooks" label="Webhooks" />
      {live.data === null && <h1 tabIndex={-1}>Endpoint</h1>}
      <Reading label="this endpoint" live={live} rows={4}>
        {(endpoint) => <EndpointView endpoint={endpoint} query={query} />}
      </Reading>
    </>
  );
}

function EndpointView(props: {
  endpoint: WebhookEndpoint;
  query: Readonly<Record<string, string>>;
}) {
  const { endpoint, query } = props;
  const [open, setOpen] = useState<Open>(null);
  const { failure, running, run } = useAction();
  const close = () => setOpen(null);
  const read = (params: ListParams) =>
    call("webhookDeliveries", "list", {
      endpoint_id: endpoint.id,
      ...(query["status"] && { status: query["status"] as DeliveryStatus }),
      ...params,
    });
  const { starting_after } = query;
  const deliveries = useLive(read({ limit: PAGE_SIZE, ...(starting_after && { starting_after }) }));
  const newest = useNewest(
    call("webhookDeliveries", "list", { endpoint_id: endpoint.id, limit: MAX_PAGE }),
  );
  const setStatus = (status: "enabled" | "disabled") =>
    run(
      (options) => call("webhookEndpoints", "update", endpoint.id, { status }, options),
      `Endpoint ${status}.`,
    );
  const is_on = endpoint.status === "enabled";
  return (
    <>
      <div class="title payment-title">
        <div>
          <h1 tabIndex={-1} class="url">{endpointName(endpoint)}</h1>
          <p class="under-title">
            <Status of={endpoint.status} />
            {endpoint.failing && <span class="status bad">Failing</span>}
            {endpoint.disabled_reason && <span>{label(endpoint.disabled_reason)}</span>}
            <Id id={endpoint.id} />
          </p>
        </div>
        <div class="title-actions">
          <button type="button" onClick={() => setOpen("trigger")}>Trigger an event…</button>
          {is_on && (
            <button type="button" onClick={() => setOpen("recover")}>
              Recover since…
            </button>
          )}
          <button type="button" onClick={() => setOpen("edit")}>Edit…</button>
          <button
            type="button"
            aria-disabled={running}
            onClick={() => setStatus(is_on ? "disabled" : "enabled")}
          >
            {is_on ? "Disable" : "Enable"}
          </button>
          <button type="button" onClick={() => setOpen("rotate")}>Rotate secret…</button>
          <button type="button" class="danger" onClick={() => setOpen("delete")}>Delete…</button>
        </div>
      </div>
      {failure && <FailureNotice failure={failure} />}
      {endpoint.failing && (
        <div class="notice warn">
          <p>
            <strong>The newest attempt to deliver an event failed.</strong>{" "}
            The API tries it again. Later events of the same payment wait for it.
          </p>
        </div>
      )}
      <NewSecret endpoint_id={endpoint.id} />
      {endpoint.url === null && <InboxCard endpoint_id={endpoint.id} />}
      {newest && <EndpointHealth deliveries={newest.items} is_cut={newest.is_cut} />}
      <div class="columns">
        <section class="card main-column" aria-labelledby="deliveries">
          <div class="card-title">
            <h2 id="deliveries">Deliveries</h2>
            <div class="actions">
              <label class="inline">
                <span>Status</span>
                <select
                  value={query["status"] ?? ""}
                  onChange={(event) =>
                    go(["webhooks", endpoint.id], { status: event.currentTarget.value }, true)}
                >
                  <option value="">Any</option>
                  {DELIVERY_STATUSES.map((status) => (
                    <option key={status} value={status}>{label(status)}</option>
                  ))}
                </select>
              </label>
              <ExportButton noun="deliveries" read={read} columns={COLUMNS} />
            </div>
          </div>
          <Deliveries live={deliveries} shows="payment" grouped />
          {deliveries.data && (
            <Pager page={deliveries.data} steps={["webhooks", endpoint.id]} query={query} />
          )}
        </section>
        <section class="card side-column details" aria-labelledby="details">
          <h2 id="details">Details</h2>
          <Facts>
            <Fact name="Description">{endpoint.description ?? "None"}</Fact>
            <Fact name="Events">
              {endpoint.events.includes("*") ? "All events" : (
                <ul class="plain-list">
                  {endpoint.events.map((name) => (
                    <li key={name}>
                      <code>{name}</code>
                    </li>
                  ))}
                </ul>
              )}
            </Fact>
            <Fact name="Created">
              <Time at={endpoint.created_at} />
            </Fact>
            <Fact name="Updated">
              <Time at={endpoint.updated_at} />
            </Fact>
            {Object.entries(endpoint.metadata).map(([name, value]) => (
              <Fact key={name} name={`metadata.${name}`}>{value}</Fact>
            ))}
          </Facts>
        </section>
      </div>
      {open === "trigger" && <TriggerDialog endpoint_id={endpoint.id} close={close} />}
      {open === "recover" && (
        <RecoverDialog
          endpoint={endpoint}
          since={firstMissed(newest?.items ?? []) ?? endpoint.created_at}
          close={close}
        />
      )}
      {open === "edit" && <EditDialog endpoint={endpoint} close={close} />}
      {open === "rotate" && <RotateDialog endpoint={endpoint} close={close} />}
      {open === "delete" && <DeleteDialog endpoint={endpoint} close={close} />}
    </>
  );
}

/** The time of the oldest delivery that the endpoint has missed, or null. */
function firstMissed(deliveries: readonly WebhookDelivery[]): string | null {
  return deliveries.findLast(({ status }) => status === "failed" || status === "cancelled")
    ?.created_at ?? null;
}
