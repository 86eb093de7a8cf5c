/**
 * The dialog of disposable sandboxes: the list, the form that makes one, and the way into one. The
 * run of a seeded one can be saved.
 */

import { useState } from "preact/hooks";
import type { DisposableSandbox } from "../../../packages/client/mod.ts";
import { call, perform } from "../data/calls.ts";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { present } from "./create_body.ts";
import { Dialog } from "../parts/dialog.tsx";
import { useDraft } from "../data/draft.ts";
import { failureOf } from "../data/failure.ts";
import { SelectField, TextField } from "../parts/fields.tsx";
import { showFlash } from "../data/flash.ts";
import { Form } from "../parts/form.tsx";
import { useLive } from "../data/live.ts";
import { Cut, Reading } from "../parts/notice.tsx";
import { go, href } from "../data/route.ts";
import { saveText } from "../data/save_file.ts";
import { known_sandboxes, switchSandbox } from "../data/session.ts";
import { Time } from "../parts/text.tsx";

/** Lifetimes of the form, in seconds. */
const LIFETIMES = [
  ["3600", "One hour"],
  ["86400", "One day"],
  ["604800", "7 days"],
] as const;
const FIRST = { name: "", seed: "", lifetime: "3600" };
/** Items of the list. */
const SHOWN = 20;

/** Makes disposable sandboxes, switches to them and deletes them. */
export function SandboxesDialog({ close }: { close: () => void }) {
  const { draft: { name, seed, lifetime }, field } = useDraft(FIRST);
  const list = useLive(call("sandboxes", "list", { limit: SHOWN }));
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
              {page.data.map((sandbox) => (
                <SandboxItem key={sandbox.id} sandbox={sandbox} open={open} close={close} />
              ))}
            </ul>
            <Cut page={page} />
          </>
        )}
      </Reading>
      <Form
        label="Make a disposable sandbox"
        build={(options) =>
          call("sandboxes", "create", {
            ...present({ name, seed }),
            expires_in: Number(lifetime),
          }, options)}
        done={({ test_key, ...sandbox }) => open(sandbox, test_key)}
        before={<button type="button" onClick={close}>Close</button>}
        act="Make and switch"
        acting="Making it…"
      >
        <TextField {...field("name", "Name")} optional />
        <TextField {...field("seed", "Seed, for the same ids in every run")} optional />
        <SelectField {...field("lifetime", "Ends after", "expires_in")} options={LIFETIMES} />
      </Form>
    </Dialog>
  );
}

function SandboxItem({ sandbox, open, close }: {
  sandbox: DisposableSandbox;
  open: (sandbox: DisposableSandbox, test_key: string) => void;
  close: () => void;
}) {
  const { id, seed, expires_at } = sandbox;
  const name = sandboxName(sandbox);
  const test_key = known_sandboxes.value.get(id);
  return (
    <li>
      <div>
        <a href={href(["sandboxes", id])} onClick={close}>
          <strong>{name}</strong>
        </a>
        <p class="quiet">
          {seed !== null && <>Seed {seed}.{" "}</>}
          Ends <Time at={expires_at} />
        </p>
      </div>
      {test_key !== undefined && (
        <button
          type="button"
          aria-label={`Switch to ${name}`}
          onClick={() => open(sandbox, test_key)}
        >
          Switch
        </button>
      )}
      <DeleteSandboxButton sandbox={sandbox} name={`Delete ${name}`} />
    </li>
  );
}

/** Returns the name of a sandbox, or its id. */
export function sandboxName({ name, id }: DisposableSandbox): string {
  return name ?? id;
}

/** Continues the session in a sandbox. */
export function openSandbox(sandbox: DisposableSandbox, test_key: string): void {
  switchSandbox(sandbox, test_key);
  go(["payments"]);
  showFlash(`This is the disposable sandbox ${sandboxName(sandbox)}.`);
}

/** The button that deletes a sandbox, after a confirmation. */
export function DeleteSandboxButton(
  { sandbox, ...button }: { sandbox: DisposableSandbox; class?: string; name?: string },
) {
  const title = sandboxName(sandbox);
  return (
    <ConfirmButton
      {...button}
      ask="Delete…"
      title={`Delete ${title}?`}
      keep="Keep sandbox"
      act="Delete sandbox"
      acting="Deleting…"
      build={(options) => call("sandboxes", "delete", sandbox.id, options)}
      done={`Deleted the sandbox ${title}.`}
    >
      <p>
        Its keys stop working at once, nothing more is sent to its endpoints, and the service
        deletes its data.
      </p>
    </ConfirmButton>
  );
}

/** Reads the transcript of the sandbox in use, and saves it as a file. */
export function TranscriptButton({ seed }: { seed: string }) {
  const [running, setRunning] = useState(false);
  const download = async () => {
    if (running) return;
    setRunning(true);
    try {
      const text = await perform(call("sandbox", "transcript"));
      const name = `transcript-${seed.replaceAll(/[^A-Za-z0-9_-]+/g, "-")}.ndjson`;
      saveText(name, "application/x-ndjson", text);
      showFlash(`Saved ${text.split("\n").length - 1} requests as ${name}.`);
    } catch (error) {
      const { message, code } = failureOf(error);
      showFlash(message, "bad", code ?? undefined);
    } finally {
      setRunning(false);
    }
  };
  return (
    <button type="button" class="plain" aria-disabled={running} onClick={download}>
      <span class="wide-only">Save the&nbsp;</span>transcript
    </button>
  );
}
