/** A dialog that asks before an action that cannot be undone, and names its effect. */

import type { ComponentChildren } from "preact";
import type { Call } from "./calls.ts";
import { Dialog } from "./dialog.tsx";
import { showFlash } from "./flash.tsx";
import { Form } from "./form.tsx";

/**
 * The dialog. The focus begins at the button that changes nothing.
 * @param props.build describes the call
 * @param props.done the message after it
 */
export function ConfirmDialog<T>(props: {
  title: string;
  /** The effect. */
  children: ComponentChildren;
  /** The button that changes nothing: "Keep payment". */
  keep: string;
  /** The button that acts, and its text meanwhile. */
  act: string;
  acting: string;
  build: (idempotencyKey: string) => Call<T>;
  done: string;
  /** Runs after the call, when the dialog is closed. */
  leave?: () => void;
  close: () => void;
}) {
  const { title, keep, act, acting, close } = props;
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        build={props.build}
        done={() => {
          close();
          props.leave?.();
          showFlash(props.done);
        }}
        actions={(sending) => (
          <>
            <button type="button" onClick={close} autoFocus>{keep}</button>
            <button type="submit" class="danger" aria-disabled={sending}>
              {sending ? acting : act}
            </button>
          </>
        )}
      >
        {props.children}
      </Form>
    </Dialog>
  );
}
