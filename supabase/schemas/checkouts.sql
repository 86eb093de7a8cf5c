-- Purpose: checkouts: pages on which a payer pays. Each attempt is an ordinary payment. A checkout has
-- no lifecycle of its own: the commit of a payment changes its checkout, and an open one expires by
-- its time, without a job.
--
-- Concurrency: a change of a payment locks its checkout after the payment and before idempotency
-- keys (commit.sql). A new attempt is decided on a revision of the row, so of two attempts that begin
-- at once, one is decided again.

-- The most open checkouts of a sandbox.
create or replace function pay_internal.most_open_checkouts()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

-- The time after which a link of a sandbox expires that nobody pays, and after the end of a checkout
-- its retention.
create or replace function pay_internal.checkout_retention()
returns interval language sql immutable parallel safe as $$ select interval '30 days' $$;

-- The status of a checkout at a time.
create or replace function pay_internal.checkout_status(p_checkout pay.checkouts, p_at timestamptz)
returns text language sql immutable as $$
  select case when p_checkout.status = 'open' and p_checkout.expires_at <= p_at then 'expired'
    else p_checkout.status end
$$;

-- A checkout as JSON text, with a reference in place of the URL (shared/domain/checkouts).
create or replace function pay_internal.checkout_body(p_checkout pay.checkouts, p_at timestamptz)
returns text language sql stable as $$
  select left(pay_internal.checkout_head(p_checkout, p_at), -1) || ','
    || substr(p_checkout.body, 2, length(p_checkout.body) - 2) || ','
    || substr(row_to_json(t)::text, 2)
  from (
    select p_checkout.payments_count, p_checkout.payment_id,
      pay_internal.wire_time(p_checkout.created_at) as created_at,
      pay_internal.wire_time(p_checkout.updated_at) as updated_at
  ) t
$$;

-- The first members of a checkout.
create or replace function pay_internal.checkout_head(p_checkout pay.checkouts, p_at timestamptz)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_checkout.id, 'checkout' as object,
      pay_internal.checkout_status(p_checkout, p_at) as status,
      'checkout_reference:' || p_checkout.id || ':' || p_checkout.salt as url
  ) t
$$;

-- The members of a checkout that an attempt needs and that responses do not show, as JSON text.
create or replace function pay_internal.checkout_detail(p_checkout pay.checkouts)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select p_checkout.revision, p_checkout.attempts, p_checkout.attempt_id,
      (select p.status from pay.payments p
       where p.environment_id = p_checkout.environment_id and p.id = p_checkout.attempt_id
      ) as attempt_status,
      p_checkout.declines, pay_internal.wire_time(p_checkout.declines_since) as declines_since
  ) t
$$;

-- Locks the checkouts of changes. A new attempt is stale if its checkout is at another revision, or
-- if an earlier change of the list is an attempt of the same checkout.
-- p_checkouts  as in pay_internal.document
create or replace function pay_internal.lock_checkouts(p_checkouts jsonb, p_found pay.admission[])
returns pay.admission[] language plpgsql volatile as $$
declare
  v_row record;
  v_last text := '';
begin
  for v_row in
    select k.n, k.revision as expected, f.environment_id || k.id as name, t.revision
    from unnest(p_found) f
    join jsonb_to_recordset(p_checkouts) as k (n integer, id text, revision integer) on k.n = f.n
    left join lateral (
      select c.revision from pay.checkouts c
      where c.environment_id = f.environment_id and c.id = k.id for update
    ) t on true
    where f.outcome = 'ok'
    order by f.environment_id, k.id, k.n
  loop
    continue when v_row.expected is null;
    if v_row.name = v_last or v_row.revision is distinct from v_row.expected then
      p_found[v_row.n].outcome := 'stale';
    end if;
    v_last := v_row.name;
  end loop;
  return p_found;
end $$;

-- Writes the effects of the committed changes of payments on their checkouts. A payment counts once, when
-- it is first successful. Retention can have deleted its checkout.
create or replace function pay_internal.write_checkouts(
  p_checkouts jsonb, p_callers pay_internal.caller[]
) returns void language plpgsql volatile as $$
declare
  v_row record;
  v_counts integer;
  v_since timestamptz;
begin
  for v_row in
    select c.environment_id, k.*
    from jsonb_to_recordset(p_checkouts) as k (
      n integer, id text, at timestamptz, payment_id text, is_attempt boolean, is_paid boolean,
      is_declined boolean)
    join unnest(p_callers) c on c.n = k.n
    order by c.environment_id, k.id, k.n
  loop
    v_counts := 0;
    if v_row.is_paid then
      update pay.payments p set is_counted = true
      where p.environment_id = v_row.environment_id and p.id = v_row.payment_id
        and not p.is_counted;
      get diagnostics v_counts = row_count;
    end if;
    v_since := v_row.at - interval '1 hour';
    update pay.checkouts t
    set attempts = t.attempts + coalesce(v_row.is_attempt, false)::integer,
      attempt_id = case when v_row.is_attempt then v_row.payment_id else t.attempt_id end,
      declines = case when v_row.is_declined is null then t.declines
        when t.declines_since > v_since then t.declines + 1 else 1 end,
      declines_since = case when v_row.is_declined is null or t.declines_since > v_since
        then t.declines_since else v_row.at end,
      payments_count = t.payments_count + v_counts,
      payment_id = case v_counts when 1 then v_row.payment_id else t.payment_id end,
      status = case when v_counts = 1 and t.status = 'open' and t.max_payments is not null
        then 'completed' else t.status end,
      expires_at = case when v_counts = 1 and t.max_payments is null
          and t.expires_at is not null and t.body::json ->> 'expires_at' is null
        then v_row.at + pay_internal.checkout_retention() else t.expires_at end,
      updated_at = case v_counts when 1 then v_row.at else t.updated_at end,
      revision = t.revision + 1
    where t.environment_id = v_row.environment_id and t.id = v_row.id;
  end loop;
