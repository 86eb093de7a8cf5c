/** The dialogs that rotate and end an API key. */

import { useState } from "preact/hooks";
import type { ApiKey, ApiKeyWithSecret } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "../parts/confirm_dialog.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { SelectField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { replaceSecret, session } from "../data/session.ts";

/** Seconds that the older secrets of a rotated key still work, with labels. */
const OVERLAPS: readonly (readonly [string, string])[] = [
  ["0", "Now"],
  ["3600", "After one hour"],
  ["86400", "After one day"],
  ["604800", "After 7 days"],
];

/** Whether the page uses a secret of the key. */
export function isOwn({ secrets }: ApiKey): boolean {
  const { api_key } = session.value!;
  return secrets.some(({ prefix, last4 }) => api_key.startsWith(prefix) && api_key.endsWith(last4));
}

/** Adds a secret to a key. `done` gets the key with its new secret. */
export function RotateKeyDialog(props: {
  of: ApiKey;
  done: (key: ApiKeyWithSecret) => void;
  close: () => void;
}) {
  const { of: key, done, close } = props;
  const [expires_in, setExpiresIn] = useState("86400");
  const is_own = isOwn(key);
  return (
    <Dialog title="Rotate the API key" close={close}>
      <Form
        build={(options) => ({
          ...call("apiKeys", "rotate", key.id, { expires_in: Number(expires_in) }, options),
          ...(is_own && { take: ({ secret }: ApiKeyWithSecret) => replaceSecret(secret) }),
        })}
        done={done}
        actions={(sending) => (
          <>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Rotating…" : "Rotate key"}
            </button>
            <button type="button" onClick={close}>Cancel</button>
          </>
        )}
      >
        <p>
          {key.name} gets a new secret. Its idempotency keys stay valid.
          {is_own && " This page uses the key, and continues with the new secret."}
        </p>
        <SelectField
          label="Older secrets end"
          params={["expires_in"]}
          value={expires_in}
          set={setExpiresIn}
          options={OVERLAPS}
          hint="At most 5 secrets of a key work: a sixth ends the oldest."
        />
      </Form>
    </Dialog>
  );
}

/** Asks for confirmation, then ends a key. */
export function EndKeyDialog({ of: key, close }: { of: ApiKey; close: () => void }) {
  return (
    <ConfirmDialog
      title={`End ${key.name}?`}
      keep="Keep key"
      act="End key"
      acting="Ending…"
      build={(options) => call("apiKeys", "revoke", key.id, options)}
      done={`API key ${key.name} ended.`}
      close={close}
    >
      <p>
        Every program with this key gets 401 at once. An ended key stays ended. The data of the
        sandbox stays.
      </p>
      {isOwn(key) && (
        <p class="notice warn">
          This page uses the key: it will ask for another one. Store another key of this sandbox
          before.
        </p>
      )}
    </ConfirmDialog>
  );
}
