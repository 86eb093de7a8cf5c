-- Purpose: the things that the clock of a sandbox brings next (contract §7): of each kind the
-- number and the first time.

-- The most operations, deliveries and mandates that a read looks at, each: those that come first.
create or replace function pay_internal.due_rows()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

-- The kind of what an operation of a sandbox does when it is due; null: nothing, because the
-- subject has left the status that the operation waits for (pointlessRecord in decide_result.ts).
create or replace function pay_internal.due_kind(
  p_op text, p_payment_status text, p_method_kind text, p_has_open_dispute boolean
) returns text language sql immutable as $$
  select case p_op
    when 'authorize' then
      case when p_payment_status in (/* waits for money */ 'pending', 'processing')
        then 'payment_result' end
    when 'abandon' then
      case when p_payment_status in (
          /* waits for the payer */ 'pending', 'requires_action', 'processing')
        then case when pay_internal.rail_needs_token(p_method_kind)
          then 'authentication_end' else 'payment_end' end end
    when 'expire' then
      case when p_payment_status in (/* waits for its capture */ 'authorized')
        then 'authorization_end' end
    when 'dispute_expire' then case when p_has_open_dispute then 'dispute_loss' end
    when 'return' then case when p_payment_status <> 'failed' then 'payment_return' end
    when 'transfer' then 'transfer_result'
    when 'refund' then 'refund_result'
    when 'dispute_evidence' then 'dispute_result'
    when 'dispute_accept' then 'dispute_result'
    when 'capture' then 'payment_result'
    when 'cancel' then 'payment_result'
  end
$$;

-- The operations of a sandbox that are due until a time of it, and the number of rows read. A row
-- without a due_at is from before the sandbox had a clock of its own. Plans as in
-- sandbox_clock_steps.sql.
create or replace function pay_internal.due_operations(
  p_environment_id text, p_until timestamptz
) returns table (kind text, id text, at timestamptz, rows_read bigint)
language plpgsql stable rows 100 set enable_sort = off set enable_bitmapscan = off as $$
begin
  return query
    with waiting as materialized (
      (select c.op, c.subject_id, c.due_at as at from pay.provider_operations c
       where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
         and c.account_id = 'sandbox' and c.next_attempt_at = 'infinity' and c.due_at <= p_until
       order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.due_rows())
      union all
      (select c.op, c.subject_id, coalesce(c.due_at, c.next_attempt_at)
       from pay.provider_operations c
       where c.environment_id = any (array[p_environment_id]) and c.state = 'pending'
         and c.account_id = 'sandbox' and c.next_attempt_at < 'infinity'
       order by c.environment_id, c.next_attempt_at, c.due_at limit pay_internal.due_rows())
    )
    select pay_internal.due_kind(w.op, p.status, p.method_kind, w.op = 'dispute_expire' and exists (
        select from pay.disputes d
        where d.environment_id = p_environment_id and d.payment_id = w.subject_id
          and d.status = 'needs_response' and d.provider_reference is null
      )), w.subject_id, w.at, (select count(*) from waiting)
    from waiting w
    left join pay.payments p on p.environment_id = p_environment_id and p.id = w.subject_id
    where w.at <= p_until;
end $$;

-- The same for deliveries of webhooks.
create or replace function pay_internal.due_deliveries(
  p_environment_id text, p_until timestamptz
) returns table (kind text, id text, at timestamptz, rows_read bigint)
language plpgsql stable rows 100 set enable_sort = off set enable_bitmapscan = off as $$
begin
  return query
    with waiting as materialized (
      (select d.id, d.due_at as at from pay.webhook_deliveries d
       where d.environment_id = any (array[p_environment_id]) and d.next_attempt_at = 'infinity'
         and d.due_at <= p_until
       order by d.environment_id, d.due_at limit pay_internal.due_rows())
      union all
      (select d.id, coalesce(d.due_at, d.next_attempt_at) from pay.webhook_endpoints t
       cross join lateral (
         select o.id, o.due_at, o.next_attempt_at from pay.webhook_deliveries o
         where o.endpoint_id = t.id and o.expired_leases = 0 and o.next_attempt_at < 'infinity'
           and o.environment_id is not distinct from p_environment_id
         order by o.next_attempt_at limit pay_internal.due_rows()
       ) d
       where t.environment_id = p_environment_id limit pay_internal.due_rows())
    )
    select 'delivery', w.id, w.at, (select count(*) from waiting) from waiting w
    where w.at <= p_until;
end $$;

-- Lists the things that the clock of a sandbox brings, by kind.
-- p_until  a time of the sandbox; null: without an end
-- p_sends  whether the service sends webhooks
-- Outcomes: those of admission.sql; live.
create or replace function pay.read_due(p_request text, p_until text, p_sends boolean)
returns pay.admission language plpgsql volatile security definer as $$
declare
  v_access pay.admission := pay_internal.refuse_live(
    pay_internal.admit_one(p_request, 'shared', true));
  v_until constant timestamptz := coalesce(p_until::timestamptz, 'infinity');
begin
  if v_access.outcome = 'ok' then
    select format('{"object":"due","now":%s,"until":%s,"data":[%s],"has_more":%s}',
      to_json(pay_internal.wire_time(pay_internal.environment_time(v_access.environment_id))),
      coalesce(to_json(pay_internal.wire_time(p_until::timestamptz))::text, 'null'),
      coalesce(string_agg(format('{"kind":%s,"count":%s,"first_at":%s,"first_id":%s}',
        to_json(k.kind), k.things, to_json(pay_internal.wire_time(k.first_at)),
        to_json(k.first_id)), ',' order by k.first_at, k.kind), ''),
      to_json(coalesce(bool_or(k.rows_read >= pay_internal.due_rows()), false)))
    into v_access.body
    from (
      select d.kind, count(*) as things, min(d.at) as first_at,
        (array_agg(d.id order by d.at, d.id))[1] as first_id, max(d.rows_read) as rows_read
      from (
        select * from pay_internal.due_operations(v_access.environment_id, v_until)
        union all
        select * from pay_internal.due_deliveries(v_access.environment_id, v_until) where p_sends
        union all
        select 'instrument_end', t.id, t.idle_at, count(*) over () from (
          select i.id, i.idle_at from pay.instruments i
          where i.environment_id = any (array[v_access.environment_id])
            and i.idle_at is not null and i.idle_at <= v_until
          order by i.environment_id, i.idle_at limit pay_internal.due_rows()
        ) t
      ) d
      where d.kind is not null
      group by d.kind
    ) k;
  end if;
  return v_access;
end $$;
grant execute on function pay.read_due to pay_api;
