/**
 * Makes many payments by SQL, with the rows that the product would write. It makes one payment over
 * HTTP and copies its rows, each copy with its own ids, times and idempotency key. Copies can be read,
 * listed, refunded, replayed and reset, and the invariants hold for them.
 */

import type { Sql } from "postgres";
import { ask, CREATE_A } from "./api_request.ts";
import { createOf } from "./line.ts";
import type { Product } from "./product.ts";

/** The environment to fill, and the kind of rows. */
interface FillOrder {
  /** The environment is the one of its test key. */
  product: Product;
  payments: number;
  /**
   * Whether every event has one delivery, which has arrived, to an endpoint that was deleted. Those
   * of the last 7 days are in the log of attempts.
   */
  deliveries: boolean;
  /** Whether the tables are vacuumed and analyzed at the end, or only analyzed. */
  vacuum: boolean;
  /** The times of the copies; by default the last 20 hours, so that all can be replayed. */
  span?: { from_ms: number; to_ms: number };
  /** The number of the first copy (1): two fills of a database have different numbers. */
  first?: number;
  /** Gets the number of payments so far. */
  onProgress?: (payments: number) => void;
}

/** Payments in one transaction. */
const BATCH = 100_000;
/** Age of the oldest copy by default: less than the retention of idempotency keys. */
const SPAN_MS = 20 * 3600 * 1000;
/** The tables with copies, for vacuum. */
export const TABLES = [
  ...["payments", "events", "ledger_movements", "idempotency_keys"],
  ...["webhook_deliveries", "attempt_log", "ledger_totals"],
];

/** The idempotency key of copy `n`, in SQL. */
export const COPY_KEY = "md5('copy' || n)::uuid::text";

/** The id of a copy's delivery, in SQL. */
const DELIVERY_ID = "'whd_' || c.shared || t.sequence";
/** As long as the headers of a real attempt. */
const ATTEMPT_HEADERS = JSON.stringify({ "Payment-Signature": "0".repeat(340) });

/** Fills an environment. */
export async function fillEnvironment(sql: Sql, order: FillOrder): Promise<void> {
  const { product, payments, deliveries, vacuum, first = 1, onProgress } = order;
  const idempotency_key = crypto.randomUUID();
  const { id, created_at } = await ask(product, createOf(CREATE_A, idempotency_key));
  const [template] = await sql<Pick<Source, "environment_id" | "api_key_id">[]>`
    select environment_id, api_key_id from pay.idempotency_keys
    where key = ${idempotency_key}`;
  const to_ms = order.span?.to_ms ?? Date.parse(created_at);
  const from_ms = order.span?.from_ms ?? to_ms - SPAN_MS;
  const source: Source = {
    ...template!,
    shared: id.slice(4, -1),
    at: created_at,
    key: idempotency_key,
  };
  for (let made = 0; made < payments; made += BATCH) {
    const count = Math.min(BATCH, payments - made);
    await sql.begin(async (transaction) => {
      const sql = transaction as unknown as Sql;
      await sql`set local synchronous_commit = off`;
      await sql.unsafe(`
        create temporary table copies on commit drop as
        select n, at, pay_internal.wire_time(at) as at_text,
          substr(pay_internal.id_floor('', at), 1, 9) || lpad(n::text, 16, '0') as shared
        from generate_series(${first + made}::bigint, ${first + made + count - 1}) n
        cross join lateral (
          select to_timestamp((${from_ms} +
            floor((n - ${first - 1}) * ${(to_ms - from_ms) / payments})) / 1000.0) as at
        ) t`);
      await copyRows(sql, source, count);
      if (deliveries) await copyDeliveries(sql, source);
    });
    onProgress?.(made + count);
  }
  for (const table of TABLES) {
    await sql.unsafe(`${vacuum ? "vacuum analyze" : "analyze"} pay.${table}`);
  }
}

/** The create whose rows are copied. */
interface Source {
  environment_id: string;
  /** The common part of its ids: time and randomness. */
  shared: string;
  at: string;
  api_key_id: string;
  key: string;
}

/** A condition for the ids of one kind that the source has: `$2` is their common part. */
function ofSource(column: string, prefix: string): string {
  return `${column} between '${prefix}' || $2 and '${prefix}' || $2 || '~'`;
}

