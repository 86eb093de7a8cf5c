/** The list of transfers with filters and pages. It shows new transfers without a reload. */

import type { Transfer } from "../client/mod.ts";
import { TRANSFER_STATUSES } from "../shared/core/vocabulary.ts";
import { call } from "./calls.ts";
import { concerns, failureOf } from "./failure.ts";
import { CREATED_FILTERS, type Filter, Filters, readFilters } from "./filters.tsx";
import { destinationText } from "./instrument_text.ts";
import { LinkedRow } from "./linked_row.tsx";
import { useLive } from "./live.ts";
import { Empty, NoItems, Reading } from "./notice.tsx";
import { Pager } from "./pager.tsx";
import { href } from "./route.ts";
import { CreatedColumn, Money, Status, Time } from "./text.tsx";
import { label } from "./words.ts";

/** Number of transfers on a page. */
const PAGE_SIZE = 20;

const FILTERS: readonly Filter[] = [
  {
    name: "status",
    label: "Status",
    options: TRANSFER_STATUSES.map((status) => [status, label(status)]),
  },
  { name: "currency", label: "Currency", placeholder: "EUR" },
  ...CREATED_FILTERS,
];
const NAMES = FILTERS.map(({ name }) => name);

/** All transfers of the sandbox. */
export function TransfersPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { values, failure: unsent } = readFilters(FILTERS, query);
  const live = useLive(
    unsent ? null : call("transfers", "list", {
      limit: PAGE_SIZE,
      ...values,
      ...(query["starting_after"] && { starting_after: query["starting_after"] }),
    }),
    { logged: true },
  );
  const failure = unsent ?? (live.error === null ? null : failureOf(live.error));
  return (
    <>
      <div class="title">
        <h1 tabIndex={-1}>Transfers</h1>
        <a class="button primary" href={href(["transfers", "new"])}>Create transfer</a>
      </div>
      <Filters
        label="Filter transfers"
        steps={["transfers"]}
        filters={FILTERS}
        values={values}
        failure={failure}
      />
      {concerns(failure, NAMES)
        ? <Empty title="These filters cannot be applied" />
        : (
          <Reading label="transfers" live={live} rows={6}>
            {(page) => (
              <>
                {page.data.length === 0
                  ? (
                    <NoItems page={page}>
                      <NoTransfers is_filtered={Object.keys(values).length > 0} />
                    </NoItems>
                  )
                  : <TransferTable transfers={page.data} busy={live.is_stale} />}
                <Pager page={page} query={query} steps={["transfers"]} />
              </>
            )}
          </Reading>
        )}
    </>
  );
}

function NoTransfers({ is_filtered }: { is_filtered: boolean }) {
  if (is_filtered) {
    return (
      <Empty title="No transfer matches">
        <a href={href(["transfers"])}>Show all transfers</a>
      </Empty>
    );
  }
  return (
    <Empty title="No transfers yet">
      <p>A transfer moves money of the available balance to a bank account or a wallet.</p>
      <a class="button" href={href(["transfers", "new"])}>Create the first transfer</a>
    </Empty>
  );
}

function TransferTable({ transfers, busy }: { transfers: readonly Transfer[]; busy: boolean }) {
  return (
    <table class="list" aria-label="Transfers" aria-busy={busy}>
      <thead>
        <tr>
          <th scope="col" class="right">Amount</th>
          <th scope="col">Status</th>
          <th scope="col">Destination</th>
          <th scope="col" class="wide-only">Description</th>
          <CreatedColumn />
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
