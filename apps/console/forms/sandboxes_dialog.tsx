/**
 * The dialog of disposable sandboxes: the list, the form that makes one, and the ways into one,
 * also for somebody else. The run of a seeded one can be saved.
 */

import { useState } from "preact/hooks";
import type { ApiKeyWithSecret, DisposableSandbox } from "../../../packages/client/mod.ts";
import { call, perform } from "../data/calls.ts";
import { ActionButton, useAction } from "../parts/action.tsx";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { present } from "./create_body.ts";
import { Dialog, DialogButton } from "../parts/dialog.tsx";
import { useDraft } from "../data/draft.ts";
import { failureOf } from "../data/failure.ts";
import { Choices, SelectField, TextField } from "../parts/fields.tsx";
import { showFlash } from "../data/flash.ts";
import { Form, FormDialog } from "../parts/form.tsx";
import { useLive } from "../data/live.ts";
import { Cut, Reading } from "../parts/notice.tsx";
import { go, href } from "../data/route.ts";
import { saveText } from "../data/save_file.ts";
import { known_sandboxes, type PageKey, session, switchSandbox } from "../data/session.ts";
import { new_secret } from "../parts/secret_card.tsx";
import { Time } from "../parts/text.tsx";
import { hashOfKey } from "../../../packages/sandbox/key_link.ts";
import { SCOPES } from "../../../shared/core/vocabulary.ts";

/** Lifetimes of the form, in seconds. */
const LIFETIMES = [
  ["3600", "One hour"],
  ["86400", "One day"],
  ["604800", "7 days"],
] as const;
const FIRST = { name: "", seed: "", lifetime: "3600" };
/** Seconds until a key ends that the page makes of a sandbox. */
const KEY_S = 86_400;
const SHOWN = 20;

/** Makes disposable sandboxes, switches to them and deletes them. */
export function SandboxesDialog({ close }: { close: () => void }) {
  const { draft: { name, seed, lifetime }, field, kept } = useDraft(FIRST, "sandbox");
  const list = useLive(call("sandboxes", "list", { limit: SHOWN }));
  return (
    <Dialog title="Disposable sandboxes" close={close}>
      <p>
        A disposable sandbox is a new, empty sandbox of this account with a key of its own. It ends
        by itself, and the service deletes its data. To switch to one that a program has made, this
        page makes a key of it, which ends after 24 hours.
      </p>
      <Reading label="the disposable sandboxes" live={list} rows={1}>
        {(page) => (
          <>
            {page.data.length === 0 && <p class="quiet">No disposable sandboxes yet.</p>}
            <ul class="sandboxes">
              {page.data.map((sandbox) => (
                <SandboxItem key={sandbox.id} sandbox={sandbox} close={close} />
              ))}
            </ul>
            <Cut page={page} />
          </>
        )}
      </Reading>
      <Form
        label="Make a disposable sandbox"
        kept={kept}
        build={(options) =>
          call("sandboxes", "create", {
            ...present({ name, seed }),
            expires_in: Number(lifetime),
          }, options)}
        done={({ test_key, ...sandbox }) => {
          close();
          openSandbox(sandbox, { api_key: test_key, scopes: null });
        }}
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

function SandboxItem({ sandbox, close }: { sandbox: DisposableSandbox; close: () => void }) {
  const { id, seed, expires_at } = sandbox;
  const name = sandboxName(sandbox);
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
      <SwitchButton sandbox={sandbox} close={close} />
      <DeleteSandboxButton sandbox={sandbox} name={`Delete ${name}`} />
    </li>
  );
}

export function sandboxName({ name, id }: DisposableSandbox): string {
  return name ?? id;
}

function openSandbox(sandbox: DisposableSandbox, key: PageKey): void {
  switchSandbox(sandbox, key);
  go(["payments"]);
  showFlash(tellOf(sandbox));
}

function tellOf(sandbox: DisposableSandbox): string {
  return `This is the disposable sandbox ${sandboxName(sandbox)}.`;
}

/**
 * The button that continues the session in a sandbox, with the key that the page has, or with a new
 * one that has the scopes of the session.
 */
export function SwitchButton(
  { sandbox, close }: { sandbox: DisposableSandbox; close?: () => void },
) {
  const action = useAction();
  const known = known_sandboxes.value.get(sandbox.id);
  const label = `Switch to ${sandboxName(sandbox)}`;
  const open = (key: PageKey) => {
    close?.();
    openSandbox(sandbox, key);
  };
  if (known) {
    return <button type="button" aria-label={label} onClick={() => open(known)}>Switch</button>;
  }
  const { scopes } = session.value!;
  return (
    <>
      <ActionButton
        of={action}
        label={label}
        build={(options) => ({
          ...call("sandboxes", "createKey", sandbox.id, {
            name: "Console",
            expires_in: KEY_S,
            ...(scopes && { scopes: [...scopes] }),
          }, options),
          take: ({ secret: api_key, scopes }: ApiKeyWithSecret) => open({ api_key, scopes }),
        })}
        done={tellOf(sandbox)}
      >
        Switch
      </ActionButton>
      {action.notice}
    </>
  );
}

/** The button that makes a link to a sandbox for others. The page of the sandbox shows it. */
export function LinkButton({ sandbox }: { sandbox: DisposableSandbox }) {
  return (
    <DialogButton text="Link…" needs="sandboxes.createKey">
      {(close) => <LinkDialog sandbox={sandbox} close={close} />}
    </DialogButton>
  );
}

function LinkDialog({ sandbox: { id }, close }: { sandbox: DisposableSandbox; close: () => void }) {
  const { draft: { may }, change } = useDraft({ may: "read" as "read" | "all" });
  const { scopes } = session.value!;
  return (
    <FormDialog
      title="Make a link"
      close={close}
      build={(options) =>
        call("sandboxes", "createKey", id, {
          name: "Link",
          expires_in: KEY_S,
          ...(may === "read"
            ? { scopes: (scopes ?? SCOPES).filter((scope) => scope.endsWith(":read")) }
            : scopes && { scopes: [...scopes] }),
        }, options)}
      done={({ secret }) => {
        const link = new URL(hashOfKey(secret), location.href).href;
        const about = "It opens this sandbox for 24 hours, without another key.";
        new_secret.value = { of: id, name: "Link", about, secret: link };
        return "Link made.";
      }}
      act="Make link"
      acting="Making it…"
    >
      <p>The link has a key of this sandbox in it. Browsers send that part of a link to nobody.</p>
      <Choices
        label="Whoever opens it"
        name="may"
        value={may}
        set={(may) => change({ may })}
        options={[["read", "only reads"], ["all", "may do what you may"]]}
      />
    </FormDialog>
  );
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
      act="Delete sandbox"
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
