-- Purpose: shows the payments of one environment to the users of a Supabase project (ADR 0025).
--
-- pay.expose makes the schema payments with a view of payments, instruments, refunds, disputes and
-- transfers. Supabase's role service_role reads all rows of the environment. A signed-in user
-- (authenticated) reads those whose customer.id is the text of auth.uid(); a transfer has no
-- customer. Nobody else reads anything. Where realtime.send exists, each change of a payment with
-- a customer id is also sent to the private channel payments:<customer id>. A database has one
-- exposure at most.
--
-- The guard is in policies, which pay.expose makes for pay_reader, the owner of the views. This
-- role is nobody's login and can read the tables only through them: they open the environment that
-- has the public id now, so the views follow a reset, and in it the rows of the role and the user.
-- PostgreSQL evaluates a policy before any function of the caller. The views only choose columns
-- and an index.
--
-- Both functions run with the rights of their caller, the role that deploys (on Supabase:
-- postgres), because only it can make a schema and send to Realtime. As a migration does, they make
-- the caller a member of the owners until they return.

-- The columns as a select list of the rows t, which pay_internal.exposed_view describes.
create or replace function pay_internal.exposed_list(p_kind text)
returns text language sql immutable as $$
  select string_agg(case c.type
      when '' then format('t.%I', c.source)
      when 'text' then format('t.body::json ->> %L', c.name)
      when 'jsonb' then format('nullif((t.body::json -> %L)::text, ''null'')::jsonb', c.name)
      when 'own' then format('case t.reader when ''service_role''
        then nullif((t.body::json -> %L)::text, ''null'')::jsonb end', c.name)
      else format('(t.body::json ->> %L)::%s', c.name, c.type)
    end || format(' as %I', c.name), ', ' order by c.n)
  from (
    select w.n, split_part(split_part(w.word, ':', 1), '=', 1) as name,
      split_part(w.word, ':', 2) as type,
      coalesce(nullif(split_part(w.word, '=', 2), ''), w.word) as source
    from regexp_split_to_table(pay_internal.exposed_columns(p_kind), ' +')
      with ordinality as w (word, n)
  ) c
$$;

-- The members of an instrument that are no column of its row, as a further item of a select list:
-- the columns of the other kinds come from the body of the row.
create or replace function pay_internal.exposed_body(p_kind text)
returns text language sql immutable as $$
  select case p_kind when 'instruments' then ', json_build_object(
    ''object'', ''instrument'',
    ''customer'', case when t.customer_id is not null or t.email is not null or t.name is not null
      then json_build_object(''id'', t.customer_id, ''email'', t.email, ''name'', t.name) end,
    ''method'', t.method::json,
    ''mandate'', case when t.mandate_id is not null
      then json_build_object(''id'', t.mandate_id, ''signed_at'', t.signed_at) end,
    ''livemode'', (select e.livemode from pay.environments e))::text as body' else '' end
$$;

