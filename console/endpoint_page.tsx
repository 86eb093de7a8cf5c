/** The page of a webhook endpoint: its settings, its new secret and its deliveries. */

import { useEffect, useState } from "preact/hooks";
import type { DeliveryStatus, WebhookEndpoint } from "../client/mod.ts";
import { DELIVERY_STATUSES } from "../shared/core/vocabulary.ts";
import { call, change } from "./calls.ts";
import { Crumb } from "./crumb.tsx";
import { Deliveries } from "./deliveries.tsx";
import { Dialog } from "./dialog.tsx";
import { draftOf, endpointBody, EndpointFields } from "./endpoint_form.tsx";
import { new_secret, NewSecret } from "./endpoint_secret.tsx";
import { type Failure, failureOf } from "./failure.ts";
import { showFlash } from "./flash.tsx";
import { Form, SelectField } from "./form.tsx";
import { InboxCard } from "./inbox_card.tsx";
import { useLive } from "./live.ts";
import { FailureNotice, Reading } from "./notice.tsx";
import { Pager } from "./pager.tsx";
import { go } from "./route.ts";
import { Fact, Facts, Id, Status, Time } from "./text.tsx";
import { TriggerDialog } from "./trigger_dialog.tsx";
import { endpointName, label } from "./words.ts";

/** Number of deliveries on a page. */
const PAGE_SIZE = 20;
/** Seconds until the older secrets expire, with labels. */
const OVERLAPS: readonly (readonly [string, string])[] = [
  ["0", "Now"],
  ["3600", "After one hour"],
  ["86400", "After one day"],
  ["604800", "After one week"],
];

type Open = "edit" | "rotate" | "delete" | "trigger" | null;

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
  const [failure, setFailure] = useState<Failure | null>(null);
  const close = () => setOpen(null);
  const deliveries = useLive(
    call("webhookDeliveries", "list", {
      endpoint_id: endpoint.id,
      limit: PAGE_SIZE,
      ...(query["status"] && { status: query["status"] as DeliveryStatus }),
      ...(query["starting_after"] && { starting_after: query["starting_after"] }),
    }),
  );
  const setStatus = async (status: "enabled" | "disabled") => {
    setFailure(null);
    try {
      await change(call("webhookEndpoints", "update", endpoint.id, { status }));
      showFlash(`Endpoint ${status}.`);
    } catch (error) {
      setFailure(failureOf(error));
    }
  };
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
          <button type="button" onClick={() => setOpen("edit")}>Edit…</button>
          <button type="button" onClick={() => setStatus(is_on ? "disabled" : "enabled")}>
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
      <div class="columns">
        <section class="card main-column" aria-labelledby="deliveries">
          <div class="card-title">
            <h2 id="deliveries">Deliveries</h2>
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
          </div>
          <Deliveries live={deliveries} shows="payment" />
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
          </Facts>
        </section>
      </div>
      {open === "trigger" && <TriggerDialog endpoint_id={endpoint.id} close={close} />}
      {open === "edit" && <EditDialog endpoint={endpoint} close={close} />}
      {open === "rotate" && <RotateDialog endpoint={endpoint} close={close} />}
      {open === "delete" && <DeleteDialog endpoint={endpoint} close={close} />}
    </>
  );
}

interface EndpointDialog {
  endpoint: WebhookEndpoint;
  close: () => void;
}

function EditDialog({ endpoint, close }: EndpointDialog) {
  const [draft, setDraft] = useState(draftOf(endpoint));
  return (
    <Dialog title="Edit the endpoint" close={close}>
      <Form
        label="Edit the endpoint"
        build={(idempotencyKey) => {
          const body = { ...endpointBody(draft), description: draft.description || null };
          return call("webhookEndpoints", "update", endpoint.id, body, { idempotencyKey });
        }}
        done={() => {
          close();
          showFlash("Endpoint changed.");
        }}
        actions={(sending) => (
          <>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Saving…" : "Save"}
            </button>
            <button type="button" onClick={close}>Cancel</button>
          </>
        )}
      >
        <EndpointFields
          draft={draft}
          change={(changed) => setDraft((last) => ({ ...last, ...changed }))}
        />
      </Form>
    </Dialog>
  );
}

function RotateDialog({ endpoint, close }: EndpointDialog) {
  const [expires_in, setExpiresIn] = useState("0");
  return (
    <Dialog title="Rotate the signing secret" close={close}>
      <Form
        label="Rotate the signing secret"
        build={(idempotencyKey) =>
          call(
            "webhookEndpoints",
            "rotateSecret",
            endpoint.id,
            { expires_in: Number(expires_in) },
            { idempotencyKey },
          )}
        done={({ id, secret }) => {
          new_secret.value = { endpoint_id: id, secret };
          close();
          showFlash("Signing secret rotated.");
        }}
        actions={(sending) => (
          <>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Rotating…" : "Rotate secret"}
            </button>
            <button type="button" onClick={close}>Cancel</button>
          </>
        )}
      >
        <SelectField
          label="Older secrets expire"
          params={["expires_in"]}
          value={expires_in}
          set={setExpiresIn}
          options={OVERLAPS}
          hint="Until then each delivery is signed with them too. At most 5 secrets are valid."
        />
      </Form>
    </Dialog>
  );
}

function DeleteDialog({ endpoint, close }: EndpointDialog) {
  return (
    <Dialog title="Delete the endpoint?" close={close}>
      <Form
        label="Delete the endpoint"
        build={(idempotencyKey) =>
          call("webhookEndpoints", "delete", endpoint.id, { idempotencyKey })}
        done={() => {
          close();
          go(["webhooks"]);
          showFlash("Endpoint deleted.");
        }}
        actions={(sending) => (
          <>
            <button type="button" onClick={close} autoFocus>Keep endpoint</button>
            <button type="submit" class="danger" aria-disabled={sending}>
              {sending ? "Deleting…" : "Delete endpoint"}
            </button>
          </>
        )}
      >
        <p>
          The API cancels the deliveries that <code>{endpointName(endpoint)}</code>{" "}
          has not got, and sends nothing more.
        </p>
      </Form>
    </Dialog>
  );
}
