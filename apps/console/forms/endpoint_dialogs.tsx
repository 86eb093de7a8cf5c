/** The dialogs that edit and delete a webhook endpoint, and rotate its secret. */

import { useState } from "preact/hooks";
import type { WebhookEndpoint } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Dialog } from "../parts/dialog.tsx";
import { draftOf, endpointBody, EndpointFields } from "./endpoint_form.tsx";
import { new_secret } from "../parts/endpoint_secret.tsx";
import { showFlash } from "../data/flash.ts";
import { SelectField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { go } from "../data/route.ts";
import { endpointName } from "../data/words.ts";

/** Seconds until the older secrets expire, with labels. */
const OVERLAPS: readonly (readonly [string, string])[] = [
  ["0", "Now"],
  ["3600", "After one hour"],
  ["86400", "After one day"],
  ["604800", "After one week"],
];

/** The endpoint of a dialog. */
interface EndpointDialog {
  endpoint: WebhookEndpoint;
  close: () => void;
}

/** Changes the settings of an endpoint. */
export function EditDialog({ endpoint, close }: EndpointDialog) {
  const [draft, setDraft] = useState(draftOf(endpoint));
  return (
    <Dialog title="Edit the endpoint" close={close}>
      <Form
        label="Edit the endpoint"
        build={(options) => {
          const body = {
            // An update without metadata keeps the old one.
            metadata: {},
            ...endpointBody(draft),
            description: draft.description || null,
          };
          return call("webhookEndpoints", "update", endpoint.id, body, options);
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

/** Adds a secret to an endpoint. */
export function RotateDialog({ endpoint, close }: EndpointDialog) {
  const [expires_in, setExpiresIn] = useState("0");
  return (
    <Dialog title="Rotate the signing secret" close={close}>
      <Form
        label="Rotate the signing secret"
        build={(options) =>
          call(
            "webhookEndpoints",
            "rotateSecret",
            endpoint.id,
            { expires_in: Number(expires_in) },
            options,
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

/** Asks for confirmation, then deletes an endpoint. */
export function DeleteDialog({ endpoint, close }: EndpointDialog) {
  return (
    <Dialog title="Delete the endpoint?" close={close}>
      <Form
        label="Delete the endpoint"
        build={(options) => call("webhookEndpoints", "delete", endpoint.id, options)}
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
