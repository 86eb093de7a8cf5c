-- Purpose: payouts on a chain (architecture §7). The nonce and the fees of a transaction are
-- committed before it is sent.

create or replace function pay_internal.payout_json(p_payout pay.chain_payouts)
returns json language plpgsql stable as $$
begin
  return (
    select json_build_object('operation_id', c.id, 'op', c.op, 'subject_id', c.subject_id,
      'refund_id', c.refund_id, 'amount_minor', c.amount_minor, 'currency', c.currency,
      'destination', p_payout.destination, 'nonce', p_payout.nonce,
      'tx_hashes', p_payout.tx_hashes, 'max_fee', p_payout.max_fee,
      'priority_fee', p_payout.priority_fee,
      'sent_seconds',
        extract(epoch from pay_internal.server_time() - p_payout.sent_at)::double precision,
      'is_exported', p_payout.exported_at is not null)
    from pay.provider_operations c
    where c.environment_id = p_payout.environment_id and c.id = p_payout.operation_id limit 1
  );
end $$;

-- Stores the payout of an operation, unless it is stored, and returns it. p_destination: for a new
-- row.
-- Concurrency: of two transactions for one operation, the second returns the row of the first.
create or replace function pay.store_payout(p_account_id text, p_operation_id text,
  p_destination text)
returns json language plpgsql volatile security definer as $$
declare
  v_environment_id text;
  v_payout pay.chain_payouts;
begin
  perform pay_internal.act_as_worker();
  select a.environment_id into v_environment_id
  from pay.provider_accounts a where a.id = p_account_id;
  insert into pay.chain_payouts (environment_id, account_id, operation_id, destination)
  values (v_environment_id, p_account_id, p_operation_id, p_destination)
  on conflict on constraint chain_payouts_pkey do nothing;
  select payout.* into v_payout from pay.chain_payouts payout
  where payout.environment_id = v_environment_id and payout.operation_id = p_operation_id;
  return pay_internal.payout_json(v_payout);
end $$;
grant execute on function pay.store_payout to pay_api;

-- Assigns a payout its permanent nonce: the next one of the signer, and at least p_count, the
-- number of the signer's transactions on the chain. Returns null for an exported payout.
-- Concurrency: locks the payout and then the signer's counter until the end of the transaction. So
-- no two payouts share a nonce, and a payout never gets a second one.
create or replace function pay.give_nonce(
  p_account_id text, p_operation_id text, p_chain_id bigint, p_signer text, p_count bigint
) returns bigint language plpgsql volatile security definer as $$
declare
  v_payout pay.chain_payouts;
  v_nonce bigint;
begin
  perform pay_internal.act_as_worker();
  select payout.* into strict v_payout from pay.chain_payouts payout
  where payout.account_id = p_account_id and payout.operation_id = p_operation_id for update;
  if v_payout.nonce is not null or v_payout.exported_at is not null then
    return v_payout.nonce;
  end if;
  insert into pay.signer_nonces as n (chain_id, signer, next_nonce)
  values (p_chain_id, p_signer, p_count + 1)
  on conflict on constraint signer_nonces_pkey
    do update set next_nonce = greatest(n.next_nonce, p_count) + 1 where n.left_at is null
  returning n.next_nonce - 1 into v_nonce;
  if v_nonce is null then
    raise exception 'another cell counts the nonces of this signer';
  end if;
  update pay.chain_payouts payout set nonce = v_nonce
  where payout.environment_id = v_payout.environment_id and payout.operation_id = p_operation_id;
  return v_nonce;
end $$;
grant execute on function pay.give_nonce to pay_api;

