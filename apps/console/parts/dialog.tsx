/** A modal dialog in front of the page. */

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { may, type Need } from "../data/permissions.ts";

/** The dialog is open while it is rendered. It keeps the focus inside; Escape closes it. */
export function Dialog(props: {
  title: string;
  close: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const gone = useRef(false);
  useLayoutEffect(() => {
    const element = dialog.current!;
    const opener = document.activeElement;
    element.showModal();
    return () => {
      // The event `close` arrives later, when a next dialog can be open.
      gone.current = true;
      element.close();
      // The browser only restores the focus if it has closed the dialog itself.
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  // Escape closes the dialog in the event `cancel`. Until `close`, a click on the opener, which has
  // the focus again, would have no effect. The browser can leave `cancel` out.
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={props.close}
      onClose={() => gone.current || props.close()}
    >
      <h2 id={id}>{props.title}</h2>
      {props.children}
    </dialog>
  );
}

/**
 * A button that opens a dialog, if the key may do what the dialog does. `needs` is null if it sends
 * nothing, or if the caller has checked that.
 */
export function DialogButton(props: {
  text: ComponentChildren;
  needs: Need | null;
  class?: string | undefined;
  label?: string | undefined;
  children: (close: () => void) => ComponentChildren;
}) {
  const [open, setOpen] = useState(false);
  if (props.needs !== null && !may(props.needs)) return null;
  return (
    <>
      <button
        type="button"
        class={props.class}
        aria-label={props.label}
        onClick={() => setOpen(true)}
      >
        {props.text}
      </button>
      {open && props.children(() => setOpen(false))}
    </>
  );
}
