/** A dialog that asks before an action that cannot be undone, and names its effect. */

import type { ComponentChildren } from "preact";
import { Dialog } from "./dialog.tsx";
import { showFlash } from "../data/flash.ts";
import { Form } from "./form.tsx";
import type { Build } from "../data/retry_key.ts";

/**
 * The dialog. The focus begins at the button that changes nothing, or with `begins_at_act` at the
 * one that acts, so that Enter confirms.
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
  begins_at_act?: boolean;
  build: Build<T>;
  done: string | ((response: T) => string);
  /** Runs after the call, when the dialog is closed. */
  leave?: (() => void) | undefined;
  close: () => void;
}) {
  const { title, keep, act, acting, begins_at_act = false, close } = props;
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        build={props.build}
        done={(response) => {
          close();
          props.leave?.();
          showFlash(typeof props.done === "string" ? props.done : props.done(response));
        }}
        actions={(sending) => (
          <>
            <button type="button" onClick={close} autoFocus={!begins_at_act}>{keep}</button>
            <button
              type="submit"
              class="danger"
              aria-disabled={sending}
              autoFocus={begins_at_act}
            >
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
