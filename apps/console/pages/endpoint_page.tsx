/** The page of a webhook endpoint: its settings, its new secret and its deliveries. */

import type {
  DeliveryStatus,
  ListParams,
  WebhookDelivery,
  WebhookEndpoint,
} from "../../../packages/client/mod.ts";
import { DELIVERY_STATUSES } from "../../../shared/core/vocabulary.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { ActionButton, useAction } from "../parts/action.tsx";
import { call } from "../data/calls.ts";
import { Card, Columns, resourcePage, Title } from "../parts/page_parts.tsx";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { EndpointDeliveries } from "../parts/deliveries.tsx";
import { DialogButton } from "../parts/dialog.tsx";
import { EditDialog, RotateDialog } from "../forms/endpoint_form.tsx";
import { EndpointHealth } from "../parts/endpoint_health.tsx";
import { NewSecret } from "../parts/secret_card.tsx";
import { ExportButton } from "../parts/export_button.tsx";
import { InlineSelect, optionsOf } from "../parts/fields.tsx";
import { InboxCard } from "../parts/inbox_card.tsx";
import { useLive, useNewest } from "../data/live.ts";
import { Pager } from "../parts/list_page.tsx";
import { RecoverDialog, TriggerDialog } from "../forms/delivery_dialogs.tsx";
import { go, type Route } from "../data/route.ts";
import { Fact, Id, MetadataFacts, Status } from "../parts/text.tsx";
import { endpointName, label } from "../data/words.ts";

const PAGE_SIZE = 20;
/** The columns of the file of deliveries. */
const COLUMNS = "id created_at event_type event_id payment_id status attempts.length " +
  "next_attempt_at blocked_by attempts";

function EndpointView({ of: endpoint, query }: { of: WebhookEndpoint; query: Route["query"] }) {
  const action = useAction();
  const newest = useNewest(
    call("webhookDeliveries", "list", { endpoint_id: endpoint.id, limit: MAX_PAGE }),
  );
  const is_on = endpoint.status === "enabled";
  const next = is_on ? "disabled" : "enabled";
  return (
    <>
      <Title
        title={endpointName(endpoint)}
        is_long
        under={
          <>
            <Status of={endpoint.status} />
            {endpoint.failing && <span class="status bad">Failing</span>}
            {endpoint.disabled_reason && <span>{label(endpoint.disabled_reason)}</span>}
            <Id id={endpoint.id} />
          </>
        }
      >
        <div class="title-actions">
          <DialogButton text="Trigger an event…" needs="sandbox.trigger">
            {(close) => <TriggerDialog endpoint_id={endpoint.id} close={close} />}
          </DialogButton>
          {is_on && (
            <DialogButton text="Recover since…" needs="webhookEndpoints.recover">
              {(close) => (
                <RecoverDialog
                  endpoint={endpoint}
                  since={firstMissed(newest?.items ?? []) ?? endpoint.created_at}
                  close={close}
                />
              )}
            </DialogButton>
          )}
          <DialogButton text="Edit…" needs="webhookEndpoints.update">
            {(close) => <EditDialog endpoint={endpoint} close={close} />}
          </DialogButton>
          <ActionButton
            of={action}
            build={(options) =>
              call("webhookEndpoints", "update", endpoint.id, { status: next }, options)}
            done={`Endpoint ${next}.`}
          >
            {is_on ? "Disable" : "Enable"}
          </ActionButton>
          <DialogButton text="Rotate secret…" needs="webhookEndpoints.rotateSecret">
            {(close) => <RotateDialog endpoint={endpoint} close={close} />}
          </DialogButton>
          <DeleteButton endpoint={endpoint} />
        </div>
      </Title>
      {action.notice}
      {endpoint.failing && (
        <div class="notice warn">
          <p>
            <strong>The newest attempt to deliver an event failed.</strong>{" "}
            The API tries it again. Later events of the same payment wait for it.
          </p>
        </div>
      )}
      <NewSecret of={endpoint.id} />
      {endpoint.url === null && <InboxCard endpoint_id={endpoint.id} />}
      {newest && <EndpointHealth deliveries={newest.items} is_cut={newest.is_cut} />}
      <Columns details={<Details endpoint={endpoint} />}>
        <DeliveriesCard endpoint={endpoint} query={query} />
      </Columns>
    </>
  );
}

/** The deliveries, with a filter, pages and a CSV file. */
function DeliveriesCard(
  { endpoint, query }: { endpoint: WebhookEndpoint; query: Route["query"] },
) {
  const steps = ["webhooks", endpoint.id];
  const { status = "", starting_after } = query;
  const read = (params: ListParams) =>
    call("webhookDeliveries", "list", {
      endpoint_id: endpoint.id,
      ...(status !== "" && { status: status as DeliveryStatus }),
      ...params,
    });
  const live = useLive(read({ limit: PAGE_SIZE, ...(starting_after && { starting_after }) }));
  return (
    <Card
      title="Deliveries"
      actions={
        <div class="actions">
          <InlineSelect
            label="Status"
            value={status}
            set={(status) => go(steps, { status }, true)}
            options={[["", "Any"], ...optionsOf(DELIVERY_STATUSES, label)]}
          />
          <ExportButton noun="deliveries" read={read} columns={COLUMNS} />
        </div>
      }
    >
      <EndpointDeliveries live={live} />
      {live.data && <Pager page={live.data} steps={steps} query={query} />}
    </Card>
  );
}

function DeleteButton({ endpoint }: { endpoint: WebhookEndpoint }) {
  return (
    <ConfirmButton
      ask="Delete…"
      class="danger"
      act="Delete endpoint"
      build={(options) => call("webhookEndpoints", "delete", endpoint.id, options)}
      done={() => {
        go(["webhooks"]);
        return "Endpoint deleted.";
      }}
    >
      <p>
        The API cancels the deliveries that <code>{endpointName(endpoint)}</code>{" "}
        has not got, and sends nothing more.
      </p>
    </ConfirmButton>
  );
}

function Details({ endpoint }: { endpoint: WebhookEndpoint }) {
  return (
    <>
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
      <Fact name="Created" at={endpoint.created_at} />
      <Fact name="Updated" at={endpoint.updated_at} />
      <MetadataFacts of={endpoint.metadata} />
    </>
  );
}

/** The time of the oldest delivery that the endpoint has missed, or null. */
function firstMissed(deliveries: readonly WebhookDelivery[]): string | null {
  return deliveries.findLast(({ status }) => status === "failed" || status === "cancelled")
    ?.created_at ?? null;
}

export const EndpointPage = resourcePage(
  "webhooks",
  (id) => call("webhookEndpoints", "retrieve", id),
  EndpointView,
);
