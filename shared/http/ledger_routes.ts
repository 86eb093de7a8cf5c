/** The operations of `api-v1-payments` on the ledger: its entries and the balance. */

import { ListLedgerEntriesQuery } from "../schema/list.ts";
import { type Route, route } from "./route.ts";
import { listRoute } from "./page.ts";

const ledger = { group: "Ledger", method: "GET", scope: "ledger:read" } as const;

export const LEDGER_ROUTES: readonly Route[] = [
  listRoute({
    ...ledger,
    id: "listLedgerEntries",
    summary: "List ledger entries",
    paths: ["/v1/ledger_entries"],
    response: "LedgerEntry",
    query: ListLedgerEntriesQuery,
    kind: "ledger_entries",
    filters: ({ payment_id, transfer_id, ...others }) => ({
      subject_id: payment_id ?? transfer_id,
      ...others,
    }),
  }),
  route({
    ...ledger,
    id: "getBalance",
    summary: "Get the balance",
    description:
      "`amount_minor` of the account `available` is the amount that can be transferred. Sums are " +
      "exact JSON integers and can exceed 2^53. A client that parses numbers as doubles, as " +
      "JavaScript does, rounds such a sum unless it reads the text of the response.",
    paths: ["/v1/balance"],
    response: "Balance",
    async run({ deps, request }) {
      // The text of the database, because sums can exceed the exact integers of JavaScript.
      return { status: 200, body: await deps.store.balance(request.access) };
    },
  }),
];
