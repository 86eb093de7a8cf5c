/** The table of every list. It has the columns for which it has the width. */

import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { TableBox } from "./table_box.tsx";
import { Time } from "./text.tsx";
import { TIME_ZONE } from "../data/times.ts";

export interface Column<T> {
  /** Absent for a column of buttons. */
  heading?: ComponentChildren;
  cell: (item: T) => ComponentChildren;
  /**
   * Classes of the cells. Those in `SHARED` are also the heading's. `from-460`, `from-600`,
   * `from-760` and `from-940` tell the width of the table from which it has the column.
   */
  class?: string;
  /** Whether the cells are the headings of their rows. */
  is_name?: boolean;
}

export interface RowAttributes {
  title?: string;
  "aria-current"?: "true" | undefined;
}

/** Classes that a heading shares with its cells. */
const SHARED = /\b(right|from-\d+)\b/g;

/** Returns the column of a time, by default of the creation, with the time zone of all times. */
export function timeColumn<T extends { created_at: string }>(
  name = "Created",
  cell: (item: T) => ComponentChildren = ({ created_at }) => <Time at={created_at} />,
): Column<T> {
  const heading = (
    <>
      {name} <span class="zone">{TIME_ZONE}</span>
    </>
  );
  return { heading, cell, class: "when from-600" };
}

/**
 * The table. `busy` means that another page is on its way. A click on a row is a click on its link
 * of the class `row-link`, also with Ctrl, Shift or the middle button. The link does not cover the
 * row, so that the user can select its text.
 */
export function ListTable<T extends { id: string }>(props: {
  label: string;
  items: readonly T[];
  columns: readonly Column<T>[];
  row?: (item: T) => RowAttributes;
  busy?: boolean;
}) {
  const { label, items, columns, row, busy } = props;
  return (
    <TableBox label={label}>
      <table class="list" aria-label={label} aria-busy={busy}>
        <thead>
          <tr>
            {columns.map(({ heading, class: classes = "" }, at) =>
              heading === undefined
                ? <td key={at}></td>
                : <th key={at} scope="col" class={classes.match(SHARED)?.join(" ")}>{heading}</th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr
              key={item.id}
              onClick={openRow}
              onAuxClick={openRow}
              onMouseDown={stayInPlace}
              {...row?.(item)}
            >
              {columns.map(({ cell, class: classes, is_name }, at) =>
                is_name
                  ? <th key={at} scope="row" class={classes}>{cell(item)}</th>
                  : <td key={at} class={classes}>{cell(item)}</td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}

function openRow(event: TargetedMouseEvent<HTMLTableRowElement>): void {
  const is_own = (event.target as Element).closest("a, button") !== null;
  if (is_own || getSelection()?.isCollapsed === false) return;
  event.currentTarget.querySelector("a.row-link")?.dispatchEvent(new MouseEvent(event.type, event));
}

/** Keeps the middle button from beginning to scroll the page. */
function stayInPlace(event: TargetedMouseEvent<HTMLTableRowElement>): void {
  if (event.button === 1) event.preventDefault();
}
