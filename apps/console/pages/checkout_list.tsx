/** The list of checkouts: prices with a page for the payer, and links. */

import type { Checkout } from "../../../packages/client/mod.ts";
import { CHECKOUT_STATUSES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { href } from "../data/route.ts";
import { kindOfCheckout } from "../data/words.ts";
import { choiceOf } from "../parts/filters.tsx";
import { type List, tableOf } from "../parts/list_page.tsx";
import { ABOUT_COLUMNS, moneyColumns } from "./money_lists.tsx";

export const CHECKOUTS: List<Checkout> = {
  section: "checkouts",
  filters: () => [
    choiceOf("status", "Status", CHECKOUT_STATUSES),
    { name: "reference", label: "Reference", placeholder: "order-1001" },
    { name: "customer_id", label: "Customer’s id", placeholder: "user-7" },
  ],
  read: (params) => call("checkouts", "list", params),
  csv: "id created_at status amount_decimal currency amount_minor max_payments payments_count " +
    "payment_id customer.id customer.email customer.name reference description expires_at metadata",
  empty: () => (
    <p>A checkout is a page on which a payer chooses how to pay. A link takes many payers.</p>
  ),
  show: tableOf(
    "Checkouts",
    moneyColumns<Checkout>(({ id }) => href(["checkouts", id]), [
      { heading: "Kind", cell: kindOfCheckout },
      ...ABOUT_COLUMNS,
    ]),
  ),
};
