/** The table of a list. If it is wider than the screen, it scrolls and the page does not. */

import type { ComponentChildren } from "preact";

/** The table. `busy` means that another page is on its way. */
export function ListTable(
  props: { label: string; busy?: boolean; children: ComponentChildren },
) {
  return (
    <div class="scroll">
      <table class="list" aria-label={props.label} aria-busy={props.busy}>{props.children}</table>
    </div>
  );
}
