/** A modal dialog in front of the page. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

/** The dialog is open while it is rendered. It keeps the focus inside; Escape closes it. */
export function Dialog(props: {
  title: string;
  close: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const gone = useRef(false);
  useEffect(() => {
    const element = dialog.current!;
    const opener = document.activeElement;
    element.showModal();
    return () => {
      // The event `close` arrives later. It must not close a dialog that has opened meanwhile.
      gone.current = true;
      element.close();
      // The browser only restores the focus if it has closed the dialog itself.
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={() => gone.current || props.close()}>
      <h2 id={id}>{props.title}</h2>
      {props.children}
    </dialog>
  );
}
