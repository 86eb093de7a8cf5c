-- Purpose: the subject of a call as it is now, for a decision that has to be made again.

-- A payment or transfer of an environment, a refund of it, the dispute of a fact, the amount that
-- is booked for the fact, and its transfers (pay_internal.transfers_json); no row if there is no
-- such payment or transfer.
create or replace function pay.read_provider_subject(
  p_environment_id text, p_subject_id text, p_refund_id text, p_account_id text, p_reference text
)
returns table (
  subject_body text, refund_body text, dispute_body text, booked_minor bigint, transfers json
)
language plpgsql volatile security definer rows 1
set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select coalesce(p.body, t.body), r.body,
      pay_internal.dispute_body(e.id, p.id, split_part(p_reference, ':', 1)),
      coalesce(f.booked_minor, 0),
      case when f.reference is not null then pay_internal.transfers_json(f, p_subject_id) end
    from (values (p_environment_id)) e (id)
    left join pay.payments p on p.environment_id = e.id and p.id = p_subject_id
    left join pay.transfers t on t.environment_id = e.id and t.id = p_subject_id
    left join pay.refunds r on r.environment_id = e.id and r.id = p_refund_id
    left join pay.provider_facts f
      on f.environment_id = e.id and f.account_id = p_account_id and f.reference = p_reference
    where coalesce(p.body, t.body) is not null;
end
$$;
grant execute on function pay.read_provider_subject(text, text, text, text, text)
  to pay_api, pay_operator;
