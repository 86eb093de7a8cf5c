-- Purpose: the work of the provider worker: operations to send again, provider events to apply,
-- objects to sync, and accounts to read (provider_readings.sql). A worker leases work, does it,
-- and records the result (pay.record, pay.save_cursor, pay.save_totals_cursor,
-- pay.store_totals).
--
-- Concurrency: a worker skips locked rows, so workers never wait for each other
-- and no two of them get the same work. If a worker dies, its lease ends and another leases the
-- work. Clocks: a clock that is ahead of the server's counts as the server's, and leases are by the
-- server's time.

-- Payments and transfers, as far as providers concern them.
create or replace view pay_internal.provider_subjects with (security_invoker = true) as
select p.environment_id, p.id, p.status, p.sequence, p.body from pay.payments p
union all
select tr.environment_id, tr.id, tr.status, tr.sequence, tr.body from pay.transfers tr;
comment on view pay_internal.provider_subjects is 'Payments and transfers.';

create or replace function pay_internal.provider_work_is_due()
returns boolean language sql stable as $$
  select exists (
      select from pay.provider_operations c
      where c.state = 'pending' and c.next_attempt_at <= now()
        and (c.leased_until is null or c.leased_until <= now())
    )
    or exists (
      select from pay.provider_events event
      where event.outcome is null and (event.leased_until is null or event.leased_until <= now())
    )
    or exists (select from pay.provider_operations c where c.next_sync_at <= now())
    or exists (
      select from pay_internal.provider_readings r
      join pay.provider_cursors u
        on u.environment_id = r.environment_id and u.account_id = r.account_id
      where (r.poll_at <= now() or r.totals_at <= now())
        and (u.leased_until is null or u.leased_until <= now())
    )
$$;

-- Leases work: up to p_limit pieces, of which up to p_asking_limit are not provider events.
-- Operations, syncs and accounts to read get a quarter each, so that many due operations of a slow
-- provider hold up no provider events. Provider events get the rest, in one query, so that all of
-- them are as of one moment. Then operations and syncs get what is left. Accounts to read do not,
-- because each takes many requests. p_at: the caller's time. A kind whose lease fails holds up no
-- other kind (pay_internal.given_up_work).
create or replace function pay.lease_provider_work(
  p_limit integer, p_asking_limit integer, p_lease_ms integer, p_at timestamptz
) returns setof pay.provider_work language plpgsql volatile security definer rows 10 as $$
declare
  v_at constant timestamptz := least(p_at, pay_internal.server_time());
  v_leased_until constant timestamptz := pay_internal.server_time() + p_lease_ms * interval '1 ms';
  v_quota constant integer := greatest(p_limit / 4, 1);
  v_left integer := p_limit;
  v_asking_left integer := p_asking_limit;
  v_leased integer;
  v_kind text;
  v_limit integer;
begin
  perform pay_internal.act_as_worker();
  for v_kind, v_limit in
    select k.kind, k.quota from (values
      (1, 'operation', v_quota), (2, 'sync', v_quota), (3, 'reading', v_quota), (4, 'event',
        p_limit),
      (5, 'operation', p_limit), (6, 'sync', p_limit)
    ) as k (rank, kind, quota)
    order by k.rank
  loop
    v_limit := least(v_limit, v_left, case when v_kind <> 'event' then v_asking_left end);
    continue when v_limit <= 0;
    begin
      return query select * from pay_internal.lease_kind(v_kind, v_limit, v_at, v_leased_until);
      get diagnostics v_leased = row_count;
    exception when others then
      return next pay_internal.given_up_work(v_kind, null, 'all', sqlstate, sqlerrm);
      v_leased := 0;
    end;
    v_left := v_left - v_leased;
    if v_kind <> 'event' then v_asking_left := v_asking_left - v_leased; end if;
  end loop;
end $$;
grant execute on function pay.lease_provider_work to pay_api;

-- Leases pieces of work of one kind, and then reads them. A piece that cannot be read keeps its
-- lease, so it comes again when the lease has ended and holds up no other until then.
create or replace function pay_internal.lease_kind(
  p_kind text, p_limit integer, p_at timestamptz, p_leased_until timestamptz
) returns setof pay.provider_work language plpgsql volatile rows 10 as $$
declare
  v_leased record;
begin
  select array_agg(l.environment_id order by l.place) as environments,
    array_agg(l.account_id order by l.place) as accounts, array_agg(l.id order by l.place) as ids
  into v_leased
  from pay_internal.lease_work(p_kind, p_limit, p_at, p_leased_until) l;
  if v_leased.ids is not null then
    return query select * from pay_internal.read_work_apart(
      p_kind, v_leased.environments, v_leased.accounts, v_leased.ids, p_at);
  end if;
