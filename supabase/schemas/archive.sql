-- Purpose: the archive of live environments (deno task archive): the events and deliveries that
-- retention would delete, and the sums of the ledger. Retention deletes nothing that the archive of
-- an environment does not have yet.

-- Operator: the live environments of an account, or all, with the day at which the archive of each
-- goes on: where the last one ended, or else the day of the oldest event, or the last day that can
-- be archived if that is older. So the first run writes a day, and retention waits from then on.
-- archived_until: null if there is no archive, or it has ended
-- last_day, last_sha256: the last manifest that was noted, also of an archive that has ended
create or replace function pay.list_archives(p_account text) returns table (
  environment_id text, account text, archived_until timestamptz, next_day timestamptz,
  last_day text, last_sha256 text
) language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
  select e.id, e.account, u.archived_until, coalesce(
    u.archived_until,
    date_trunc('day', least(pay_internal.server_time() - interval '8 days', (
      select o.created_at from pay.events o where o.environment_id = e.id order by o.id limit 1
    )), 'UTC')
  ), to_char((a.archived_until at time zone 'UTC') - interval '1 day', 'YYYY-MM-DD'), a.last_sha256
  from pay.environments e
  left join pay.archives a on a.environment_id = e.id
  cross join lateral (select case when not a.is_ended then a.archived_until end) u (archived_until)
  where e.livemode and (p_account is null or e.account = p_account)
  order by e.id;
end $$;
grant execute on function pay.list_archives to pay_operator;

-- Operator: a page of the rows of an environment from a time on and before another one, in the
-- order of their ids, each as one line of JSON.
-- p_kind: 'events' (as they were signed and sent) or 'deliveries'
-- p_after: the last id of the page before; null: the first page
create or replace function pay.read_archive(
  p_environment_id text, p_kind text, p_from timestamptz, p_before timestamptz, p_after text,
  p_limit integer
) returns table (id text, line text) language plpgsql volatile security definer rows 100 as $$
declare
  v_prefix constant text := case p_kind when 'events' then 'evt_' else 'whd_' end;
  v_before constant text := pay_internal.id_floor(v_prefix, p_before);
  -- The next text after an id in the collation of ids.
  v_from constant text := coalesce(p_after || chr(1), pay_internal.id_floor(v_prefix, p_from));
begin
  perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
  if p_kind = 'events' then
    return query select o.id, pay_internal.event_body(o) from pay.events o
    where o.environment_id = p_environment_id and o.id >= v_from and o.id < v_before
    order by o.id limit p_limit;
  else
    return query select d.id, json_build_object(
      'id', d.id, 'event_id', d.event_id, 'event_type', d.event_type,
      'endpoint_id', d.endpoint_id, 'subject_id', d.subject_id, 'status', d.status,
      'attempts', d.attempts, 'created_at', pay_internal.wire_time(d.created_at)
    )::text
    from pay.webhook_deliveries d
    where d.environment_id = p_environment_id and d.id >= v_from and d.id < v_before
    order by d.id limit p_limit;
  end if;
end $$;
grant execute on function pay.read_archive to pay_operator;

-- Operator: the sums of an environment's ledger movements from a time on and before another one,
-- for each pair of accounts.
create or replace function pay.sum_archive(
  p_environment_id text, p_from timestamptz, p_before timestamptz
) returns table (currency text, debit_account text, credit_account text, amount_minor text)
language plpgsql volatile security definer rows 10 as $$
begin
  perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
  return query
  select m.currency, m.debit_account, m.credit_account, sum(m.amount_minor)::text
  from pay.ledger_movements m
  where m.environment_id = p_environment_id
    and m.transaction_id >= pay_internal.id_floor('txn_', p_from)
    and m.transaction_id < pay_internal.id_floor('txn_', p_before)
  group by 1, 2, 3 order by 1, 2, 3;
end $$;
grant execute on function pay.sum_archive to pay_operator;

-- Operator: an archive has everything before a time. From the first call on, retention keeps what
-- the archive does not have. Raises check_violation if the time is earlier than the present one, or
-- later than a week ago: a delivery can still change until then.
-- p_sha256: of the manifest of the last day
create or replace function pay.note_archive(
  p_environment_id text, p_until timestamptz, p_sha256 text
) returns void language plpgsql volatile security definer as $$
declare
  v_until timestamptz;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  insert into pay.archives as a (environment_id, archived_until, last_sha256)
  select e.id, p_until, p_sha256 from pay.environments e
  where e.id = p_environment_id and e.livemode
  on conflict (environment_id) do update set
    archived_until = excluded.archived_until, last_sha256 = excluded.last_sha256, is_ended = false
    where a.archived_until <= excluded.archived_until or a.is_ended
  returning a.archived_until into v_until;
  if v_until is null or p_until > pay_internal.server_time() - interval '7 days' then
    raise check_violation using
      message = 'an archive grows, of a live environment, by days that ended a week ago';
  end if;
end $$;
grant execute on function pay.note_archive to pay_operator;

-- Operator: ends the archive of an environment: retention deletes its events after 30 days again.
-- Its last manifest stays known. Returns whether it had one.
create or replace function pay.end_archive(p_environment_id text) returns boolean
language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  update pay.archives a set is_ended = true
  where a.environment_id = p_environment_id and not a.is_ended;
  return found;
end $$;
grant execute on function pay.end_archive to pay_operator;
