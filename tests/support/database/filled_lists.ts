/**
 * Fills an environment with long lists by SQL, and combines the filters of each list in every way.
 * The values of the filters match many rows, few rows or no row.
 */

import type { ISql } from "postgres";
import type { ListKind } from "../../../shared/store/page_request.ts";

/** A list with some of its filters, as the store sends them to the database. */
export interface FilteredList {
  kind: ListKind;
  filters: Record<string, string>;
}

const suffix = (n: string) => `lpad((${n})::text, 26, '0')`;
const idOf = (prefix: string, n: number) => prefix + String(n).padStart(26, "0");

/** The customer of every fifth payment. */
const CUSTOMER = "ada@example.com";
/** The resources with the most rows, and an event of the payment. */
const ENDPOINT = idOf("whe_", 1);
const HOT = idOf("pay_", 7);
const INSTRUMENT = idOf("ins_", 1);
const CHECKOUT = idOf("chk_", 1);
const HOT_EVENT = idOf("evt_", 20_000);
/** The payment HOT has a quarter of the rows. Each other payment has one row in a thousand. */
const SUBJECT = `case n % 4 when 0 then '${HOT}' else 'pay_' || ${suffix("n % 1000 + 1000")} end`;
/**
 * The end of the id of an event and of its delivery. The last three characters are the places in
 * which the two differ.
 */
const EVENT_NUMBER = "n * 1000";
const EVENT = suffix(EVENT_NUMBER);
/** The id of a transaction. The ids of its two entries end with 1 and 2. */
const TRANSACTION = `'txn_' || ${suffix("n * 10")}`;

/** Inserts rows of every list into an environment. Their ids sort by `n`, beginning at `first`. */
export async function fillLists(
  sql: ISql,
  environment_id: string,
  { first = 1, rows }: { first?: number; rows: number },
): Promise<void> {
  const insert = (
    table: string,
    prefix: string,
    columns: string,
    values: string,
    end = suffix("n"),
  ) =>
    sql.unsafe(
      `insert into pay.${table} (environment_id, id, created_at, ${columns})
       select '${environment_id}', '${prefix}' || ${end}, now(), ${values}
       from generate_series(${first}, ${first + rows - 1}) n`,
    );
  const currency = "case when n % 5000 = 0 then 'USD' else 'EUR' end";
  const body = "'{\"id\":\"' || n || '\"}'";
  await insert(
    "payments",
    "pay_",
    `status, amount_minor, amount_refunded, currency, method_kind, reference, customer_id,
     instrument_id, checkout_id, sequence, updated_at, body`,
    `case when n % 3 = 0 then 'declined' else 'completed' end, 1, 0, ${currency}, 'card',
     case when n % 2 = 0 then 'often' end, case when n % 7 = 0 then 'u' || n % 5 end,
     case when n % 7 = 0 then '${INSTRUMENT}' end, case when n % 7 = 0 then '${CHECKOUT}' end, 1,
     now(),
     case when n % 5 = 0 then '{"id":"' || n || '","customer":{"email":"${CUSTOMER}"}}'
       else '{"id":"' || n || '","customer":null}' end`,
  );
  await insert(
    "instruments",
    "ins_",
    `status, customer_id, method_kind, usage, is_kept, payment_id, touched_at, sequence,
     updated_at`,
    `case when n % 3 = 0 then 'failed' else 'active' end, case when n % 7 = 0 then 'u' || n % 5 end,
     'card', 'off_session', true, 'pay_' || ${suffix("n")}, now(), 1, now()`,
  );
  await insert(
    "checkouts",
    "chk_",
    "salt, token_hash, status, reference, customer_id, expires_at, updated_at, body",
    `'', decode(repeat('00', 32), 'hex'), case when n % 3 = 0 then 'cancelled' else 'open' end,
     case when n % 2 = 0 then 'often' end, case when n % 7 = 0 then 'u' || n % 5 end,
     now() + interval '1 day', now(), '{"a":1}'`,
  );
  await insert(
    "refunds",
    "re_",
    "payment_id, amount_minor, currency, body",
    `${SUBJECT}, 1, 'EUR', ${body}`,
  );
  // A payment has one dispute at most that is not won.
  const is_expired = "n % 500 = 1";
  await insert(
    "disputes",
    "dp_",
    "payment_id, status, amount_minor, currency, body",
    `case when ${is_expired} then 'pay_' || ${suffix("n + 1000000")} else ${SUBJECT} end,
     case when ${is_expired} then 'lost' else 'won' end, 1, 'EUR', ${body}`,
  );
  await insert(
    "transfers",
    "tr_",
    "status, amount_minor, currency, sequence, updated_at, body",
    `'completed', 1, ${currency}, 1, now(), ${body}`,
  );
  await insert(
    "events",
    "evt_",
    "type, subject_id, sequence, body",
    `'payment.completed', ${SUBJECT}, nullif(n, n / 3 * 3), '{"id":"' || ${EVENT_NUMBER} || '"}'`,
    EVENT,
  );
  await insert(
    "webhook_deliveries",
    "whd_",
    "event_id, event_type, endpoint_id, subject_id, status",
    `'evt_' || ${EVENT}, 'payment.completed', '${ENDPOINT}', ${SUBJECT}, 'delivered'`,
    EVENT,
  );
  await sql.unsafe(
    `insert into pay.ledger_movements (environment_id, transaction_id, leg, kind, subject_id,
       debit_account, credit_account, amount_minor, currency, created_at)
     select '${environment_id}', ${TRANSACTION}, 0, 'capture', ${SUBJECT}, 'processor', 'available',
       1, 'EUR', now()
     from generate_series(${first}, ${first + rows - 1}) n`,
  );
}

