/** A row of a list that opens the page of its `row-link`. */

import type { ComponentChildren, TargetedMouseEvent } from "preact";

/**
 * The row. A click on it is a click on its link, also with Ctrl or Shift. The link does not cover
 * the row, so that the user can select its text.
 */
export function LinkedRow({ children }: { children: ComponentChildren }) {
  const open = (event: TargetedMouseEvent<HTMLTableRowElement>) => {
    const is_own = (event.target as Element).closest("a, button") !== null;
    if (is_own || getSelection()?.isCollapsed === false) return;
    const link = event.currentTarget.querySelector("a.row-link")!;
    link.dispatchEvent(new MouseEvent("click", event));
  };
  return <tr onClick={open}>{children}</tr>;
}