end $$;

-- Leases due work of one kind: operations whose next attempt is due, provider events without an
-- outcome, objects at providers to sync every hour, and accounts to read. Reads nothing that
-- depends on the content of the work. A pending operation is not synced, because its next
-- attempt asks the same. A provider event that came before the reply to its operation gets its
-- subject now.
-- id     that of an operation, or the reference of a provider event
-- place  the order of the work
create or replace function pay_internal.lease_work(
  p_kind text, p_limit integer, p_at timestamptz, p_leased_until timestamptz
) returns table (environment_id text, account_id text, id text, place text)
language plpgsql volatile rows 10 as $$
#variable_conflict use_column
begin
  case p_kind
    when 'operation' then
      return query
        with due as materialized (
          select c.environment_id, c.id
          from pay.provider_operations c
          cross join lateral (
            select e.retired_at, e.moving from pay.environments e
            where e.id = c.environment_id limit 1
          ) e
          where e.retired_at is null and e.moving is null
            and c.state = 'pending' and c.next_attempt_at <= p_at
            and (c.leased_until is null or c.leased_until <= p_at)
          order by c.next_attempt_at
          limit p_limit
          for update of c skip locked
        )
        update pay.provider_operations c
        set leased_until = p_leased_until, attempts = c.attempts + 1,
          first_sent_at = coalesce(c.first_sent_at, p_at)
        from due d
        where c.environment_id = d.environment_id and c.id = d.id
        returning c.environment_id, c.account_id, c.id, c.id;
    when 'event' then
      return query select * from pay_internal.lease_provider_events(p_limit, p_at, p_leased_until);
    when 'sync' then
      return query
        with due as materialized (
          select c.environment_id, c.id
          from pay.provider_operations c
          cross join lateral (
            select e.moving from pay.environments e where e.id = c.environment_id limit 1
          ) e
          where e.moving is null and c.next_sync_at <= p_at
          order by c.next_sync_at
          limit p_limit
          for update of c skip locked
        )
        update pay.provider_operations c
        set next_sync_at = p_at + interval '1 hour'
        from due d
        where c.environment_id = d.environment_id and c.id = d.id
        returning c.environment_id, c.account_id, c.id, c.id;
    else
      return query
        with due as materialized (
          select u.environment_id, u.account_id
          from pay.provider_cursors u
          join pay_internal.provider_readings d
            on d.environment_id = u.environment_id and d.account_id = u.account_id
          cross join lateral (
            select e.moving from pay.environments e where e.id = u.environment_id limit 1
          ) e
          where e.moving is null and (u.leased_until is null or u.leased_until <= p_at)
            and (d.poll_at <= p_at or d.totals_at <= p_at)
          order by u.polled_at nulls first
          limit p_limit
          for update of u skip locked
        )
        update pay.provider_cursors u
        set leased_until = p_leased_until
        from due d
        where u.environment_id = d.environment_id and u.account_id = d.account_id
        returning u.environment_id, u.account_id, u.account_id, u.account_id;
  end case;
end $$;

-- A row about work that was given up, for the log of the worker.
-- p_id  its id or reference; all: nothing of the kind could be leased
create or replace function pay_internal.given_up_work(
  p_kind text, p_environment_id text, p_id text, p_code text, p_message text
) returns pay.provider_work language plpgsql stable as $$
declare
  v_work pay.provider_work;
begin
  raise warning 'gave up % %: % %', p_kind, p_id, p_code, p_message;
  v_work.kind := 'given_up';
  v_work.environment_id := p_environment_id;
  v_work.operation := json_build_object('kind', p_kind, 'id', p_id, 'code', p_code);
  return v_work;
end $$;

-- Reads leased pieces of work in one query. If that fails, reads them one by one and gives up those
-- that cannot be read.
create or replace function pay_internal.read_work_apart(
  p_kind text, p_environments text[], p_accounts text[], p_ids text[], p_at timestamptz
) returns setof pay.provider_work language plpgsql volatile rows 10 as $$
begin
  return query
    select * from pay_internal.read_work(p_kind, p_environments, p_accounts, p_ids, p_at);
exception when others then
  if cardinality(p_ids) = 1 then
    return next pay_internal.given_up_work(p_kind, p_environments[1], p_ids[1], sqlstate, sqlerrm);
    return;
  end if;
  for v_n in 1..cardinality(p_ids) loop
    return query select * from pay_internal.read_work_apart(
      p_kind, p_environments[v_n:v_n], p_accounts[v_n:v_n], p_ids[v_n:v_n], p_at);
  end loop;
end $$;

