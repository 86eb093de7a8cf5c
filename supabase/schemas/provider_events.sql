-- Purpose: provider events, the reports of providers. Each event is stored once, before it is
-- applied (record.sql).

-- Stores events that are not stored yet. Returns their number. An event without a subject gets the
-- subject of the operations with the same object of the provider, and one about a card the payment
-- that has saved it.
-- p_events [{environment_id, account_id, reference, op, state, subject_id, refund_id,
--          provider_reference, amount_minor, currency, at, body}]; body is the whole event
-- Concurrency: inserts in the order of account and reference. A second transaction that stores the
-- same event waits for the end of the first one.
create or replace function pay_internal.keep_provider_events(p_events jsonb, out stored bigint)
language plpgsql volatile as $$
declare
  v_now constant timestamptz := pay_internal.server_time();
begin
  insert into pay.provider_events (environment_id, account_id, reference, op, state, subject_id,
    refund_id, provider_reference, amount_minor, currency, happened_at, received_at, body)
  select f.environment_id, f.account_id, f.reference, f.op, f.state,
    coalesce(f.subject_id,
      pay_internal.find_event_subject(f.environment_id, f.account_id, f.provider_reference),
      case when f.op in ('detach', 'renewal') then pay_internal.find_instrument_payment(
        f.environment_id, f.account_id, f.body ->> 'object_id') end),
    f.refund_id, f.provider_reference, f.amount_minor, f.currency, f.at, v_now,
    f.body #- '{bank,sealed}'
  from jsonb_to_recordset(p_events) as f (
    environment_id text, account_id text, reference text, op text, state text, subject_id text,
    refund_id text, provider_reference text, amount_minor bigint, currency text, at timestamptz,
    body jsonb
  )
  order by f.environment_id, f.account_id, f.reference
  on conflict on constraint provider_events_pkey do nothing;
  get diagnostics stored = row_count;
  perform pay_internal.keep_entry_details(p_events);
end $$;

-- The subject of the operations with an object of the provider; null if there is none.
create or replace function pay_internal.find_event_subject(
  p_environment_id text, p_account_id text, p_provider_reference text
) returns text language sql stable
-- As in pay_internal.lock_provider_events: only the index of the references has this order. With
-- old statistics the planner would read all operations of the environment.
set enable_sort = off as $$
  select c.subject_id from pay.provider_operations c
  where c.provider_reference between p_provider_reference and p_provider_reference
    and c.account_id = p_account_id and c.environment_id = p_environment_id
  order by c.provider_reference limit 1
$$;

-- Whether an account has an operation for a subject that can concern an object of the provider.
-- Another account, or another object that names the subject, must not settle it.
create or replace function pay_internal.has_event_operation(
  p_environment_id text, p_account_id text, p_subject_id text, p_provider_reference text
) returns boolean language sql stable as $$
  select exists (
    select from pay.provider_operations c
    where c.environment_id = p_environment_id and c.subject_id = p_subject_id
      and c.account_id = p_account_id
      and (c.provider_reference is null or p_provider_reference is null
        or c.provider_reference = p_provider_reference)
  )
$$;

-- Stores the events of a notification, poll or sync. Returns the number of new events. p_events: a
-- list of events as connectors make them. The worker applies them later.
create or replace function pay.store_provider_events(p_account_id text, p_events text)
returns bigint language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  return pay_internal.keep_provider_events((
    select coalesce(
      jsonb_agg(f.value || jsonb_build_object('environment_id', a.environment_id,
        'account_id', a.id, 'body', f.value)),
      '[]')
    from pay.provider_accounts a
    cross join jsonb_array_elements(p_events::jsonb) f
    where a.id = p_account_id
  ));
end $$;
grant execute on function pay.store_provider_events to pay_api;

-- Stores and locks the events of the records that are not stale. A record that applies an event
-- that has been applied or ignored is known. An unmatched event and an exception can still be
-- applied. If the list has several records that handle one event, the first may go on.
create or replace function pay_internal.lock_provider_events(
  p_records jsonb, p_found pay.admission[]
) returns pay.admission[] language plpgsql volatile
-- Without statistics any index of the environment looks as good as the primary key, and the planner
-- would read all its events. Only the primary key has the order by reference; with "=" in place of
-- "between" the planner would need no order.
set enable_sort = off as $$
declare
  v_refused record;