type Choices = Record<string, readonly (string | undefined)[]>;

/** The values of each filter. `undefined` leaves the filter out. */
const FILTERS: Readonly<Partial<Record<ListKind, Choices>>> = {
  payments: {
    status: [undefined, "completed", "declined", "pending"],
    currency: [undefined, "USD", "GBP"],
    method_kind: [undefined, "card", "swift"],
    reference: [undefined, "often", "never"],
  },
  instruments: {
    customer_id: [undefined, "u0", "nobody"],
    status: [undefined, "active", "failed", "pending"],
    method_kind: [undefined, "card", "sepa"],
  },
  checkouts: {
    reference: [undefined, "often", "never"],
    customer_id: [undefined, "u0", "nobody"],
    status: [undefined, "open", "completed"],
  },
  refunds: { payment_id: [undefined, HOT, idOf("pay_", 1003), idOf("pay_", 1)] },
  disputes: {
    payment_id: [undefined, HOT, idOf("pay_", 1003), idOf("pay_", 1)],
    status: [undefined, "won", "lost", "under_review"],
  },
  transfers: { status: [undefined, "completed", "failed"], currency: [undefined, "USD", "GBP"] },
  events: {
    type: [undefined, "payment.completed", "payment.failed"],
    subject_id: [undefined, HOT, idOf("pay_", 1003), idOf("pay_", 1)],
    request_id: [undefined, idOf("req_", 1)],
  },
  webhook_deliveries: {
    endpoint_id: [undefined, ENDPOINT, idOf("whe_", 2)],
    event_id: [undefined, HOT_EVENT, idOf("evt_", 3_000), idOf("evt_", 0)],
    subject_id: [undefined, HOT, idOf("pay_", 1003), idOf("pay_", 1)],
    status: [undefined, "delivered", "failed"],
  },
  ledger_entries: {
    subject_id: [undefined, HOT, idOf("pay_", 1003), idOf("pay_", 1)],
    transaction_id: [undefined, idOf("txn_", 200), idOf("txn_", 30), idOf("txn_", 0)],
    account: [undefined, "available", "chargebacks"],
  },
};
/** The prefix of the ids in each list with filters by time, which are bounds of the id. */
const PREFIXES: Readonly<Partial<Record<ListKind, string>>> = {
  payments: "pay_",
  transfers: "tr_",
};

/**
 * Combinations with the filters by customer and instrument. The e-mail address is in no index.
 */
const BY_CUSTOMER: readonly FilteredList[] = [
  { customer: CUSTOMER },
  { customer_id: "u0" },
  { customer_id: "nobody" },
  { instrument_id: INSTRUMENT },
  { checkout_id: CHECKOUT },
].flatMap((who) =>
  [
    {},
    { status: "completed" },
    { status: "declined" },
    { reference: "often" },
    { reference: "often", status: "declined", currency: "USD" },
    { method_kind: "card", id_before: idOf("pay_", 5_000) },
  ].map((others) => ({
    kind: "payments",
    filters: { ...who, ...others } as Record<string, string>,
  }))
);

/** Returns every list with every combination of its filters and its bounds of the id. */
export function everyCombination(rows: number): FilteredList[] {
  const combined = Object.entries(FILTERS).flatMap(([name, choices]) => {
    const kind = name as ListKind;
    const prefix = PREFIXES[kind];
    const bounds = prefix === undefined ? {} : {
      id_from: [undefined, idOf(prefix, Math.floor(rows / 4))],
      id_before: [undefined, idOf(prefix, Math.floor(rows / 2))],
    };
    return combine({ ...choices, ...bounds }).map((filters) => ({ kind, filters }));
  });
  return [...combined, ...BY_CUSTOMER];
}

function combine(choices: Choices): Record<string, string>[] {
  return Object.entries(choices).reduce<Record<string, string>[]>(
    (all, [name, values]) =>
      all.flatMap((filters) =>
        values.map((value) => value === undefined ? filters : { ...filters, [name]: value })
      ),
    [{}],
  );
}
