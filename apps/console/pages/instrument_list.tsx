/** The list of instruments: the cards and SEPA mandates of a customer, or of all. */

import { NewLink } from "../parts/page_parts.tsx";
import type { Instrument } from "../../../packages/client/mod.ts";
import { INSTRUMENT_STATUSES, KEPT_METHOD_KINDS } from "../../../shared/core/vocabulary.ts";
import { RAILS } from "../../../shared/domain/rails.ts";
import { call } from "../data/calls.ts";
import { methodText } from "../data/method_text.ts";
import { href } from "../data/route.ts";
import { label, USAGE_WORDS } from "../data/words.ts";
import { choiceOf } from "../parts/filters.tsx";
import { type List, tableOf } from "../parts/list_page.tsx";
import { timeColumn } from "../parts/list_table.tsx";
import { Status, Time } from "../parts/text.tsx";

export const INSTRUMENTS: List<Instrument> = {
  section: "instruments",
  filters: () => [
    { name: "customer_id", label: "Customer’s id", placeholder: "user-7" },
    choiceOf("status", "Status", INSTRUMENT_STATUSES),
    choiceOf(
      "method_kind",
      "Method",
      KEPT_METHOD_KINDS,
      (kind) => RAILS[kind as Instrument["method_kind"]].name,
    ),
  ],
  read: (params) => call("instruments", "list", params),
  csv: "id created_at status customer.id customer.email customer.name method_kind usage " +
    "mandate.id mandate.signed_at is_kept payment_id ended_reason last_used_at ended_at",
  about: () => <p class="about-page">The cards and SEPA mandates that later payments can use.</p>,
  empty: () => (
    <>
      <p>A payment by card or SEPA that saves its method for later makes an instrument.</p>
      <NewLink section="payments" class="button">Create a payment</NewLink>
    </>
  ),
  show: tableOf("Instruments", [
    {
      heading: "Method",
      cell: (instrument) => (
        <>
          <a class="row-link" href={href(["instruments", instrument.id])}>
            {methodText(instrument)}
          </a>
          <span class="until-600">{instrument.customer?.id}</span>
        </>
      ),
    },
    {
      heading: "Status",
      cell: ({ status, ended_reason }) => (
        <>
          <Status of={status} />
          {ended_reason && <span class="quiet">{label(ended_reason)}</span>}
        </>
      ),
    },
    { heading: "Use", class: "from-940", cell: ({ usage }) => USAGE_WORDS[usage] },
    {
      heading: "Mandate",
      class: "cut from-940",
      cell: ({ mandate }) => <code>{mandate?.id}</code>,
    },
    {
      heading: "Customer",
      class: "grow from-600",
      cell: ({ customer }) => customer?.id ?? customer?.email,
    },
    timeColumn("Last use", ({ last_used_at }) => last_used_at && <Time at={last_used_at} />),
  ]),
};
