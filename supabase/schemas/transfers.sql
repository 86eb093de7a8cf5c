-- Purpose: writes the rows of transfers, and takes the money of a new transfer out of the balance.

-- Locks the balances that the new transfers of a list draw on. A transfer of more than the
-- available balance becomes insufficient. A transfer whose idempotency key is already stored, or
-- belongs to an earlier transfer of the list, draws nothing: pay_internal.claim finds its response.
create or replace function pay_internal.lock_funds(
  p_requests pay_internal.request[], p_transfers pay_internal.transfer_row[], p_moved integer[],
  p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile as $$
declare
  v_draw record;
  v_fund text := '';
  v_left numeric;
  v_keys text[];
begin
  for v_draw in
    select r.n, f.environment_id, f.api_key_id, t.currency, t.amount_minor, r.idempotency_key,
      f.api_key_id || ' ' || r.idempotency_key as whole_key
    from unnest(p_found) f
    join unnest(p_requests) r on r.n = f.n
    join unnest(p_transfers) t on t.n = r.n
    where f.outcome = 'ok' and r.n <> all (p_moved)
    order by f.environment_id, t.currency, r.n
  loop
    if v_fund <> v_draw.environment_id || v_draw.currency then
      v_fund := v_draw.environment_id || v_draw.currency;
      perform pg_advisory_xact_lock(hashtextextended(v_fund, 0));
      -- A separate statement after the lock, so that it sees the transfers committed before.
      v_left := pay_internal.available_minor(v_draw.environment_id, v_draw.currency);
    end if;
    if v_draw.whole_key = any (v_keys) or exists (
      select from pay.idempotency_keys k
      where k.environment_id = v_draw.environment_id and k.api_key_id = v_draw.api_key_id
        and k.key = v_draw.idempotency_key
    ) then
      -- If pay_internal.claim finds no response, the request is sent again. Nothing was drawn.
      p_found[v_draw.n].outcome := 'expired';
    elsif v_draw.amount_minor > v_left then
      p_found[v_draw.n].outcome := 'insufficient';
    else
      v_left := v_left - v_draw.amount_minor;
      v_keys := v_keys || v_draw.whole_key;
    end if;
  end loop;
  return p_found;
end $$;

create or replace function pay_internal.write_transfers(
  p_transfers pay_internal.transfer_row[], p_lines text[], p_callers pay_internal.caller[],
  p_moved integer[]
) returns void language plpgsql volatile as $$
begin
  insert into pay.transfers
    (environment_id, id, status, amount_minor, currency, sequence, created_at, updated_at, body)
  select caller.environment_id, r.id, r.status, r.amount_minor, r.currency, r.sequence,
    r.created_at, r.updated_at, p_lines[r.body]
  from unnest(p_transfers) r
  join unnest(p_callers) caller on caller.n = r.n
  where r.n <> all (p_moved);
  if p_moved <> '{}' then
    with moved as materialized (
      select r.*, k.place
      from unnest(p_transfers) r
      join unnest(p_callers) caller on caller.n = r.n
      cross join lateral (
        select k.ctid as place from pay.transfers k
        where k.environment_id = caller.environment_id and k.id = r.id limit 1
      ) k
      where r.n = any (p_moved)
    )
    update pay.transfers tr
    set status = r.status, sequence = r.sequence, updated_at = r.updated_at,
      body = p_lines[r.body]
    from moved r
    where tr.ctid = r.place;
  end if;
end $$;
