/** A question in front of the page. The browser keeps the keyboard inside. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

/** A modal dialog that is open as long as it is rendered; Escape and the cancel button close it. */
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
      // Its event comes later, when the next dialog may be open already: that one is not meant.
      gone.current = true;
      element.close();
      // The browser gives the focus back only where it has closed the dialog itself.
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
