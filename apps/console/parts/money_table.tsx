/** The table of payments, refunds, disputes or transfers. Its rows open the page of their link. */

import type { ComponentChildren } from "preact";
import type { Dispute, Payment, Refund, Transfer } from "../../../packages/client/mod.ts";
import { LinkedRow } from "./linked_row.tsx";
import { ListTable } from "./list_table.tsx";
import { PayeeMark } from "./payee_check.tsx";
import { Money, Status, Time, TimeColumn } from "./text.tsx";

/** A column between the status and the time. */
interface MoneyColumn<T> {
  heading: string;
  /** Its class on a wide screen, where the others are not shown. Absent: shown on a phone too. */
  wide?: "grow" | "cut" | "when";
  cell: (item: T) => ComponentChildren;
}

/** The table. `busy` means that another page is on its way. */
export function MoneyTable<T extends Payment | Refund | Dispute | Transfer>(props: {
  label: string;
  items: readonly T[];
  busy: boolean;
  /** The address of the page that a row opens. */
  link: (item: T) => string;
  columns: readonly MoneyColumn<T>[];
}) {
  const { label, items, busy, link, columns } = props;
  return (
    <ListTable label={label} busy={busy}>
      <thead>
        <tr>
          <th scope="col" class="right">Amount</th>
          <th scope="col">Status</th>
          {columns.map(({ heading, wide }) => (
            <th key={heading} scope="col" class={wide && "wide-only"}>{heading}</th>
          ))}
          <TimeColumn />
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <LinkedRow key={item.id}>
            <td class="right">
              <a class="row-link" href={link(item)}>
                <Money amount_minor={item.amount_minor} currency={item.currency} />
              </a>
              <span class="phone-only">
                <Time at={item.created_at} />
              </span>
            </td>
            <td>
              <Status of={item.status} />
              {"payee_check" in item && <PayeeMark of={item} />}
            </td>
            {columns.map(({ heading, wide, cell }) => (
              <td key={heading} class={wide && `${wide} wide-only`}>{cell(item)}</td>
            ))}
            <td class="when wide-only">
              <Time at={item.created_at} />
            </td>
          </LinkedRow>
        ))}
      </tbody>
    </ListTable>
  );
}
