/** The list of transfers with filters and pages. It shows new transfers without a reload. */

import type { Transfer } from "../client/mod.ts";
import { TRANSFER_STATUSES } from "../shared/core/vocabulary.ts";
import { call } from "./calls.ts";
import { CREATED_FILTERS, type Filter } from "./filters.tsx";
import { destinationText } from "./instrument_text.ts";
import { LinkedRow } from "./linked_row.tsx";
import { ListPage } from "./list_page.tsx";
import { href } from "./route.ts";
import { Money, Status, Time, TimeColumn } from "./text.tsx";
import { label } from "./words.ts";

const FILTERS: readonly Filter[] = [
  {
    name: "status",
    label: "Status",
    options: TRANSFER_STATUSES.map((status) => [status, label(status)]),
  },
  { name: "currency", label: "Currency", placeholder: "EUR" },
  ...CREATED_FILTERS,
];

/** The columns of the file. */
const COLUMNS = [
  "id",
  "created_at",
  "status",
  "amount_decimal",
  "currency",
  "amount_minor",
  "destination",
  "description",
  "failure_code",
  "completed_at",
  "metadata",
];

/** All transfers of the sandbox. */
export function TransfersPage({ query }: { query: Readonly<Record<string, string>> }) {
  return (
    <ListPage
      section="transfers"
      title="Transfers"
      noun="transfers"
      one="transfer"
      query={query}
      filters={FILTERS}
      read={(params) => call("transfers", "list", params)}
      columns={COLUMNS}
      action={<a class="button primary" href={href(["transfers", "new"])}>Create transfer</a>}
      empty={
        <>
          <p>A transfer moves money of the available balance to a bank account or a wallet.</p>
          <a class="button" href={href(["transfers", "new"])}>Create the first transfer</a>
        </>
      }
    >
      {(transfers, busy) => <TransferTable transfers={transfers} busy={busy} />}
    </ListPage>
  );
}

/** The table of transfers. */
export function TransferTable(
  { transfers, busy }: { transfers: readonly Transfer[]; busy: boolean },
) {
  return (
    <table class="list" aria-label="Transfers" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col" class="right">Amount</th>
          <th scope="col">Status</th>
          <th scope="col">Destination</th>
          <th scope="col" class="wide-only">Description</th>
          <TimeColumn />
        </tr>
      </thead>
      <tbody>
        {transfers.map((transfer) => (
          <LinkedRow key={transfer.id}>
            <td class="right">
              <a class="row-link" href={href(["transfers", transfer.id])}>
                <Money amount_minor={transfer.amount_minor} currency={transfer.currency} />
              </a>
              <span class="phone-only">
                <Time at={transfer.created_at} />
              </span>
            </td>
            <td>
              <Status of={transfer.status} />
            </td>
            <td>{destinationText(transfer.destination)}</td>
            <td class="grow wide-only">
              {transfer.description ?? <code class="quiet">{transfer.id}</code>}
            </td>
            <td class="when wide-only">
              <Time at={transfer.created_at} />
            </td>
          </LinkedRow>
        ))}
      </tbody>
    </table>
  );
}
