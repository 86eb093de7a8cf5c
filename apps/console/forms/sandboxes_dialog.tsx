/** The dialog of disposable sandboxes: the list, and the form that makes one. */

import { useState } from "preact/hooks";
import type { DisposableSandbox } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Dialog } from "../parts/dialog.tsx";
import { DeleteSandboxDialog, openSandbox, sandboxName } from "../parts/disposable_sandbox.tsx";
import { SelectField, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { useLive } from "../data/live.ts";
import { Cut, Reading } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { known_sandboxes } from "../data/session.ts";
import { Time } from "../parts/text.tsx";

/** Lifetimes of the form, in seconds. */
const LIFETIMES = [
  ["3600", "One hour"],
  ["86400", "One day"],
  ["604800", "7 days"],
] as const;
/** Items of the list. */
const SHOWN = 20;

/** Makes disposable sandboxes, switches to them and deletes them. */
export function SandboxesDialog({ close }: { close: () => void }) {
  const [name, setName] = useState("");
  const [seed, setSeed] = useState("");
  const [lifetime, setLifetime] = useState("3600");
  const list = useLive(call("sandboxes", "list", { limit: SHOWN }));
  const [deleting, setDeleting] = useState<DisposableSandbox | null>(null);
  const open = (sandbox: DisposableSandbox, test_key: string) => {
    close();
    openSandbox(sandbox, test_key);
  };
  return (
    <Dialog title="Disposable sandboxes" close={close}>
      <p>
        A disposable sandbox is a new, empty sandbox of this account with a key of its own. It ends
        by itself, and the service deletes its data. This page knows the keys of the sandboxes that
        it has made as long as it knows yours.
      </p>
      <Reading label="the disposable sandboxes" live={list} rows={1}>
        {(page) => (
          <>
            {page.data.length === 0 && <p class="quiet">No disposable sandboxes yet.</p>}
            <ul class="sandboxes">
              {page.data.map((sandbox) => {
                const test_key = known_sandboxes.value.get(sandbox.id);
                return (
                  <li key={sandbox.id}>
                    <div>
                      <a href={href(["sandboxes", sandbox.id])} onClick={close}>
                        <strong>{sandboxName(sandbox)}</strong>
                      </a>
                      <p class="quiet">
                        {sandbox.seed !== null && <>Seed {sandbox.seed}.{" "}</>}
                        Ends <Time at={sandbox.expires_at} />
                      </p>
                    </div>
                    {test_key !== undefined && (
                      <button
                        type="button"
                        aria-label={`Switch to ${sandboxName(sandbox)}`}
                        onClick={() => open(sandbox, test_key)}
                      >
                        Switch
                      </button>
                    )}
                    <button
                      type="button"
                      aria-label={`Delete ${sandboxName(sandbox)}`}
                      onClick={() => setDeleting(sandbox)}
                    >
                      Delete…
                    </button>
                  </li>
                );
              })}
            </ul>
            <Cut page={page} />
          </>
        )}
      </Reading>
      <Form
        label="Make a disposable sandbox"
        build={(options) =>
          call("sandboxes", "create", {
            ...(name !== "" && { name }),
            ...(seed !== "" && { seed }),
            expires_in: Number(lifetime),
          }, options)}
        done={({ test_key, ...sandbox }) => open(sandbox, test_key)}
        actions={(sending) => (
          <>
            <button type="button" onClick={close}>Close</button>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Making it…" : "Make and switch"}
            </button>
          </>
        )}
      >
        <TextField label="Name" params={["name"]} value={name} set={setName} optional />
        <TextField
          label="Seed, for the same ids in every run"
          params={["seed"]}
          value={seed}
          set={setSeed}
          optional
        />
        <SelectField
          label="Ends after"
          params={["expires_in"]}
          value={lifetime}
          set={setLifetime}
          options={LIFETIMES}
        />
      </Form>
      {deleting && <DeleteSandboxDialog sandbox={deleting} close={() => setDeleting(null)} />}
    </Dialog>
  );
}