begin
  perform pay_internal.keep_provider_events((
    select coalesce(
      jsonb_agg(t.event || jsonb_build_object('environment_id', f.environment_id,
        'body', t.event
          - array['outcome', 'exception', 'booked_minor', 'was_booked_minor', 'received_at',
            'is_elsewhere', 'follows_unmatched'])),
      '[]')
    from unnest(p_found) f
    join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = f.n
    cross join lateral (
      select e.retired_at from pay.environments e where e.id = f.environment_id limit 1
    ) e
    cross join jsonb_array_elements(r.provider_events) as t (event)
    where f.outcome <> 'stale' and e.retired_at is null
  ));
  for v_refused in
    with
    requested as materialized (
      select f.n, f.environment_id, o.account_id, o.reference, o.outcome,
        coalesce(o.bank ? 'is_replaced', false) as is_replaced,
        coalesce(o.was_booked_minor, 0) as was_booked_minor
      from unnest(p_found) f
      join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = f.n
      cross join jsonb_to_recordset(r.provider_events) as o (
        account_id text, reference text, outcome text, was_booked_minor bigint, bank jsonb)
      where f.outcome = 'ok'
      order by f.environment_id, o.account_id, o.reference
    ),
    locked as materialized (
      select a.n, a.outcome = 'applied' and l.outcome in ('applied', 'ignored') as is_known,
        a.outcome is not null and coalesce(l.outcome, 'unmatched') = 'unmatched'
          and (l.booked_minor <> a.was_booked_minor
            or l.is_replaced and not a.is_replaced)
          or exists (
            select from requested b
            where b.n < a.n and b.environment_id = a.environment_id
              and b.account_id = a.account_id and b.reference = a.reference
              and b.outcome is not null and a.outcome is not null
              and (a.outcome <> 'exception' or b.outcome <> 'exception')
          ) as is_stale
      from requested a
      cross join lateral (
        select k.outcome, k.booked_minor,
          coalesce(k.body -> 'bank' ? 'is_replaced', false) as is_replaced
        from pay.provider_events k
        where k.environment_id = a.environment_id and k.account_id = a.account_id
          and k.reference between a.reference and a.reference
        order by k.reference limit 1
        for update of k
      ) l
    )
    select l.n, case when bool_or(l.is_known) then 'known' else 'stale' end as outcome
    from locked l
    where l.is_known or l.is_stale
    group by l.n
  loop
    p_found[v_refused.n].outcome := v_refused.outcome;
  end loop;
  return p_found;
end $$;

