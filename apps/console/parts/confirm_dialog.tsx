/** A dialog that asks before an action that cannot be undone, and names its effect. */

import { DialogButton } from "./dialog.tsx";
import { FormDialog, type FormDialogProps } from "./form.tsx";
import { refusalOfCall } from "../data/permissions.ts";

interface ConfirmProps<T> extends Omit<FormDialogProps<T>, "close"> {
  /** The button that changes nothing: "Keep payment". */
  keep: string;
}

/**
 * The dialog; its children tell the effect. The focus begins at the button that changes nothing, or
 * with `begins_at_act` at the one that acts, so that Enter confirms.
 */
export function ConfirmDialog<T>({ keep, ...form }: ConfirmProps<T> & { close: () => void }) {
  const begins_at_keep = !form.begins_at_act;
  return (
    <FormDialog
      {...form}
      act_class="danger"
      before={<button type="button" onClick={form.close} autoFocus={begins_at_keep}>{keep}</button>}
      after={null}
    />
  );
}

/** A button with the text `ask` that opens the dialog, if the key may make the call. */
export function ConfirmButton<T>(
  { ask, class: classes, name, ...dialog }: ConfirmProps<T> & {
    ask: string;
    class?: string;
    /** The name of the button, if its text is not enough. */
    name?: string;
  },
) {
  if (refusalOfCall(dialog.build({}))) return null;
  return (
    <DialogButton text={ask} needs={null} class={classes} label={name}>
      {(close) => <ConfirmDialog {...dialog} close={close} />}
    </DialogButton>
  );
}