end $$;

-- Creates a checkout.
-- p_request   the request, as pay_internal.admit takes it, in a list of one
-- p_checkout  {id, salt, token_hash, max_payments, reference, customer_id, expires_at, created_at,
--             body}
-- Outcomes: those of admission.sql, ok, full (the sandbox has most_open_checkouts())
-- Concurrency: creates of one sandbox take turns by an advisory lock.
create or replace function pay.create_checkout(p_request text, p_checkout text)
returns pay.admission
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_checkout record;
begin
  select * into v_checkout from json_to_record(p_checkout::json) as c (id text, salt text,
    token_hash text, max_payments integer, reference text, customer_id text,
    expires_at timestamptz, created_at timestamptz, body text);
  if v_access.outcome = 'ok' and not v_access.livemode then
    perform pg_advisory_xact_lock(hashtextextended('checkouts ' || v_access.environment_id, 0));
  end if;
  v_access := pay_internal.claim_one(p_request, v_access, v_checkout.id);
  if v_access.outcome <> 'ok' then return v_access; end if;
  if not v_access.livemode and pay_internal.most_open_checkouts() <= (
    select count(*) from (
      select from pay.checkouts t
      where t.environment_id = v_access.environment_id and t.status = 'open'
        and t.expires_at > v_checkout.created_at
      limit pay_internal.most_open_checkouts()
    ) counted)
  then
    perform pay_internal.release_key(p_request, v_access);
    v_access.outcome := 'full';
    return v_access;
  end if;
  insert into pay.checkouts (environment_id, id, salt, token_hash, max_payments, reference,
    customer_id, expires_at, created_at, updated_at, body)
  values (v_access.environment_id, v_checkout.id, v_checkout.salt,
    decode(v_checkout.token_hash, 'hex'), v_checkout.max_payments, v_checkout.reference,
    v_checkout.customer_id, v_checkout.expires_at, v_checkout.created_at, v_checkout.created_at,
    v_checkout.body);
  return v_access;
end $$;
grant execute on function pay.create_checkout to pay_api;

-- Cancels a checkout, or stores the refusal of a cancel.
-- p_request   the request, as pay_internal.admit takes it, in a list of one, with its response
-- p_revision  the revision on which the decision is based
-- p_cancels   false: the response is a refusal
-- Outcomes: those of admission.sql, ok, not_found, stale (the checkout has changed since)
create or replace function pay.cancel_checkout(
  p_request text, p_id text, p_revision integer, p_cancels boolean
) returns pay.admission
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set lock_timeout = '3s' as $$
declare
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_revision integer;
begin
  if v_access.outcome = 'ok' then
    select t.revision into v_revision from pay.checkouts t
    where t.environment_id = v_access.environment_id and t.id = p_id for update;
    if not found then v_access.outcome := 'not_found'; end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access, p_id);
  if v_access.outcome <> 'ok' then return v_access; end if;
  if v_revision <> p_revision then
    perform pay_internal.release_key(p_request, v_access);
    v_access.outcome := 'stale';
  elsif p_cancels then
    update pay.checkouts t
    set status = 'cancelled', revision = t.revision + 1,
      updated_at = (p_request::jsonb -> 0 ->> 'at')::timestamptz
    where t.environment_id = v_access.environment_id and t.id = p_id;
  end if;
  return v_access;
end $$;
grant execute on function pay.cancel_checkout to pay_api;

-- The checkouts of a person: by the customer's id, or of a person without one among the newest
-- pay_internal.erasure_rows() of the environment.
create or replace function pay_internal.checkouts_of_person(
  p_environment_id text, p_customer_id text, p_person bytea
) returns setof pay.checkouts language plpgsql stable rows 10 as $$
begin
  return query
    select t.* from pay.checkouts t
    where t.customer_id = p_customer_id and t.customer_id is not null
      and t.environment_id = p_environment_id
    union all
    select n.* from (
      select t.* from pay.checkouts t where t.environment_id = p_environment_id
      order by t.environment_id desc, t.id desc limit pay_internal.erasure_rows()
    ) n
    where p_customer_id is null and n.customer_id is null
      and pay_internal.person_of(p_environment_id, null, n.body::json #>> '{customer,email}')
        = p_person;
end $$;

-- Erases the checkouts of a person that have ended. Returns their ids.
create or replace function pay_internal.erase_checkouts(
  p_environment_id text, p_customer_id text, p_person bytea, p_at timestamptz
) returns text[] language plpgsql volatile as $$
declare
  v_ids text[];
begin
  with erased as (
    update pay.checkouts t set body = pay_internal.without_persons(t.body)
    where t.environment_id = p_environment_id and t.id = any (array(
      select c.id from pay_internal.checkouts_of_person(p_environment_id, p_customer_id, p_person) c
      where pay_internal.checkout_status(c, p_at) <> 'open'))
    returning t.id
  )
  select array_agg(e.id) into v_ids from erased e;
  return coalesce(v_ids, '{}');
end $$;

-- Deletes one batch of the checkouts of an environment that have ended 30 days before a time.
create or replace function pay_internal.purge_checkouts(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
begin
  delete from pay.checkouts t
  where t.ctid = any (array(
    select o.ctid from pay.checkouts o
    where o.environment_id = p_environment_id
      and case when o.status = 'open' then o.expires_at else o.updated_at end
        < p_at - pay_internal.checkout_retention()
    order by case when o.status = 'open' then o.expires_at else o.updated_at end
    limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;