async function copyRows(sql: Sql, source: Source, count: number): Promise<void> {
  const { environment_id, shared, at, key, api_key_id } = source;
  const request = "'req_' || c.shared || '0'";
  const renew = (column: string) => `replace(${column}, $2, c.shared)`;
  const copy = (table: string, prefix: string, columns: string, values: string, id = "id") =>
    sql.unsafe(
      `insert into pay.${table} (environment_id, ${columns})
       select t.environment_id, ${values} from copies c cross join pay.${table} t
       where t.environment_id = $1 and ${ofSource(`t.${id}`, prefix)} and $3::text <> ''
       order by c.n, t.${id}`,
      [environment_id, shared, at],
    );
  await copy(
    "payments",
    "pay_",
    "id, status, amount_minor, amount_refunded, currency, method_kind, reference, sequence, " +
      "created_at, updated_at, body",
    `${renew("t.id")}, t.status, t.amount_minor, 0, t.currency, t.method_kind, t.reference,
      t.sequence, c.at, c.at, replace(${renew("t.body")}, $3, c.at_text)`,
  );
  await copy(
    "events",
    "evt_",
    "id, type, subject_id, sequence, created_at, before, request_id, idempotency_key",
    `${renew("t.id")}, t.type, ${renew("t.subject_id")}, t.sequence, c.at, t.before, ${request},
      ${COPY_KEY}`,
  );
  await copy(
    "ledger_movements",
    "txn_",
    "transaction_id, leg, kind, subject_id, debit_account, credit_account, amount_minor, currency, " +
      "created_at",
    `${renew("t.transaction_id")}, t.leg, t.kind, ${renew("t.subject_id")}, t.debit_account,
      t.credit_account, t.amount_minor, t.currency, c.at`,
    "transaction_id",
  );
  await sql.unsafe(
    `insert into pay.idempotency_keys
       (environment_id, api_key_id, key, fingerprint, request_id, request_line, status, subject_id,
         sequence, created_at)
     select t.environment_id, t.api_key_id, ${COPY_KEY}, t.fingerprint, ${request},
       t.request_line, t.status, ${renew("t.subject_id")}, t.sequence, c.at
     from copies c cross join pay.idempotency_keys t
     where t.environment_id = $1 and t.api_key_id = $3 and t.key = $4
       and c.at > (select pay_internal.server_time() - pay_internal.idempotency_retention())
     order by c.n`,
    [environment_id, shared, api_key_id, key],
  );
  await sql`
    select pay_internal.add_to_total(environment_id, currency, debit_account, credit_account,
      amount_minor * ${count}::int)
    from pay.ledger_movements m,
      lateral (select set_config('pay.environment_ids', array[m.environment_id]::text, true)) opened
    where environment_id = ${environment_id}
      and transaction_id between ${"txn_" + shared} and ${"txn_" + shared + "~"}`;
}

/** Two deliveries for each copy, as to an endpoint that gets every event, with their log. */
async function copyDeliveries(sql: Sql, source: Source): Promise<void> {
  const { environment_id, shared } = source;
  await sql.unsafe(
    `insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
       subject_id, sequence, status, attempt_count, attempts, created_at)
     select t.environment_id, ${DELIVERY_ID}, replace(t.id, $2, c.shared), t.type,
       'whe_' || repeat('0', 26), replace(t.subject_id, $2, c.shared), t.sequence, 'delivered', 1,
       array[json_build_object('number', 1, 'at', c.at_text, 'response_status', 200,
         'duration_ms', 100, 'error', null)], c.at
     from copies c cross join pay.events t
     where t.environment_id = $1 and ${ofSource("t.id", "evt_")}
     order by c.n, t.sequence`,
    [environment_id, shared],
  );
  await sql.unsafe(
    `insert into pay.attempt_log (environment_id, delivery_id, slot, attempt, url, headers,
       response, response_truncated, stored_at)
     select t.environment_id, ${DELIVERY_ID}, 1, 1, 'http://127.0.0.1:36087/', $3,
       E'HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\n\\r\\n', false, c.at
     from copies c cross join pay.events t
     where t.environment_id = $1 and ${ofSource("t.id", "evt_")}
       and c.at > (select pay_internal.server_time() - pay_internal.attempt_log_retention())
     order by c.n, t.sequence`,
    [environment_id, shared, ATTEMPT_HEADERS],
  );
}
