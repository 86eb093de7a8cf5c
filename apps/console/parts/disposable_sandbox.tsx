/** A disposable sandbox: its name, the way into it, and the dialog that deletes it. */

import type { DisposableSandbox } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "./confirm_dialog.tsx";
import { showFlash } from "../data/flash.ts";
import { go } from "../data/route.ts";
import { switchSandbox } from "../data/session.ts";

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

/** Asks for confirmation, then deletes a sandbox. */
export function DeleteSandboxDialog(
  { sandbox, close }: { sandbox: DisposableSandbox; close: () => void },
) {
  const name = sandboxName(sandbox);
  return (
    <ConfirmDialog
      title={`Delete ${name}?`}
      keep="Keep sandbox"
      act="Delete sandbox"
      acting="Deleting…"
      build={(options) => call("sandboxes", "delete", sandbox.id, options)}
      done={`Deleted the sandbox ${name}.`}
      close={close}
    >
      <p>
        Its keys stop working at once, nothing more is sent to its endpoints, and the service
        deletes its data.
      </p>
    </ConfirmDialog>
  );
}
