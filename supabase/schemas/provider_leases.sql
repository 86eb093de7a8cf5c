-- Purpose: the leases of the work of the provider worker. A step of pay.claim_provider_work, before
-- the work is read (provider_work.sql).

-- The part of pay_internal.lease_work for facts, oldest first.
create or replace function pay_internal.lease_facts(
  p_limit integer, p_at timestamptz, p_leased_until timestamptz
)
returns table (environment_id text, account_id text, id text, place text)
language plpgsql volatile rows 10
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    with open as materialized (
      select f.environment_id, f.account_id, f.reference
      from pay.provider_facts f
      cross join lateral (
        select e.retired_at from pay.environments e where e.id = f.environment_id limit 1
      ) e
      where e.retired_at is null and f.outcome is null
        and (f.leased_until is null or f.leased_until <= p_at)
      order by f.received_at
      limit p_limit
      for update of f skip locked
    )
    update pay.provider_facts f
    set leased_until = p_leased_until,
      subject_id = coalesce(f.subject_id,
        pay_internal.find_fact_subject(f.environment_id, f.account_id, f.provider_reference)),
      refund_id = coalesce(f.refund_id, case when f.op = 'refund'
        then pay_internal.find_fact_refund(f.environment_id, f.account_id, f.reference) end)
    from open o
    where f.environment_id = o.environment_id and f.account_id = o.account_id
      and f.reference = o.reference
    returning f.environment_id, f.account_id, f.reference,
      to_char(f.received_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS');
end
$$;

-- Leases due work of one kind: calls whose next attempt is due, facts without an outcome, objects
-- at providers to look at every hour, and accounts to read. Reads nothing that depends on the
-- content of the work. A pending call is not looked at, because its next attempt asks the same. A
-- fact that came before the reply to its call gets its subject now.
-- id     that of a call, or the reference of a fact
-- place  the order of the work
create or replace function pay_internal.lease_work(
  p_kind text, p_limit integer, p_at timestamptz, p_leased_until timestamptz
)
returns table (environment_id text, account_id text, id text, place text)
language plpgsql volatile rows 10
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  case p_kind
    when 'call' then
      return query
        with due as materialized (
          select c.environment_id, c.id
          from pay.provider_calls c
          cross join lateral (
            select e.retired_at from pay.environments e where e.id = c.environment_id limit 1
          ) e
          where e.retired_at is null and c.state = 'pending' and c.next_attempt_at <= p_at
            and (c.leased_until is null or c.leased_until <= p_at)
          order by c.next_attempt_at
          limit p_limit
          for update of c skip locked
        )
        update pay.provider_calls c
        set leased_until = p_leased_until, attempts = c.attempts + 1,
          first_sent_at = coalesce(c.first_sent_at, p_at)
        from due d
        where c.environment_id = d.environment_id and c.id = d.id
        returning c.environment_id, c.account_id, c.id, c.id;
    when 'fact' then
      return query select * from pay_internal.lease_facts(p_limit, p_at, p_leased_until);
    when 'look' then
      return query
        with due as materialized (
          select c.environment_id, c.id
          from pay.provider_calls c
          where c.next_look_at <= p_at
          order by c.next_look_at
          limit p_limit
          for update of c skip locked
        )
        update pay.provider_calls c
        set next_look_at = p_at + interval '1 hour'
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
          where (u.leased_until is null or u.leased_until <= p_at)
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
end
$$;
