/** Fills a sandbox with completed payments by SQL, with all rows that a create by HTTP stores. */

import type postgres from "postgres";

/** 26 characters that sort by `n`, and before those of every id that the service makes. */
const SUFFIX = "lpad(to_hex(n), 26, '0')";

/**
 * Inserts completed payments of 100 EUR cents. Each has two events, a delivery of each event, a
 * stored response and a ledger movement.
 */
export async function fillSandbox(
  sql: postgres.Sql,
  environment_id: string,
  payments: number,
): Promise<void> {
  const rows = (table: string, columns: string, values: string, per_payment = 1) =>
    sql.unsafe(
      `insert into pay.${table} (environment_id, created_at, ${columns})
       select $1, now(), ${values} from generate_series(1, $2::int) n`,
      [environment_id, payments * per_payment],
    );
  const payment = "'pay_' || lpad(to_hex((n + 1) / 2), 26, '0')";
  const body = "repeat('x', 400)";
  await rows(
    "payments",
    "id, status, amount_minor, amount_refunded, currency, method_kind, sequence, updated_at, body",
    `'pay_' || ${SUFFIX}, 'completed', 100, 0, 'EUR', 'card', 2, now(), ${body}`,
  );
  await rows(
    "idempotency_keys",
    "api_key_id, key, fingerprint, request_id, request_line, status, body",
    `'key_' || repeat('0', 26), n::text, sha256(n::text::bytea), 'req_' || ${SUFFIX},
      'POST /x', 201, ${body}`,
  );
  await rows(
    "events",
    "id, type, subject_id, sequence, body",
    `'evt_' || ${SUFFIX}, 'payment.completed', ${payment}, 1 + n % 2, ${body}`,
    2,
  );
  await rows(
    "webhook_deliveries",
    "id, event_id, event_type, endpoint_id, subject_id, sequence, status",
    `'whd_' || ${SUFFIX}, 'evt_' || ${SUFFIX}, 'payment.completed', 'whe_' || repeat('0', 26),
      ${payment}, 1 + n % 2, 'delivered'`,
    2,
  );
  await fillLedger(sql, environment_id, payments);
}

/** Inserts one ledger movement for each payment, which has two entries, and their total. */
async function fillLedger(
  sql: postgres.Sql,
  environment_id: string,
  payments: number,
): Promise<void> {
  await sql.unsafe(
    `insert into pay.ledger_movements (environment_id, transaction_id, leg, kind, subject_id,
       debit_account, credit_account, amount_minor, currency, created_at)
     select $1, 'txn_' || lpad(to_hex(n), 25, '0') || '0', 0, 'capture', 'pay_' || ${SUFFIX},
       'processor', 'available', 100, 'EUR', now()
     from generate_series(1, $2::int) n`,
    [environment_id, payments],
  );
  await sql`
    insert into pay.ledger_totals (environment_id, currency, debit_account, credit_account, stripe,
      generation, updates, amount_minor)
    values (${environment_id}, 'EUR', 'processor', 'available', 0, 0, 0, ${100 * payments})`;
}
