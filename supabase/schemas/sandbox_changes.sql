-- Purpose: has anything changed in a sandbox that a page shows (contract §7)?
--
-- The position of a sandbox is a hash of rows that each change writes anyway, so no change pays for
-- it: the newest events and logged requests, the attempts that come next, and the rows that change
-- in place, with the transaction that has written them (xmin). Two positions differ if anything has
-- changed between them (ADR 0017 has the exceptions).

-- The position of a sandbox. An end of an attempt moves its delivery away from the next ones of its
-- endpoint, and a reset takes the keys away.
-- Cost: at most v_most rows of each table and of each endpoint, all by an index. More than one,
-- because transactions do not commit in the order of their ids.
create or replace function pay_internal.sandbox_position(p_environment_id text)
returns text language plpgsql stable as $$
declare
  v_most constant integer := 32;
begin
  return (
    select 'chg_' || md5(string_agg(o.id || ' ' || o.xmin, ',' order by o.id))
    from (
      select p_environment_id as id, '' as xmin
      union all
      (select v.id, '' from pay.events v
        where v.environment_id = p_environment_id order by v.id desc limit v_most)
      union all
      (select r.id, '' from pay.requests r
        where r.environment_id = p_environment_id order by r.id desc limit v_most)
      union all
      select t.id, t.xmin::text from pay.webhook_endpoints t
      where t.environment_id = p_environment_id
      union all
      select d.id, d.xmin from pay.webhook_endpoints t
      cross join lateral (
        select d.id, d.xmin::text from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.expired_leases = 0 and d.next_attempt_at is not null
          and d.environment_id is not distinct from p_environment_id
        order by d.next_attempt_at, d.subject_id, d.sequence limit v_most
      ) d
      where t.environment_id = p_environment_id
      union all
      (select f.id, f.xmin::text from pay.faults f
        where f.environment_id = p_environment_id order by f.id desc limit v_most)
      union all
      (select k.id, k.xmin::text from pay.api_keys k
        where k.environment_id = p_environment_id order by k.id desc limit v_most)
      union all
      (select s.id, s.xmin::text from pay.sandboxes s
        where s.environment_id = p_environment_id order by s.id desc limit v_most)
      union all
      select 'settings', w.xmin::text from pay.sandbox_settings w
      where w.environment_id = p_environment_id
    ) o
  );
end $$;

-- The position of the caller's sandbox. p_request: the request, as pay_internal.admit takes it, in
-- a list of one. Outcomes: those of admission.sql; ok (body: the position).
create or replace function pay.read_position(p_request text) returns pay.admission
language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request, 'shared', true);
begin
  if v_access.outcome = 'ok' then
    v_access.body := pay_internal.sandbox_position(v_access.environment_id);
  end if;
  return v_access;
end $$;
grant execute on function pay.read_position to pay_api;

-- The positions of sandboxes for which readers wait. One statement for all readers of a process.
create or replace function pay.sandbox_positions(p_environments text[])
returns table (environment_id text, "position" text)
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query select o.id, pay_internal.sandbox_position(o.id) from unnest(p_environments) as o (id);
end $$;
grant execute on function pay.sandbox_positions to pay_api;
