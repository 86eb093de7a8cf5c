/**
 * The usual way to write a create: one transaction of single statements, each a round trip. Begin,
 * look the key up, claim the idempotency key, insert payment, ledger and events, commit: seven.
 * Same tables, same rows, same constraints as `pay.commit`; generous to it, for it checks nothing that
 * a server of this kind would have to check beside, and its role passes row-level security by. (The
 * trigger that proves the ledger does not: it is told the environment with the key's look-up.)
 */

import type { Sql } from "postgres";
import { formatTime } from "../shared/core/clock.ts";
import type { Store } from "../shared/store/store.ts";

/** `commit` of a store for creates of payments; idempotency keys must be new. */
export function commitInSevenRoundTrips(sql: Sql): Store["commit"] {
  return async (access, change, idempotency) => {
    const { answer, payment, ledger: [movement], events: [created, completed] } = change;
    if (!payment || !movement || !created || !completed || !idempotency) {
      throw new Error("only completed payments with an idempotency key");
    }
    await sql.begin(async (sql) => {
      const [key] = await sql`
        select s.api_key_id, s.environment_id,
          set_config('pay.environment_ids', array[s.environment_id]::text, true)
        from pay.api_key_secrets s
        join pay.api_keys k on k.id = s.api_key_id
          and (k.scopes is null or ${access.scope} = any (k.scopes))
        where s.hash = decode(${access.key_hash}, 'hex') and s.revoked_at is null
          and (s.expires_at is null or s.expires_at > now())`;
      if (!key) throw new Error("an unknown key");
      const { environment_id, api_key_id } = key;
      access.observe(api_key_id, null);
      const [claimed] = await sql`
        insert into pay.idempotency_keys
          (environment_id, api_key_id, key, fingerprint, request_id, status, body, created_at)
        values (${environment_id}, ${api_key_id}, ${idempotency.key},
          decode(${idempotency.fingerprint}, 'hex'), ${access.request_id}, ${answer.status},
          ${answer.body}, ${formatTime(access.at_ms)})
        on conflict do nothing returning 1`;
      if (!claimed) throw new Error("a key that was used before");
      await sql`insert into pay.payments ${sql({ environment_id, ...payment })}`;
      await sql`
        with movement (environment_id, id, kind, subject_id, amount_minor, currency, created_at) as (
          values (${environment_id}, ${movement.id}, ${movement.kind}, ${movement.subject_id},
            ${movement.amount_minor}::bigint, ${movement.currency},
            ${movement.created_at}::text::timestamptz)
        ),
        made as (
          insert into pay.ledger_transactions (environment_id, id, kind, subject_id, created_at)
          select environment_id, id, kind, subject_id, created_at from movement
        ),
        delta as (
          insert into pay.ledger_deltas
            (environment_id, id, currency, debit_account, credit_account, amount_minor)
          select environment_id, id, currency, ${movement.debit_account},
            ${movement.credit_account}, amount_minor
          from movement
        )
        insert into pay.ledger_entries
          (environment_id, id, transaction_id, subject_id, account, direction, amount_minor,
            currency, created_at)
        select m.environment_id, side.id, m.id, m.subject_id, side.account, side.direction,
          m.amount_minor, m.currency, m.created_at
        from movement m cross join (values
          (${movement.debit_id}, ${movement.debit_account}, 'debit'),
          (${movement.credit_id}, ${movement.credit_account}, 'credit')
        ) as side (id, account, direction)`;
      const rows = [created, completed].map(({ delivery_id: _, ...event }) => ({
        environment_id,
        ...event,
      }));
      await sql`insert into pay.events ${sql(rows)}`;
    });
    return { outcome: "committed", answer };
  };
}