-- The statement that makes the view of a kind. Its rows are the union of a part for each role, of
-- which PostgreSQL runs only the one of the caller. service_role reads by the primary key. A user
-- begins at its payments or instruments, by the index of their customers. A single part could not
-- use this index, because its condition would be "service_role, or the customer". The view repeats
-- the condition on the environment: PostgreSQL does not see in the policy of a part that it is
-- constant, and would sort all rows for the newest ones.
create or replace function pay_internal.exposed_view(p_kind text)
returns text language sql immutable as $$
  select format(
    'create view payments.%1$I as
     select %2$s from (
       select t.*, name ''service_role'' as reader%4$s from pay.%1$I t %3$s
     ) t
     where t.environment_id = (select e.id from pay.environments e) and t.reader = current_user',
    p_kind, pay_internal.exposed_list(p_kind),
    case
      when p_kind = 'transfers' then ''
      when p_kind in ('payments', 'instruments') then format(
        'union all select t.*, ''authenticated''%s from pay.%I t
         where t.customer_id = (select auth.uid())::text', pay_internal.exposed_body(p_kind), p_kind)
      else format(
        'union all select t.*, ''authenticated'' from pay.payments p
         join pay.%I t on t.payment_id = p.id and t.environment_id = p.environment_id
         where p.customer_id = (select auth.uid())::text', p_kind)
    end, pay_internal.exposed_body(p_kind)
  )
$$;

-- Lets pay_reader read the environment with a public id: all of it for service_role, and for a
-- signed-in user its instruments and payments, with their refunds and disputes. The policies of the
-- other tables read pay.environments and pay.payments through the policies of these. Two details
-- are for the planner. With coalesce() it does not count the condition on the environment twice,
-- here and in the view. The payment of a refund is a scalar subquery, because exists() can become a
-- hash of all payments.
create or replace function pay_internal.open_to_reader(p_public_id text)
returns void language plpgsql volatile as $$
declare
  v_table text;
begin
  execute format(
    'create policy environments_exposed on pay.environments for select to pay_reader
     using (public_id = %L and retired_at is null)', p_public_id);
  foreach v_table in array array['payments', 'instruments'] loop
    execute format(
      'create policy %I on pay.%I for select to pay_reader using (
         coalesce(environment_id = (select e.id from pay.environments e), false)
         and ((select current_user = ''service_role'')
           or (select current_user = ''authenticated'')
             and customer_id = (select auth.uid())::text)
       )', v_table || '_exposed', v_table);
  end loop;
  foreach v_table in array array['refunds', 'disputes'] loop
    execute format(
      'create policy %1$I on pay.%2$I for select to pay_reader using (
         coalesce(environment_id = (select e.id from pay.environments e), false)
         and ((select current_user = ''service_role'') or payment_id = (
           select p.id from pay.payments p
           where p.environment_id = %2$I.environment_id and p.id = %2$I.payment_id
         ))
       )', v_table || '_exposed', v_table);
  end loop;
  create policy transfers_exposed on pay.transfers for select to pay_reader using (
    coalesce(environment_id = (select e.id from pay.environments e), false)
    and (select current_user = 'service_role')
  );
  grant select on pay.environments, pay.payments, pay.instruments, pay.refunds, pay.disputes,
    pay.transfers to pay_reader;
end $$;

-- Sends a change of an exposed payment to the channel of its customer. A change of a refund or a
-- dispute changes its payment too, so this is the only trigger. A message that cannot be sent is a
-- warning in the log of the server: it never fails the payment.
create or replace function pay_internal.broadcast_payment()
returns trigger language plpgsql volatile as $$
begin
  if current_setting('pay.erasing', true) is distinct from 'on' and exists (
    select from pay.environments e where e.id = new.environment_id and e.public_id = tg_argv[0]
  ) then
    call payments.broadcast('payments:' || new.customer_id, jsonb_build_object(
      'object', 'payment', 'id', new.id, 'status', new.status, 'sequence', new.sequence));
  end if;
  return null;
exception when others then
  raise warning 'The broadcast of % failed: % %', new.id, sqlstate, sqlerrm;
  return null;
end $$;

-- Makes the trigger, the procedure with which it sends, and the policy of the channel, where
-- realtime.send exists. The procedure has the rights of the caller, whom Realtime lets send. It is
-- no function, so the Data API does not show it.
create or replace function pay_internal.make_broadcast(p_public_id text)
returns void language plpgsql volatile as $$
begin
  if to_regprocedure('realtime.send(jsonb, text, text, boolean)') is null then return; end if;
  execute $make$
    create procedure payments.broadcast(p_topic text, p_payload jsonb)
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    as $body$
    begin
      perform realtime.send(p_payload, 'payment', p_topic, true);
    end
    $body$
  $make$;
  revoke execute on procedure payments.broadcast(text, jsonb) from public;
  grant execute on procedure payments.broadcast(text, jsonb) to pay_owner;
  grant usage on schema payments to pay_owner;
  execute format(
    'create trigger payments_broadcast after insert or update on pay.payments
     for each row when (new.customer_id is not null)
     execute function pay_internal.broadcast_payment(%L)', p_public_id);
  begin
    create policy payments_of_customer on realtime.messages for select to authenticated
      using (extension = 'broadcast'
        and (select realtime.topic()) = 'payments:' || (select auth.uid())::text);
  exception when insufficient_privilege then
    raise warning 'The policy payments_of_customer is not made: this role may not change %',
      'realtime.messages, so nobody can join a channel';
  end;
end $$;

-- Locks the tables whose policies and triggers change. Concurrency: a request can hold a lock on
-- one of them and wait for another one. So this function waits for 100 ms only, gives all locks
-- back, and tries again, until 3 s have passed. Requests wait meanwhile, and none is the victim of
-- a deadlock, which PostgreSQL looks for after a second.
create or replace function pay_internal.lock_exposed()
returns void language plpgsql volatile set lock_timeout = '100ms' as $$
declare
  v_until constant timestamptz := clock_timestamp() + interval '3 seconds';
begin
  loop
    begin
      lock table pay.environments, pay.payments, pay.instruments, pay.refunds, pay.disputes,
        pay.transfers in access exclusive mode;
      if to_regclass('realtime.messages') is not null then
        if has_table_privilege('realtime.messages', 'update') then
          lock table only realtime.messages in access exclusive mode;
        end if;
      end if;
      return;
    exception when lock_not_available then
      if clock_timestamp() > v_until then raise; end if;
    end;
    perform pg_sleep(0.05);
  end loop;
end $$;

-- Shows an environment to the users of this Supabase project. Replaces an earlier exposure. Returns
-- the public id of the environment.
-- account  the account; mode: test or live. Of several sandboxes, the one that pay.find_environment
--          finds. The names of the parameters are those of deno task keys
-- Errors: invalid_parameter_value, undefined_object (no Supabase), duplicate_schema (a schema
--         payments of somebody else), dependent_objects_still_exist (views of your own).
-- Concurrency: locks the tables for a moment (pay_internal.lock_exposed). If it does not get the
-- locks within 3 s, it fails with lock_not_available and changes nothing.
create or replace function pay.expose(account text, mode text)
returns text language plpgsql volatile set lock_timeout = '3s' as $$
declare
  v_public_id text;
  v_kind text;
begin
  if mode is null or mode not in ('test', 'live') then
    raise exception 'mode must be test or live' using errcode = 'invalid_parameter_value';
  end if;
  if to_regrole('service_role') is null or to_regrole('authenticated') is null
    or to_regprocedure('auth.uid()') is null
  then
    raise exception
      'pay.expose needs a Supabase project: service_role, authenticated or auth.uid() is missing'
      using errcode = 'undefined_object';
  end if;
  v_public_id := pay.find_environment(account, mode = 'live');
  if v_public_id is null then
    raise exception 'account: there is no % environment of this account', mode
      using errcode = 'invalid_parameter_value',
        hint = 'Its first API key makes it: deno task keys create';
  end if;
  perform pay.unexpose();
  if to_regnamespace('payments') is not null then
    raise exception 'A schema payments exists that is not of pay.expose: rename it first'
      using errcode = 'duplicate_schema';
  end if;
  execute format('grant pay_owner, pay_reader to %I', current_user);
  perform pay_internal.open_to_reader(v_public_id);
  create schema payments authorization pay_reader;
  execute format('comment on schema payments is %L', format(
    'The payments of %s (%s): made by pay.expose, taken away by pay.unexpose.', account, mode));
  foreach v_kind in array array['payments', 'instruments', 'refunds', 'disputes', 'transfers'] loop
    execute pay_internal.exposed_view(v_kind);
    execute format('alter view payments.%I owner to pay_reader', v_kind);
    execute format('grant select on payments.%I to service_role, authenticated', v_kind);
  end loop;
  perform pay_internal.make_broadcast(v_public_id);
  grant usage on schema payments to service_role, authenticated;
  execute format('revoke pay_owner, pay_reader from %I', current_user);
  notify pgrst, 'reload schema';
  return v_public_id;
end $$;
grant execute on function pay.expose to pay_operator;

-- Takes the exposure away. Does nothing without one. Errors: dependent_objects_still_exist, if
-- views of your own read the views: drop them first. Concurrency: as pay.expose.
create or replace function pay.unexpose()
returns void language plpgsql volatile set lock_timeout = '3s' as $$
declare
  v_table text;
begin
  perform pg_advisory_xact_lock(hashtextextended('exposure', 0));
  execute format('grant pay_owner, pay_reader to %I', current_user);
  perform pay_internal.lock_exposed();
  drop trigger if exists payments_broadcast on pay.payments;
  foreach v_table in array array[
    'payments', 'instruments', 'refunds', 'disputes', 'transfers', 'environments'
  ] loop
    execute format('drop policy if exists %I on pay.%I', v_table || '_exposed', v_table);
    execute format('revoke all on pay.%I from pay_reader', v_table);
  end loop;
  if exists (
    select from pg_namespace n where n.nspname = 'payments' and n.nspowner = 'pay_reader'::regrole
  ) then
    drop view payments.payments, payments.instruments, payments.refunds, payments.disputes,
      payments.transfers;
    drop procedure if exists payments.broadcast(text, jsonb);
    drop schema payments;
  end if;
  if to_regclass('realtime.messages') is not null then
    begin
      drop policy if exists payments_of_customer on realtime.messages;
    exception when insufficient_privilege then
      raise warning 'The owner of realtime.messages can drop its policy payments_of_customer';
    end;
  end if;
  execute format('revoke pay_owner, pay_reader from %I', current_user);
  notify pgrst, 'reload schema';
end $$;
grant execute on function pay.unexpose to pay_operator;
