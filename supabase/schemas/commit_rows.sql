-- Purpose: the rows of committed changes: payments, transfers, refunds, disputes, events and
-- deliveries. pay.commit and pay.record write with these functions (committing.sql,
-- provider_records.sql).

-- Writes the payments of the committed changes: a change that expects a sequence updates its
-- payment, the others insert one. p_won, p_environments: the n of the committed changes, and the
-- environment of each. p_moved: the n of the changes that update. A new payment leaves out the
-- amounts that are 0. pay_internal.lock_subjects has locked the rows that change, so none moves.
-- Each is looked up by its whole key: a join that was planned while the table was small would read
-- all payments of the environment.
create or replace function pay_internal.write_payments(
  p_payments json, p_won integer[], p_environments text[], p_moved integer[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pay.payments
    (environment_id, id, status, amount_minor, amount_refunded, amount_refunding, amount_released,
      amount_disputed, currency, method_kind, reference, sequence, created_at, updated_at, body)
  select w.environment_id, p.id, p.status, p.amount_minor, p.amount_refunded,
    coalesce(p.amount_refunding, 0), coalesce(p.amount_released, 0),
    coalesce(p.amount_disputed, 0),
    p.currency, p.method_kind, p.reference, p.sequence, p.created_at, p.updated_at, p.body
  from json_to_recordset(p_payments) as p (
    n integer, id text, status text, amount_minor bigint, amount_refunded bigint,
    amount_refunding bigint, amount_released bigint, amount_disputed bigint, currency text,
    method_kind text, reference text, sequence integer, created_at timestamptz,
    updated_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
  where p.n <> all (p_moved);
  if p_moved <> '{}' then
    with moved as materialized (
      select p.*, k.place
      from json_to_recordset(p_payments) as p (
        n integer, id text, status text, amount_refunded bigint, amount_refunding bigint,
        amount_released bigint, amount_disputed bigint, sequence integer, updated_at timestamptz,
        body text
      )
      join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
      cross join lateral (
        select k.ctid as place from pay.payments k
        where k.environment_id = w.environment_id and k.id = p.id limit 1
      ) k
      where p.n = any (p_moved)
    )
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded,
      amount_refunding = p.amount_refunding, amount_released = p.amount_released,
      amount_disputed = p.amount_disputed,
      sequence = p.sequence, updated_at = p.updated_at, body = p.body
    from moved p
    where t.ctid = p.place;
  end if;
end
$$;

-- Writes the transfers of the committed changes, as pay_internal.write_payments does.
create or replace function pay_internal.write_transfers(
  p_transfers json, p_won integer[], p_environments text[], p_moved integer[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pay.transfers
    (environment_id, id, status, amount_minor, currency, sequence, created_at, updated_at, body)
  select w.environment_id, r.id, r.status, r.amount_minor, r.currency, r.sequence, r.created_at,
    r.updated_at, r.body
  from json_to_recordset(p_transfers) as r (
    n integer, id text, status text, amount_minor bigint, currency text, sequence integer,
    created_at timestamptz, updated_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
  where r.n <> all (p_moved);
  if p_moved <> '{}' then
    with moved as materialized (
      select r.*, k.place
      from json_to_recordset(p_transfers) as r (
        n integer, id text, status text, sequence integer, updated_at timestamptz, body text
      )
      join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
      cross join lateral (
        select k.ctid as place from pay.transfers k
        where k.environment_id = w.environment_id and k.id = r.id limit 1
      ) k
      where r.n = any (p_moved)
    )
    update pay.transfers t
    set status = r.status, sequence = r.sequence, updated_at = r.updated_at, body = r.body
    from moved r
    where t.ctid = r.place;
  end if;
end
$$;

-- Writes the refunds of the committed changes: new ones, and those whose status has changed.
create or replace function pay_internal.write_refunds(
  p_refunds json, p_won integer[], p_environments text[]
)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into pay.refunds as t
    (environment_id, id, payment_id, status, amount_minor, currency, created_at, body)
  select w.environment_id, r.id, r.payment_id, r.status, r.amount_minor,
    r.currency, r.created_at, r.body
  from json_to_recordset(p_refunds) as r (
    n integer, id text, payment_id text, status text, amount_minor bigint, currency text,
    created_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
  on conflict on constraint refunds_pkey
  do update set status = excluded.status, body = excluded.body;
end
$$;

-- Writes the events of the committed changes, and a delivery for each endpoint that subscribes to
-- them. Returns the number of deliveries.
create or replace function pay_internal.write_events(p_events json, p_found pay.admission[])
returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := pay_internal.server_time();
  v_deliveries bigint;
begin
  with
  event as materialized (
    select f.environment_id, f.ahead, e.*
    from json_to_recordset(p_events) as e (
      n integer, id text, type text, subject_id text, sequence integer, created_at timestamptz,
      delivery_id text, body text
    )
    join unnest(p_found) f on f.n = e.n
    where f.outcome = 'ok'
  ),
  event_made as (
    insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
    select environment_id, id, type, subject_id, sequence, created_at, body from event
  ),
  delivery_made as (
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        next_attempt_at, created_at, due_at)
    select e.environment_id, pay_internal.delivery_id(e.delivery_id, t.slot), e.id, e.type, t.id,
      e.subject_id, e.sequence, 'pending', least(e.created_at, v_now), e.created_at,
      case when e.ahead is not null then e.created_at end
    from event e
    join pay.webhook_endpoints t
      on t.environment_id = e.environment_id
      and t.status = 'enabled'
      and t.events && pay_internal.patterns_of(e.type)
    returning 1
  )
  select count(*) into v_deliveries from delivery_made;
  return v_deliveries;
end
$$;
