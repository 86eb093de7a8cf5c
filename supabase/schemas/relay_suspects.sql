-- Purpose: steps of pay.relay_turn for suspects (ADR 0020). A suspect is a delivery with a lost
-- claim: its lease has expired without a record, so it may have crashed its relay.

-- Claims one suspect. A relay has one at a time, so that a crash adds no lost claim to another
-- suspect. p_suspects_ahead: as in pay_internal.lock_suspects. p_ahead: how far the caller's clock
-- is ahead of the server's. p_aside, p_only: as in pay.relay_turn.
create or replace function pay_internal.claim_suspect(
  p_suspects_ahead jsonb,
  p_at timestamptz,
  p_leased_until timestamptz,
  p_ahead interval,
  p_aside text[],
  p_only text
)
returns setof pay.claimed_delivery
language plpgsql volatile rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
  v_longest_look constant interval := '200 ms';
  v_due pay_internal.due_delivery[];
  v_is_claimed boolean;
begin
  loop
    v_due := pay_internal.lock_suspects(p_suspects_ahead, p_at, p_aside, p_only);
    exit when v_due is null;
    return query select * from pay_internal.claim_first_suspect(v_due, p_leased_until, p_ahead);
    v_is_claimed := found;
    -- Postpones suspects that wait for an earlier delivery, and cancels those of disabled
    -- endpoints.
    perform pay_internal.put_off_deliveries(v_due, p_at);
    exit when v_is_claimed or clock_timestamp() > statement_timestamp() + v_longest_look;
  end loop;
end
$$;

-- Locks the suspects that may be next, two of each endpoint, and returns them in the order in which
-- the relay claims one; null if there are none. Accounts share the relay's time: p_ahead, {account:
-- milliseconds}, contains the accounts that have used more of it than the others. Within an account
-- the suspects with the fewest lost claims come first, because the one that crashes relays has the
-- most.
create or replace function pay_internal.lock_suspects(
  p_ahead jsonb, p_at timestamptz, p_aside text[], p_only text
)
returns pay_internal.due_delivery[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    with recursive suspected as (
      (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
       where d.next_attempt_at is not null and d.lost_claims > 0
         and d.endpoint_id >= coalesce(p_only, '')
       order by d.endpoint_id limit 1)
      union all
      select n.environment_id, n.endpoint_id
      from suspected s
      cross join lateral (
        select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
        where d.next_attempt_at is not null and d.lost_claims > 0 and d.endpoint_id > s.endpoint_id
        order by d.endpoint_id limit 1
      ) n
      where p_only is null
    )
    select array_agg(
      row(l.environment_id, l.id, l.endpoint_id, l.subject_id, l.sequence, l.event_id, null,
        l.leased_until is not null)::pay_internal.due_delivery
      order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
        l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence
    )
    from suspected s
    join pay.environments e on e.id = s.environment_id
    -- A delivery that moves to an inbox is a suspect until it is there.
    left join pay.webhook_endpoints t
      on t.environment_id = s.environment_id and t.id = s.endpoint_id
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.leased_until, d.lost_claims, d.next_attempt_at
      from pay.webhook_deliveries d
      where d.endpoint_id = s.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims > 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.lost_claims, d.next_attempt_at, d.subject_id, d.sequence
      limit 2
      for update skip locked
    ) l
    where t.delivery is distinct from 'inbox'
      and s.endpoint_id <> all (p_aside) and s.endpoint_id = coalesce(p_only, s.endpoint_id)
  );
end
$$;

-- Claims the first of the locked suspects that waits for no earlier delivery.
-- A claim counts the lost claim before it. On the third and every later loss crashed is true: the
-- relay records a crashed attempt under the number of the lost one and does not send the delivery.
-- Concurrency: as pay_internal.claim_due.
create or replace function pay_internal.claim_first_suspect(
  p_due pay_internal.due_delivery[],
  p_leased_until timestamptz,
  p_ahead interval
)
returns setof pay.claimed_delivery
language plpgsql volatile rows 10
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most_lost constant integer := 3;
begin
  return query
  with
  chosen as materialized (
    select d.environment_id, d.id, t.url, t.secrets, t.failing_since, e.livemode, e.public_id,
      e.account, c.is_lost, c.is_lost and d.lost_claims + 1 >= v_most_lost as crashed
    from unnest(p_due) with ordinality as c
      (environment_id, id, endpoint_id, subject_id, sequence, event_id, rank, is_lost, n)
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    join pay.webhook_endpoints t
      on t.environment_id = d.environment_id and t.id = d.endpoint_id and t.status = 'enabled'
        and t.delivery = 'url'
    join pay.environments e on e.id = d.environment_id
    where not exists (
      select from pay.webhook_deliveries w
      where w.status = 'pending'
        and w.environment_id is not distinct from d.environment_id
        and w.endpoint_id = d.endpoint_id
        and w.subject_id = d.subject_id
        and w.sequence < d.sequence
    )
    order by c.n
    limit 1
  ),
  claimed as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + case when c.crashed then 0 else 1 end,
      lost_claims = d.lost_claims + case when c.is_lost then 1 else 0 end,
      leased_until = p_leased_until
    from chosen c
    where d.environment_id = c.environment_id and d.id = c.id
    returning c.*, d.endpoint_id, d.event_id, d.subject_id, d.attempt_count
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets::text, c.livemode, c.failing_since + p_ahead, true, c.crashed,
    v.body, (
      select row_to_json(w)::text from pay.sandbox_settings w
      where w.environment_id = c.environment_id), null
  from claimed c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
end
$$;
