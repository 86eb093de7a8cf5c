-- Purpose: environments, for the operator, and the setting that opens all of them.

-- Opens the rows of all environments to the rest of the transaction, or closes those that are not
-- in pay.environment_ids again (20261124001000_policies.sql). Returns whether all were open before.
create or replace function pay_internal.act_as_worker(p_is_worker boolean default true)
returns boolean language plpgsql volatile as $$
declare
  v_was_worker constant boolean := coalesce(current_setting('pay.worker', true), '') = 'on';
begin
  perform set_config('pay.worker', case when p_is_worker then 'on' else '' end, true);
  return v_was_worker;
end $$;

-- Operator: creates an environment. Raises unique_violation if the account already has a live
-- environment and the new one is live too, and lock_not_available while the account moves.
create or replace function pay.create_environment(
  p_id text, p_account text, p_livemode boolean, p_name text
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(e.id) from pay.environments e where e.account = p_account;
  perform set_config('pay.environment_ids', array[p_id]::text, true);
  insert into pay.environments (id, public_id, account, livemode, name, merchant)
  values (p_id, p_id, p_account, p_livemode, p_name, (
    select e.merchant from pay.environments e
    where e.account = p_account and e.merchant is not null limit 1));
end $$;
grant execute on function pay.create_environment to pay_operator;

-- The name, color and logo of the merchant of an environment, as payers see them.
create or replace function pay_internal.merchant_of(p_environment_id text)
returns json language plpgsql stable as $$
begin
  return (
    select json_build_object('name', coalesce(e.merchant ->> 'name', e.account),
      'color', e.merchant ->> 'color', 'logo', e.merchant ->> 'logo')
    from pay.environments e where e.id = p_environment_id);
end $$;

-- Operator: changes name, color and logo of an account in all of its environments. Returns them as
-- merchant_of does, or null if there is no such account. A new environment of the account has the
-- same, and also one that a reset makes.
-- p_changed  {name, color, logo}; null removes a member, and an absent one stays
create or replace function pay.change_merchant(p_account text, p_changed text)
returns json language plpgsql volatile security definer as $$
declare
  v_ids text[];
begin
  perform pay_internal.act_as_worker();
  select array_agg(e.id) into v_ids from pay.environments e
  where e.account = p_account and e.retired_at is null;
  perform pay_internal.refuse_moving(id) from unnest(v_ids) id;
  perform set_config('pay.environment_ids', v_ids::text, true);
  if p_changed <> '{}' then
    update pay.environments e
    set merchant = jsonb_strip_nulls(coalesce(e.merchant, '{}') || p_changed::jsonb)
    where e.id = any (v_ids);
  end if;
  return pay_internal.merchant_of(v_ids[1]);
end $$;
grant execute on function pay.change_merchant to pay_operator;

-- The present id of the environment with a public id; null if there is none. Also locks a sandbox,
-- so that it is not reset before the transaction ends.
-- p_is_alone: true: also waits until no request of the sandbox is under way
create or replace function pay_internal.hold_environment(
  p_public_id text, p_is_alone boolean default false
) returns text language plpgsql volatile as $$
declare
  v_held text := '';
  v_environment record;
begin
  perform pay_internal.act_as_worker();
  loop
    select e.id, e.livemode into v_environment from pay.environments e
    where e.public_id = p_public_id and e.retired_at is null;
    perform pay_internal.refuse_moving(v_environment.id);
    exit when v_environment.id is null or v_environment.livemode or v_environment.id = v_held;
    v_held := v_environment.id;
    if p_is_alone then
      perform pg_advisory_xact_lock(hashtextextended('environment ' || v_held, 0));
    else
      perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0));
    end if;
  end loop;
  return v_environment.id;
end $$;

-- Operator: the public id of an account's live environment or sandbox; null if there is none. If
-- the account has several sandboxes, the first. Disposable sandboxes do not count.
create or replace function pay.find_environment(p_account text, p_livemode boolean)
returns text language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  return (
    select e.public_id from pay.environments e
    where e.account = p_account and e.livemode = p_livemode and e.retired_at is null
      and e.ends_at is null
    order by e.public_id limit 1
  );
end $$;
grant execute on function pay.find_environment to pay_operator;
