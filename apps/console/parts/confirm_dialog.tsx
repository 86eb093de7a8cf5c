/** A dialog that asks before an action that cannot be undone, and names its effect. */

import { DialogButton } from "./dialog.tsx";
import { FormDialog, type FormDialogProps } from "./form.tsx";
import { refusalOfCall } from "../data/permissions.ts";

/** The texts follow from that of the button that acts, such as `Cancel payment`. */
interface ConfirmProps<T> extends Omit<FormDialogProps<T>, "close" | "title"> {
  /** By default `Cancel the payment?`. */
  title?: string;
  /** The button that changes nothing, by default `Keep payment`. */
  keep?: string;
}

/**
 * The dialog; its children tell the effect. The focus begins at the button that changes nothing, or
 * with `begins_at_act` at the one that acts, so that Enter confirms.
 */
export function ConfirmDialog<T>(props: ConfirmProps<T> & { close: () => void }) {
  const [verb, ...words] = props.act.split(" ");
  const noun = words.join(" ");
  const { title = `${verb} the ${noun}?`, keep = `Keep ${noun}`, ...form } = props;
  const begins_at_keep = !form.begins_at_act;
  return (
    <FormDialog
      {...form}
      title={title}
      act_class="danger"
      before={<button type="button" onClick={form.close} autoFocus={begins_at_keep}>{keep}</button>}
      after={null}
    />
  );
}

/**
 * A button that opens the dialog, if the key may make the call. Its text is `ask`, by default
 * `Cancel payment…`.
 */
export function ConfirmButton<T>(
  { ask, class: classes, name, ...dialog }: ConfirmProps<T> & {
    ask?: string;
    class?: string;
    /** The name of the button, if its text is not enough. */
    name?: string;
  },
) {
  if (refusalOfCall(dialog.build({}))) return null;
  return (
    <DialogButton text={ask ?? `${dialog.act}…`} needs={null} class={classes} label={name}>
      {(close) => <ConfirmDialog {...dialog} close={close} />}
    </DialogButton>
  );
}
