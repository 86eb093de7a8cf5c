/**
 * The API keys of the sandbox: their table, a new key, the rotation and the end of a key. A test
 * key reaches the keys of its own sandbox only; only the operator makes live keys (contract §5).
 */

import type { ApiKey, ApiKeyWithSecret } from "../../../packages/client/mod.ts";
import { isOwn, NewKeyDialog, RotateKeyDialog } from "../forms/api_key_dialogs.tsx";
import { call } from "../data/calls.ts";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { DialogButton } from "../parts/dialog.tsx";
import { ListTable, timeColumn } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { Reading } from "../parts/notice.tsx";
import { Title } from "../parts/page_parts.tsx";
import { href } from "../data/route.ts";
import { new_secret, NewSecret } from "../parts/secret_card.tsx";
import { Time } from "../parts/text.tsx";

export function ApiKeyPage({ id }: { id: string }) {
  const live = useLive(call("apiKeys", "retrieve", id), { logged: true });
  return (
    <>
      <Title crumb="keys" title="API key" />
      <NewSecret of="keys" />
      <Reading label="this API key" live={live} rows={1}>
        {(key) => <KeyTable keys={[key]} />}
      </Reading>
    </>
  );
}

export function MakeKeyButton() {
  return (
    <DialogButton text="Make a key…" needs="apiKeys.create" class="primary">
      {(close) => <NewKeyDialog done={tellOf("made")} close={close} />}
    </DialogButton>
  );
}

/** Shows the secret of a key that was made or rotated. Returns the message. */
const tellOf = (change: string) => (key: ApiKeyWithSecret) => {
  const about = `Store “${key.name}” in the settings of your program.`;
  new_secret.value = { of: "keys", name: "API key", about, secret: key.secret };
  return `API key ${key.name} ${change}.`;
};

export function KeyTable({ keys, busy = false }: { keys: readonly ApiKey[]; busy?: boolean }) {
  return (
    <ListTable
      label="API keys"
      items={keys}
      busy={busy}
      row={({ id }) => ({ title: id })}
      columns={[
        {
          heading: "Name",
          class: "grow whole",
          cell: ({ id, name, secrets, expires_at }) => (
            <>
              {name}
              <p class="quiet">
                {secrets.map(({ prefix, last4 }) => <code key={last4}>{prefix}…{last4}</code>)}{" "}
                {secrets.length > 0 && expires_at && (
                  <>
                    until <Time at={expires_at} /> ·{" "}
                  </>
                )}
                <a href={href(["requests"], { source: "any", resource_id: id })}>Its requests</a>
              </p>
            </>
          ),
        },
        {
          heading: "Status",
          cell: (key) => (
            <>
              <KeyStatus of={key} />
              {isOwn(key) && <span class="status info">This page</span>}
            </>
          ),
        },
        { heading: "Scopes", class: "from-760", cell: ({ scopes }) => <Scopes of={scopes} /> },
        {
          heading: "Last used",
          class: "when from-940",
          cell: ({ last_used_at }) => last_used_at ? <Time at={last_used_at} /> : "Never",
        },
        timeColumn(),
        { cell: (key) => key.revoked_at === null && <KeyButtons of={key} /> },
      ]}
    />
  );
}

function Scopes({ of: scopes }: { of: ApiKey["scopes"] }) {
  if (scopes === null) return <>All</>;
  return (
    <span title={scopes.join(", ")}>
      {scopes.length === 1 ? <code>{scopes[0]}</code> : `${scopes.length} scopes`}
    </span>
  );
}

function KeyButtons({ of: key }: { of: ApiKey }) {
  return (
    <div class="record-buttons">
      <DialogButton
        text="Rotate…"
        needs="apiKeys.rotate"
        class="small"
        label={`Rotate ${key.name}…`}
      >
        {(close) => <RotateKeyDialog of={key} done={tellOf("rotated")} close={close} />}
      </DialogButton>
      <ConfirmButton
        ask="End…"
        class="small danger"
        name={`End ${key.name}…`}
        title={`End ${key.name}?`}
        act="End key"
        build={(options) => call("apiKeys", "revoke", key.id, options)}
        done={`API key ${key.name} ended.`}
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
      </ConfirmButton>
    </div>
  );
}

function KeyStatus({ of: { revoked_at, secrets } }: { of: ApiKey }) {
  if (revoked_at !== null) return <span class="status off">Ended</span>;
  // The clock of the sandbox decides: an expired key has no valid secret.
  if (secrets.length === 0) return <span class="status off">Expired</span>;
  return <span class="status good">Works</span>;
}