-- Records the fees of the transaction that is sent next. They never fall, so that each transaction
-- can replace the previous one.
-- Concurrency: locks the payout.
create or replace function pay.note_payout_fees(
  p_account_id text, p_operation_id text, p_max_fee bigint, p_priority_fee bigint
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.chain_payouts payout
  set sent_at = case when p_max_fee > coalesce(payout.max_fee, -1) then pay_internal.server_time()
      else payout.sent_at end,
    max_fee = greatest(payout.max_fee, p_max_fee),
    priority_fee = greatest(payout.priority_fee, p_priority_fee)
  where payout.account_id = p_account_id and payout.operation_id = p_operation_id
    and payout.nonce is not null;
end $$;
grant execute on function pay.note_payout_fees to pay_api;

-- Records the hash of a transaction that was sent.
-- Concurrency: locks the payout.
create or replace function pay.note_payout_hash(
  p_account_id text, p_operation_id text, p_tx_hash text
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  update pay.chain_payouts payout
  set tx_hashes = payout.tx_hashes || p_tx_hash
  where payout.account_id = p_account_id and payout.operation_id = p_operation_id
    and not (payout.tx_hashes @> array[p_tx_hash]);
end $$;
grant execute on function pay.note_payout_hash to pay_api;

-- The payouts of an account whose operations have no result, oldest first. Leaves out those that
-- have a provider event of the chain: the next transfer belongs to another payout. Includes those
-- that the operator has settled as failed in the last 7 days, because their transaction can still
-- be mined.
create or replace function pay.open_payouts(p_account_id text) returns setof json
language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select pay_internal.payout_json(payout) from pay.chain_payouts payout
    cross join lateral (
      select c.state, c.op, c.subject_id, c.refund_id, c.settled_at from pay.provider_operations c
      where c.environment_id = payout.environment_id and c.id = payout.operation_id limit 1
    ) c
    where payout.account_id = p_account_id
      and (c.state <> 'settled' or payout.nonce is not null
        and c.settled_at > pay_internal.server_time() - interval '7 days' and exists (
          select from pay.provider_events event
          where event.environment_id = payout.environment_id
            and event.account_id = payout.account_id
            and event.reference = payout.operation_id || ':failed'
        ))
      and not exists (
        select from pay.provider_events event
        where event.environment_id = payout.environment_id and event.subject_id = c.subject_id
          and event.account_id = payout.account_id and event.op = c.op
          and event.refund_id is not distinct from c.refund_id
          and (event.state = 'succeeded' or event.reference like '%:reverted')
      )
    order by payout.operation_id;
end $$;
grant execute on function pay.open_payouts to pay_api, pay_operator;

-- The references of transfers of a signer that settle no payout of an account that has no event: a
-- payout of any account has the transfer already, or the nonce belongs to another account with the
-- same signer. p_transfers: [{reference, nonce}].
create or replace function pay.taken_transfers(p_account_id text, p_transfers text)
returns setof text language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select t.reference
    from json_to_recordset(p_transfers::json) as t (reference text, nonce bigint)
    join pay.provider_accounts own on own.id = p_account_id
    where exists (
      select from pay.provider_accounts a
      join pay.provider_events event on event.environment_id = a.environment_id
        and event.account_id = a.id and event.reference = t.reference
      where a.connector = 'evm'
    ) or exists (
      select from pay.provider_accounts a
      join pay.chain_payouts payout on payout.account_id = a.id and payout.nonce = t.nonce
      where a.connector = 'evm' and a.id <> own.id
        and lower(a.settings ->> 'signer_address') = lower(own.settings ->> 'signer_address')
        and a.settings ->> 'network' = own.settings ->> 'network'
        and a.settings ->> 'chain_id' is not distinct from own.settings ->> 'chain_id'
    );
end $$;
grant execute on function pay.taken_transfers to pay_api;

-- The payouts of an account that became final from p_from on and before p_to, for the totals of a
-- day: {reference, currency, tx_hash, amount_minor}, in the order of their references.
-- p_after: the reference after which they begin; '' is from the first.
create or replace function pay.paid_payouts(
  p_account_id text, p_from timestamptz, p_to timestamptz, p_after text, p_limit integer
) returns setof json language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select json_build_object('reference', event.reference, 'currency', event.currency,
      'tx_hash', event.body #>> '{chain,tx_hash}', 'amount_minor', event.amount_minor)
    from pay.provider_accounts a
    join pay.provider_events event on event.environment_id = a.environment_id
      and event.account_id = a.id and event.reference > p_after
      and event.op in ('refund', 'transfer') and event.state = 'succeeded'
      and event.happened_at >= p_from and event.happened_at < p_to
    where a.id = p_account_id
    order by event.reference
    limit p_limit;
end $$;
grant execute on function pay.paid_payouts to pay_api;

-- Operator: marks the open payouts of an account without a nonce as exported, and returns them.
-- p_again: includes payouts that were exported before. A payout waits as long as another account
-- with the same signer has an equal one under way: one transfer would look like both.
-- Concurrency: locks the payouts, so none gets a nonce at the same time. Exports
-- wait for each other.
create or replace function pay.export_payouts(p_account_id text, p_again boolean) returns setof json
language plpgsql volatile security definer rows 100 as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  perform pg_advisory_xact_lock(hashtextextended('export payouts', 0));
  return query
    with open as materialized (
      select payout.environment_id, payout.operation_id from pay.chain_payouts payout
      join pay.provider_operations c on c.environment_id = payout.environment_id
        and c.id = payout.operation_id
      where payout.account_id = p_account_id and c.state <> 'settled' and payout.nonce is null
        and (p_again or payout.exported_at is null)
        and not exists (
          select from pay.provider_accounts own
          join pay.provider_accounts a on a.connector = 'evm' and a.id <> own.id
            and lower(a.settings ->> 'signer_address') = lower(own.settings ->> 'signer_address')
            and a.settings ->> 'network' = own.settings ->> 'network'
            and a.settings ->> 'chain_id' is not distinct from own.settings ->> 'chain_id'
          join pay.chain_payouts q on q.account_id = a.id and q.exported_at is not null
            and lower(q.destination) = lower(payout.destination)
          join pay.provider_operations d on d.environment_id = q.environment_id
            and d.id = q.operation_id
            and d.state <> 'settled' and d.amount_minor = c.amount_minor
            and d.currency = c.currency
          where own.id = p_account_id
        )
      order by payout.operation_id for update of payout
    ),
    exported as (
      update pay.chain_payouts payout set exported_at = pay_internal.server_time()
      from open o
      where payout.environment_id = o.environment_id and payout.operation_id = o.operation_id
        and payout.nonce is null
      returning payout.*
    )
    select pay_internal.payout_json(x) from exported x order by x.operation_id;
end $$;
grant execute on function pay.export_payouts to pay_operator;
