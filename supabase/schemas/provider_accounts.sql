-- Purpose: accounts at providers. The operator configures them with "deno task providers". A
-- notification finds its account by the id in its path.

-- An account as the service needs it. The account of test environments has no row. In plpgsql,
-- because a function in SQL is planned at each call.
create or replace function pay_internal.provider_account_json(
  p_environment_id text, p_account_id text
) returns json language plpgsql stable as $$
begin
  return (
    select row_to_json(t) from (
      select a.id, a.environment_id, a.connector, a.settings, a.secret_name,
        a.notification_secret_names
      from pay.provider_accounts a
      where a.environment_id = p_environment_id and a.id = p_account_id
      union all
      select p_account_id, p_environment_id, 'sandbox', '{}', null, '{}'
      where p_account_id = 'sandbox'
    ) t);
end $$;

-- The enabled accounts of an environment by the kind of method and the currency that they serve, as
-- JSON text.
create or replace function pay_internal.method_accounts(p_environment_id text)
returns text language plpgsql stable as $$
begin
  return (
    select coalesce(json_agg(json_build_object('method_kind', m.method_kind,
      'currency', m.currency, 'account',
      pay_internal.provider_account_json(m.environment_id, m.account_id))), '[]')::text
    from pay.provider_methods m where m.environment_id = p_environment_id);
end $$;

-- The account with an id, also a disabled one; null if there is none. For the route of
-- notifications.
create or replace function pay.read_provider_account(p_id text)
returns json language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  return (
    select pay_internal.provider_account_json(a.environment_id, a.id)
    from pay.provider_accounts a where a.id = p_id
  );
end $$;
grant execute on function pay.read_provider_account to pay_api;

-- Counts a signed notification about another account of the provider.
create or replace function pay.count_ignored_notification(p_account_id text)
returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_account_id);
  update pay.provider_accounts a
  set ignored_notifications = a.ignored_notifications + 1
  where a.id = p_account_id;
end $$;
grant execute on function pay.count_ignored_notification to pay_api;

-- Operator: adds an account that takes the new payments of some kinds of methods. Errors:
-- foreign_key_violation without such a live environment, unique_violation if an account has one of
-- the kinds in its currency already, check_violation for a connector, kind or name of a secret that
-- is unknown or malformed, or for a bank account that another account has. p_environment_id: as
-- pay.find_environment returns it.
create or replace function pay.add_provider_account(
  p_id text, p_environment_id text, p_connector text, p_method_kinds text[], p_settings text,
  p_secret_name text, p_notification_secret_names text[]
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving(p_environment_id);
  if not exists (select from pay.environments e where e.id = p_environment_id and e.livemode) then
    raise exception 'no such live environment' using errcode = 'foreign_key_violation';
  end if;
  if exists (
    select from pay.xpub_counters x
    where x.left_at is not null and x.xpub = p_settings::jsonb ->> 'xpub'
  ) or exists (
    select from pay.signer_nonces n
    where n.left_at is not null
      and lower(n.signer) = lower(p_settings::jsonb ->> 'signer_address')
  ) then
    raise exception 'its extended public key or signer has moved to another cell with an account'
      using errcode = 'check_violation', constraint = 'counts_in_one_cell';
  end if;
  -- Two accounts would both book the money of one bank account.
  if p_connector = 'bank' then
    perform pg_advisory_xact_lock(hashtextextended('iban ' || (p_settings::jsonb ->> 'iban'), 0));
    if exists (
      select from pay.provider_accounts a
      where a.connector = 'bank' and a.status = 'enabled'
        and a.settings ->> 'iban' = p_settings::jsonb ->> 'iban'
    ) then
      raise exception 'another account has this bank account' using errcode = 'check_violation',
        constraint = 'one_account_for_an_iban';
    end if;
  end if;
  insert into pay.provider_accounts (environment_id, id, connector, settings, secret_name,
    notification_secret_names, status, created_at)
  values (p_environment_id, p_id, p_connector, p_settings::jsonb, p_secret_name,
    p_notification_secret_names, 'enabled', pay_internal.server_time());
  -- An account at a bank has one currency.
  insert into pay.provider_methods (environment_id, method_kind, currency, account_id)
  select p_environment_id, k.kind, coalesce(p_settings::jsonb ->> 'currency', '*'), p_id
  from unnest(p_method_kinds) as k (kind);
  insert into pay.provider_cursors (environment_id, account_id) values (p_environment_id, p_id);
end $$;
grant execute on function pay.add_provider_account to pay_operator;

-- Operator: replaces the settings of an account and the name of its secret. The caller has checked
-- them. Returns false if the settings are no longer p_before, or there is no such account.
-- Concurrency: locks the account's row. An operation or reading under way ends with the old
-- settings.
create or replace function pay.change_provider_settings(
  p_id text, p_before text, p_settings text, p_secret_name text
) returns boolean language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_id);
  update pay.provider_accounts a
  set settings = p_settings::jsonb, secret_name = p_secret_name
  where a.id = p_id and a.settings = p_before::jsonb;
  return found;
end $$;
grant execute on function pay.change_provider_settings to pay_operator;

-- Operator: all accounts, with the kinds of methods of the enabled ones and the number of their
-- operations without a result. stalled_since, last_error: its readings fail; null: they do not.
create or replace function pay.list_provider_accounts() returns table (
  id text, environment_id text, account text, connector text, method_kinds text[], settings json,
  secret_name text, notification_secret_names text[], status text, created_at timestamptz,
  disabled_at timestamptz, ignored_notifications bigint, polled_at timestamptz,
  unsettled_operations bigint, stalled_since timestamptz, last_error text
) language plpgsql volatile security definer rows 10 as $$
begin
  perform pay_internal.act_as_worker();
  return query
    select a.id, a.environment_id, e.account, a.connector,
      array(
        select method.method_kind from pay.provider_methods method
        where method.environment_id = a.environment_id and method.account_id = a.id
        order by method.method_kind
      ),
      a.settings::json, a.secret_name, a.notification_secret_names, a.status, a.created_at,
      a.disabled_at, a.ignored_notifications, u.polled_at,
      (
        select count(*) from pay.provider_operations c
        where c.environment_id = a.environment_id and c.account_id = a.id and c.state <> 'settled'
          and c.first_sent_at is not null
      ),
      u.stalled_since, u.last_error
    from pay.provider_accounts a
    join pay.environments e on e.id = a.environment_id
    left join pay.provider_cursors u on u.environment_id = a.environment_id and u.account_id = a.id
    order by e.account, a.id;
end $$;
grant execute on function pay.list_provider_accounts to pay_operator;

-- Operator: disables an account: it takes no new payments and transfers. Operations, notifications,
-- polls and totals of its payments go on, because disputes come months later. False if there is no
-- such enabled account.
create or replace function pay.disable_provider_account(p_id text) returns boolean
language plpgsql volatile security definer as $$
declare
  v_environment_id text;
begin
  perform pay_internal.act_as_worker();
  perform pay_internal.refuse_moving_account(p_id);
  update pay.provider_accounts a
  set status = 'disabled', disabled_at = pay_internal.server_time()
  where a.id = p_id and a.status = 'enabled'
  returning a.environment_id into v_environment_id;
  delete from pay.provider_methods method
  where method.environment_id = v_environment_id and method.account_id = p_id;
  return v_environment_id is not null;
end $$;
grant execute on function pay.disable_provider_account to pay_operator;