-- Writes the outcomes of the events of the recorded records. An earlier outcome stays, unless the
-- event was unmatched, or was an exception and is applied now.
create or replace function pay_internal.handle_provider_events(
  p_records jsonb, p_expects jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile
-- As in pay_internal.lock_provider_events.
set enable_sort = off as $$
begin
  -- pay_internal.lock_provider_events has locked the events, so none moves.
  with handled as materialized (
    select k.place, e.id as expects_id, o.*
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = caller.n
    left join jsonb_to_recordset(p_expects) as e (n integer, id text) on e.n = caller.n
    cross join jsonb_to_recordset(r.provider_events) as o (
      account_id text, reference text, outcome text, exception text, booked_minor bigint,
      op text, state text, refund_id text, at timestamptz)
    cross join lateral (
      select k.ctid as place from pay.provider_events k
      where k.environment_id = caller.environment_id and k.account_id = o.account_id
        and k.reference between o.reference and o.reference
        and (k.outcome is null or k.outcome = 'unmatched'
          or k.outcome = 'exception' and o.outcome = 'applied')
      order by k.reference limit 1
    ) k
    where o.outcome is not null
  )
  update pay.provider_events k
  set outcome = h.outcome, exception = h.exception, handled_at = pay_internal.server_time(),
    booked_minor = coalesce(h.booked_minor, 0), leased_until = null,
    -- The operator can match an event with another subject than the one that it names, and money
    -- that names none.
    op = case k.op when 'adjustment' then h.op else k.op end,
    state = case k.op when 'adjustment' then h.state else k.state end,
    subject_id = coalesce(h.expects_id, k.subject_id),
    refund_id = coalesce(h.refund_id, k.refund_id),
    -- The response to an operation or a sync has the time of the movement, which a notification
    -- lacks.
    happened_at = coalesce(h.at, k.happened_at),
    dismissed_at = null, dismissed_reason = null
  from handled h
  where k.ctid = h.place;
end $$;

-- Lets the worker look again at the unmatched entries of banks about payments and transfers that
-- have changed now: a return can have come before the entry that it takes back. Those that an
-- operator has dismissed stay as they are.
-- Concurrency: a record of an unmatched entry expects the sequence of its payment or transfer,
-- which pay.record has locked. So each entry is seen here, or decided anew after this change.
create or replace function pay_internal.reopen_bank_entries(
  p_records jsonb, p_expects jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
begin
  with changed as materialized (
    select caller.environment_id, e.id
    from unnest(p_callers) caller
    join jsonb_to_recordset(p_records) as r (n integer, provider_events jsonb) on r.n = caller.n
    join jsonb_to_recordset(p_expects) as e (n integer, id text) on e.n = caller.n
    where r.provider_events @> '[{"outcome": "applied"}]'
  ), early as materialized (
    select k.place
    from changed c
    cross join lateral (
      select k.ctid as place from pay.provider_events k
      where k.subject_id between c.id and c.id and k.environment_id = c.environment_id
        and k.outcome = 'unmatched' and k.dismissed_at is null
        and k.body -> 'bank' ? 'entry'
      order by k.subject_id
      for update of k
    ) k
  )
  update pay.provider_events k
  set outcome = null, exception = null, handled_at = null, leased_until = null
  from early e
  where k.ctid = e.place;
end $$;

-- Whether the event with which a refund or dispute begins at the provider is unmatched. Then the
-- later events of this object have nothing here to wait for.
create or replace function pay_internal.follows_unmatched(p_event pay.provider_events)
returns boolean language sql stable as $$
  select exists (
    select from pay.provider_events event
    where event.environment_id = p_event.environment_id and event.account_id = p_event.account_id
      and event.reference = (p_event.body ->> 'object_id')
        || case p_event.op when 'refund' then ':succeeded' when 'dispute' then ':disputed' end
      and event.reference <> p_event.reference and event.outcome = 'unmatched'
  )
$$;

-- A stored event as the worker needs it. is_elsewhere: an operation of another account has made its
-- object, as if two accounts here are one at the provider. The money is booked there. dispute_body:
-- the dispute here that the event is about. transfers: as pay_internal.transfers_json returns them.
create or replace function pay_internal.provider_event_json(p_event pay.provider_events)
returns json language sql stable as $$
  select (p_event.body || jsonb_build_object('subject_id', p_event.subject_id,
    'dispute_body', case when p_event.op in ('dispute', 'dispute_evidence')
      then pay_internal.dispute_body(
      p_event.environment_id, p_event.subject_id, p_event.body ->> 'object_id') end,
    'transfers', pay_internal.transfers_json(p_event, p_event.subject_id),
    'refund_id', p_event.refund_id, 'booked_minor', p_event.booked_minor,
    'follows_unmatched', pay_internal.follows_unmatched(p_event),
    'received_at', pay_internal.wire_time(p_event.received_at), 'is_elsewhere',
    exists (
      select from pay.provider_operations c
      where c.provider_reference = p_event.provider_reference
        and c.account_id <> p_event.account_id
    ) or exists (
      select from pay.provider_operations c
      where c.subject_id = p_event.subject_id and c.account_id <> p_event.account_id
    )))::json
$$;

-- The refund of an earlier event about the same object, which somebody has made at the provider.
-- Its own event of success has become a refund here.
create or replace function pay_internal.find_event_refund(
  p_environment_id text, p_account_id text, p_object_id text
) returns text language sql stable as $$
  select event.refund_id from pay.provider_events event
  where event.environment_id = p_environment_id and event.account_id = p_account_id
    and event.reference = p_object_id || ':succeeded'
$$;

-- The accounts with provider events without an outcome, each found by one index probe.
create or replace function pay_internal.accounts_with_events()
returns text[] language plpgsql stable as $$
begin
  return array(
    with recursive account as (
      (select event.account_id from pay.provider_events event
       where event.outcome is null order by event.account_id limit 1)
      union all
      select n.account_id
      from account a
      cross join lateral (
        select event.account_id from pay.provider_events event
        where event.outcome is null and event.account_id > a.account_id
        order by event.account_id limit 1
      ) n
    )
    select a.account_id from account a
  );
end $$;

-- The part of pay_internal.lease_work for provider events: the oldest of each account, then the
-- next of each, up to the limit. So a payer who sends thousands of small amounts holds up no other
-- account.
create or replace function pay_internal.lease_provider_events(
  p_limit integer, p_at timestamptz, p_leased_until timestamptz
) returns table (environment_id text, account_id text, id text, place text)
language plpgsql volatile rows 10 as $$
#variable_conflict use_column
declare
  v_accounts constant text[] := pay_internal.accounts_with_events();
begin
  if v_accounts = '{}' then return; end if;
  return query
    with chosen as materialized (
      select l.environment_id, l.account_id, l.reference
      from unnest(v_accounts) a (id)
      cross join lateral (
        select event.environment_id, event.account_id, event.reference, event.received_at,
          row_number() over (order by event.received_at) as turn
        from pay.provider_events event
        cross join lateral (
          select e.retired_at, e.moving from pay.environments e
          where e.id = event.environment_id limit 1
        ) e
        where e.retired_at is null and e.moving is null and event.outcome is null
          and event.account_id = a.id
          and (event.leased_until is null or event.leased_until <= p_at)
        order by event.received_at
        limit p_limit
      ) l
      order by l.turn, l.received_at
      limit p_limit
    ),
    -- Locks only what is chosen.
    open as materialized (
      select event.environment_id, event.account_id, event.reference
      from chosen c
      join pay.provider_events event on event.environment_id = c.environment_id
        and event.account_id = c.account_id and event.reference = c.reference
      where event.outcome is null
        and (event.leased_until is null or event.leased_until <= p_at)
      for update of event skip locked
    )
    update pay.provider_events event
    set leased_until = p_leased_until,
      subject_id = coalesce(event.subject_id,
        pay_internal.find_event_subject(event.environment_id, event.account_id,
          event.provider_reference)),
      refund_id = coalesce(event.refund_id, case when event.op = 'refund'
        then pay_internal.find_event_refund(event.environment_id, event.account_id,
          event.body ->> 'object_id') end)
    from open o
    where event.environment_id = o.environment_id and event.account_id = o.account_id
      and event.reference = o.reference
    returning event.environment_id, event.account_id, event.reference,
      to_char(event.received_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS');
end $$;