create or replace function pay_internal.read_work(
  p_kind text, p_environments text[], p_accounts text[], p_ids text[], p_at timestamptz
) returns setof pay.provider_work language plpgsql volatile rows 10 as $$
begin
  case p_kind
    when 'operation' then
      return query select * from pay_internal.read_operations(p_environments, p_ids);
    when 'event' then
      return query select * from pay_internal.read_provider_events(
        p_environments, p_accounts, p_ids);
    when 'sync' then
      return query select * from pay_internal.read_syncs(p_environments, p_ids);
    else
      return query select * from pay_internal.read_readings(p_environments, p_ids, p_at);
  end case;
end $$;

create or replace function pay_internal.read_operations(p_environments text[], p_ids text[])
returns setof pay.provider_work language plpgsql stable rows 10 as $$
begin
  return query
    select 'operation', c.environment_id, e.livemode,
      pay_internal.provider_account_json(c.environment_id, c.account_id),
      pay_internal.provider_operation_json(c),
      null::json, subject.body, subject.sequence, r.body, null::json, null::date
    from unnest(p_environments, p_ids) with ordinality as l (environment_id, id, n)
    join pay.provider_operations c on c.environment_id = l.environment_id and c.id = l.id
    join pay.environments e on e.id = c.environment_id
    left join pay_internal.provider_subjects subject
      on subject.environment_id = c.environment_id and subject.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
    order by l.n;
end $$;

-- Provider events without an outcome, as the worker needs them. A provider event about a payment
-- that its account has no operation for gets no subject.
create or replace function pay_internal.read_provider_events(
  p_environments text[], p_accounts text[], p_references text[]
) returns setof pay.provider_work language plpgsql stable rows 10 as $$
begin
  return query
  select 'event', event.environment_id, e.livemode,
    pay_internal.provider_account_json(event.environment_id, event.account_id), k.operation,
    pay_internal.provider_event_json(event),
    subject.body, subject.sequence, r.body, null::json, null::date
  from unnest(p_environments, p_accounts, p_references) with ordinality
    as o (environment_id, account_id, reference, n)
  join pay.provider_events event
    on event.environment_id = o.environment_id and event.account_id = o.account_id
    and event.reference = o.reference
  join pay.environments e on e.id = event.environment_id
  left join pay_internal.provider_subjects subject
    on subject.environment_id = event.environment_id and subject.id = event.subject_id
    and pay_internal.has_event_operation(
      event.environment_id, event.account_id, event.subject_id, event.provider_reference)
  left join pay.refunds r
    on r.environment_id = event.environment_id and r.id = event.refund_id
      and r.payment_id = subject.id
  left join lateral (
    select pay_internal.provider_operation_json(c) as operation from pay.provider_operations c
    where c.environment_id = event.environment_id and c.subject_id = event.subject_id
      and c.refund_id is not distinct from event.refund_id
      -- Somebody can capture at the provider. Then the authorization finds the payment there.
      and (c.op = event.op or event.op = 'capture' and c.op = 'authorize')
    order by c.op = event.op desc, c.id desc limit 1
  ) k on true
  order by o.n;
end $$;

-- The objects at providers to sync: those of live payments, refunds and transfers that are not
-- final. After a sync of a final one there is no further sync.
create or replace function pay_internal.read_syncs(p_environments text[], p_ids text[])
returns setof pay.provider_work language plpgsql volatile rows 10 as $$
begin
  return query
  with
  found as materialized (
    select c.environment_id, c.id, subject.body, subject.sequence, r.body as refund_body,
      case c.op
        when 'authorize' then pay_internal.has_no_result(subject.status)
        when 'transfer' then subject.status = 'pending'
        else r.status = 'pending'
      end as is_open
    from unnest(p_environments, p_ids) as d (environment_id, id)
    join pay.provider_operations c on c.environment_id = d.environment_id and c.id = d.id
    left join pay_internal.provider_subjects subject
      on subject.environment_id = c.environment_id and subject.id = c.subject_id
    left join pay.refunds r on r.environment_id = c.environment_id and r.id = c.refund_id
  ),
  synced as (
    update pay.provider_operations c
    set next_sync_at = case when f.is_open then c.next_sync_at end
    from found f
    where c.environment_id = f.environment_id and c.id = f.id
    returning c.environment_id, c.account_id, c.state, c.next_sync_at,
      pay_internal.provider_operation_json(c) as operation, f.body, f.sequence, f.refund_body
  )
  select 'sync', c.environment_id, true,
    pay_internal.provider_account_json(c.environment_id, c.account_id), c.operation, null::json,
    c.body, c.sequence, c.refund_body, null::json, null::date
  from synced c
  where c.next_sync_at is not null and c.state <> 'pending';
end $$;
