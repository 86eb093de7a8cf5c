/** Two payments side by side: the members in which they differ, and their timelines. */

import type { Payment } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { type Live, useLive } from "../data/live.ts";
import { methodText } from "../data/method_text.ts";
import { href, type Route } from "../data/route.ts";
import { type Filter, Filters, readFilters } from "../parts/filters.tsx";
import { ChangeTable, jsonChanges } from "../parts/json.tsx";
import { ListTable } from "../parts/list_table.tsx";
import { Mention } from "../parts/mention.tsx";
import { Reading, ReadingList } from "../parts/notice.tsx";
import { Card, Title } from "../parts/page_parts.tsx";
import { Money, Status } from "../parts/text.tsx";
import { Timeline } from "../parts/timeline.tsx";
import { paymentColumns } from "./money_lists.tsx";

/** The query of the route names both payments. */
const NAMES = ["payment_id", "other_id"] as const;
const FILTERS: readonly Filter[] = [
  { name: NAMES[0], label: "Payment", placeholder: "pay_…" },
  { name: NAMES[1], label: "Other payment", placeholder: "pay_…" },
];
const SHOWN = 20;

/** The page. Until it has two payments, it offers the newest ones. */
export function ComparePage({ query }: { query: Route["query"] }) {
  const { values } = readFilters(FILTERS, query);
  const missing = NAMES.find((name) => !values[name]);
  return (
    <>
      <Title title="Compare payments" crumb="payments" />
      <Filters
        label="The payments"
        steps={["compare"]}
        filters={FILTERS}
        values={values}
        failure={null}
      />
      {missing === undefined
        ? <Comparison ids={NAMES.map((name) => values[name]!)} />
        : <Candidates chosen={values} missing={missing} />}
    </>
  );
}

function Candidates({ chosen, missing }: { chosen: Route["query"]; missing: string }) {
  const live = useLive(call("payments", "list", { limit: SHOWN }), { logged: true });
  return (
    <ReadingList label="payments" live={live} rows={6} none="No payments yet">
      {(payments) => (
        <ListTable
          label="Payments to choose from"
          items={payments.filter(({ id }) => !Object.values(chosen).includes(id))}
          columns={paymentColumns(({ id }) => href(["compare"], { ...chosen, [missing]: id }))}
        />
      )}
    </ReadingList>
  );
}

function Comparison({ ids: [id = "", other_id = ""] }: { ids: readonly string[] }) {
  const one = useLive(call("payments", "retrieve", id), { logged: true });
  const other = useLive(call("payments", "retrieve", other_id), { logged: true });
  return (
    <>
      {one.data && other.data && (
        <Card title="Differences">
          <ChangeTable
            label="Differences"
            before={<Mention id={one.data.id} />}
            after={<Mention id={other.data.id} />}
            changes={jsonChanges(one.data, other.data).filter(({ path }) => path !== "id")}
            none="The payments do not differ."
          />
        </Card>
      )}
      <div class="halves">
        <Half key={id} title="Payment" live={one} />
        <Half key={other_id} title="Other payment" live={other} />
      </div>
    </>
  );
}

function Half({ title, live }: { title: string; live: Live<Payment> }) {
  return (
    <Card title={title}>
      <Reading label="this payment" live={live} rows={4}>
        {(payment) => (
          <>
            <p class="record">
              <a href={href(["payments", payment.id])}>
                <Money amount_minor={payment.amount_minor} currency={payment.currency} />
              </a>
              <Status of={payment.status} />
              <span class="quiet">{methodText(payment)}</span>
            </p>
            <Timeline of={{ payment_id: payment.id }} />
          </>
        )}
      </Reading>
    </Card>
  );
}
