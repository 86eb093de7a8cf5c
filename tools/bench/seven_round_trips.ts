/**
 * The usual way to write a create: one transaction of single statements, each a round trip. Begin,
 * key, idempotency key, payment, ledger, events, commit: seven. The rows, tables and constraints
 * are those of `pay.commit`. The comparison favours this way: it makes fewer checks, and its role
 * bypasses row-level security except in the function that adds to the totals.
 */

import type { Sql } from "postgres";
import { formatTime } from "../../shared/core/clock.ts";
import type { Store } from "../../shared/store/store.ts";

/** `commit` of a store for creates of payments; idempotency keys must be new. */
export function commitInSevenRoundTrips(sql: Sql): Store["commit"] {
  return async (access, change, idempotency) => {
    const { response, payment, ledger: [movement], events: [created, completed] } = change;
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
      access.observe(api_key_id, null, environment_id);
      const [claimed] = await sql`
        insert into pay.idempotency_keys
          (environment_id, api_key_id, key, fingerprint, request_id, request_line, status, body,
            created_at)
        values (${environment_id}, ${api_key_id}, ${idempotency.key},
          decode(${idempotency.fingerprint}, 'hex'), ${access.request_id},
          ${idempotency.request_line}, ${response.status}, ${response.body}, ${
        formatTime(access.at_ms)
      })
        on conflict do nothing returning 1`;
      if (!claimed) throw new Error("a key that was used before");
      await sql`insert into pay.payments ${sql({ environment_id, ...payment })}`;
      await sql`
        with made as (
          insert into pay.ledger_movements ${sql({ environment_id, ...movement })}
          returning environment_id, currency, debit_account, credit_account, amount_minor
        )
        select pay_internal.add_to_total(environment_id, currency, debit_account, credit_account, amount_minor)
        from made`;
      const rows = [created, completed].map(({ delivery_id: _, before = null, ...event }) => ({
        environment_id,
        before,
        ...event,
      }));
      await sql`insert into pay.events ${sql(rows)}`;
    });
    return { outcome: "committed", response, operation: null };
  };
}
