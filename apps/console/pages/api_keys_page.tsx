/**
 * The API keys of the sandbox: the list, a new key, the rotation and the end of a key. A test key
 * reaches the keys of its own sandbox only; only the operator makes live keys (contract §5).
 */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { ApiKey, ApiKeyWithSecret } from "../../../packages/client/mod.ts";
import { EndKeyDialog, isOwn, RotateKeyDialog } from "../forms/api_key_dialogs.tsx";
import { call } from "../data/calls.ts";
import { Crumb } from "../parts/crumb.tsx";
import { showFlash } from "../data/flash.ts";
import { ListPage } from "../parts/list_page.tsx";
import { ListTable } from "../parts/list_table.tsx";
import { useLive } from "../data/live.ts";
import { NewKeyDialog } from "../forms/new_key_dialog.tsx";
import { Reading } from "../parts/notice.tsx";
import { SecretCard } from "../parts/secret_card.tsx";
import { Time, TimeColumn } from "../parts/text.tsx";

/** The columns of the file. */
const COLUMNS = [
  "id",
  "created_at",
  "name",
  "scopes",
  "secrets",
  "last_used_at",
  "expires_at",
  "revoked_at",
];
/** The newest key with its secret. */
const new_key = signal<ApiKeyWithSecret | null>(null);

/** All keys of the sandbox. */
export function ApiKeysPage({ query }: { query: Readonly<Record<string, string>> }) {
  const [making, setMaking] = useState(false);
  const close = () => setMaking(false);
  return (
    <>
      <ListPage
        section="keys"
        title="API keys"
        noun="API keys"
        one="API key"
        query={query}
        filters={[]}
        read={(params) => call("apiKeys", "list", params)}
        columns={COLUMNS}
        action={
          <button type="button" class="primary" onClick={() => setMaking(true)}>
            Make a key…
          </button>
        }
        about={
          <>
            <p class="about-page">
              The test keys of this sandbox. A key can have fewer scopes, an end, and several
              secrets while you rotate it. Only the operator makes live keys.
            </p>
            <NewSecret />
          </>
        }
        empty={<p>This sandbox has no keys.</p>}
      >
        {(keys, busy) => <KeyTable keys={keys} busy={busy} />}
      </ListPage>
      {making && (
        <NewKeyDialog
          done={(key) => {
            new_key.value = key;
            close();
            showFlash(`API key ${key.name} made.`);
          }}
          close={close}
        />
      )}
    </>
  );
}

/** The page of one key. */
export function ApiKeyPage({ id }: { id: string }) {
  const live = useLive(call("apiKeys", "retrieve", id), { logged: true });
  return (
    <>
      <div class="title">
        <Crumb section="keys" label="API keys" />
        <h1 tabIndex={-1}>API key</h1>
      </div>
      <NewSecret />
      <Reading label="this API key" live={live} rows={1}>
        {(key) => <KeyTable keys={[key]} busy={false} />}
      </Reading>
    </>
  );
}

/** The newest secret, until the user dismisses it or leaves the page. */
function NewSecret() {
  useEffect(() => () => {
    new_key.value = null;
  }, []);
  const told = new_key.value;
  return told && (
    <SecretCard
      name="API key"
      about={`Store “${told.name}” in the settings of your program.`}
      secret={told.secret}
      dismiss={() => new_key.value = null}
    />
  );
}

function KeyTable({ keys, busy }: { keys: readonly ApiKey[]; busy: boolean }) {
  const [open, setOpen] = useState<{ dialog: "rotate" | "end"; key: ApiKey } | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <ListTable label="API keys" busy={busy}>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Status</th>
            <th scope="col" class="wide-only">Scopes</th>
            <th scope="col" class="wide-only">Last used</th>
            <TimeColumn />
            <td></td>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <tr key={key.id}>
              <td class="grow" title={key.id}>
                {key.name}
                <p class="quiet">
                  {key.secrets.map(({ prefix, last4 }) => <code key={last4}>{prefix}…{last4}
                  </code>)}
                </p>
              </td>
              <td>
                <KeyStatus of={key} />
                {isOwn(key) && <span class="status info">This page</span>}
              </td>
              <td class="wide-only" title={key.scopes?.join(", ")}>
                {key.scopes === null
                  ? "All"
                  : key.scopes.length === 1
                  ? <code>{key.scopes[0]}</code>
                  : `${key.scopes.length} scopes`}
              </td>
              <td class="when wide-only">
                {key.last_used_at ? <Time at={key.last_used_at} /> : "Never"}
              </td>
              <td class="when wide-only">
                <Time at={key.created_at} />
              </td>
              <td>
                {key.revoked_at === null && (
                  <div class="record-buttons">
                    <button
                      type="button"
                      class="small"
                      aria-label={`Rotate ${key.name}…`}
                      onClick={() => setOpen({ dialog: "rotate", key })}
                    >
                      Rotate…
                    </button>
                    <button
                      type="button"
                      class="small danger"
                      aria-label={`End ${key.name}…`}
                      onClick={() => setOpen({ dialog: "end", key })}
                    >
                      End…
                    </button>
                  </div>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </ListTable>
      {open?.dialog === "rotate" && (
        <RotateKeyDialog
          of={open.key}
          done={(key) => {
            new_key.value = key;
            close();
            showFlash(`API key ${key.name} rotated.`);
          }}
          close={close}
        />
      )}
      {open?.dialog === "end" && <EndKeyDialog of={open.key} close={close} />}
    </>
  );
}

/** Whether a key can be used, and until when. */
function KeyStatus({ of: { revoked_at, expires_at, secrets } }: { of: ApiKey }) {
  if (revoked_at !== null) return <span class="status off">Ended</span>;
  // The clock of the sandbox decides: an expired key has no valid secret.
  if (secrets.length === 0) return <span class="status off">Expired</span>;
  return (
    <>
      <span class="status good">Works</span>
      {expires_at && (
        <span class="quiet">
          until <Time at={expires_at} />
        </span>
      )}
    </>
  );
}
