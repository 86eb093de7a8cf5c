/** The list of transfers with filters and pages. It shows new transfers without a reload. */

import type { Transfer } from "../../../packages/client/mod.ts";
import { TRANSFER_STATUSES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { CREATED_FILTERS, type Filter } from "../parts/filters.tsx";
import { destinationText } from "../data/instrument_text.ts";
import { ListPage } from "../parts/list_page.tsx";
import { MoneyTable } from "../parts/money_table.tsx";
import { href } from "../data/route.ts";
import { label } from "../data/words.ts";

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
  "payee_check",
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
    <MoneyTable
      label="Transfers"
      items={transfers}
      busy={busy}
      link={({ id }) => href(["transfers", id])}
      columns={[
        { heading: "Destination", cell: ({ destination }) => destinationText(destination) },
        {
          heading: "Description",
          wide: "grow",
          cell: ({ id, description }) => description ?? <code class="quiet">{id}</code>,
        },
      ]}
    />
  );
}
