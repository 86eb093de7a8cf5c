-- Purpose: the erasure of a person's data (contract §2): the e-mail address and name of a customer
-- become null wherever the service keeps them, and sealed details are deleted. Amounts, ids, times,
-- masked methods and the ledger stay, because books must be kept.
--
-- A person is a customer by the merchant's own id, or by the e-mail address if the payments have no
-- id. What the service keeps is found by that id, by the ids of payments, instruments and checkouts,
-- or by the member of a body, and never by a search for a text.
--
-- The texts of a payment depend on each other (ADR 0002). The erasure gives each event the whole
-- text before it, in place of splices, with the person left out. So each text is derived as before,
-- and stays JSON with its own sequence. pay.payments.is_erased makes a change stale that was decided
-- with the former text.
--
-- A request erases pay_internal.erased_at_once() payments, as far as it comes within
-- pay_internal.erasing_time(), and then the logs. pay.erasures tells retention what is left. It has
-- no e-mail address, only a hash of it.
--
-- Concurrency: the order of locks of commit.sql: payments by id, the customer, instruments by id,
-- the idempotency key of the request, pay_internal.words_lock, then those of the responses that
-- change, in their order, and last pay_internal.lock_logs.

create or replace function pay_internal.erased_at_once()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

-- The time after which a request or a call of retention begins no further text: a statement has 5
-- seconds. A payment can have any number of refunds, so its events can take several calls.
create or replace function pay_internal.erasing_time()
returns interval language sql immutable parallel safe as $$ select interval '2 seconds' $$;

-- The payments that a request or a call of retention looks at.
create or replace function pay_internal.erasure_rows()
returns integer language sql immutable parallel safe as $$ select 5000 $$;

-- A person of an environment: SHA-256 of the id, or without one of the e-mail address.
create or replace function pay_internal.person_of(p_environment_id text, p_id text, p_email text)
returns bytea language plpgsql stable parallel safe as $$
begin
  return sha256(convert_to(
    p_environment_id || coalesce(' id ' || p_id, ' email ' || p_email), 'UTF8'));
end $$;

-- A text within a JSON string as JSON; null: it only looks like it.
create or replace function pay_internal.inner_json(p_text text)
returns json language plpgsql immutable parallel safe as $$
begin
  return (('"' || p_text || '"')::json #>> '{}')::json;
exception when invalid_text_representation then
  return null;
end $$;

-- The members customer and payer in a text of JSON, and in JSON that is a string of it, such as the
-- body of a delivery: an object of plain members. A quote within a string has a backslash before it,
-- so only members themselves match.
create or replace function pay_internal.persons_in(p_text text)
returns table (object text, person json) language plpgsql immutable parallel safe rows 10 as $$
begin
  return query
  select m[1], m[1]::json
  from regexp_matches(p_text,
    '[{,]"(?:customer|payer)":(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})', 'g') m
  union all
  select m[1], pay_internal.inner_json(m[1])
  from regexp_matches(p_text,
    '[{,]\\"(?:customer|payer)\\":(\{(?:[^{}"\\]|\\"(?:[^"\\]|\\\\(?:\\"|\\\\|[^"\\]))*\\")*\})',
    'g') m
  where strpos(p_text, '\"customer\"') > 0 or strpos(p_text, '\"payer\"') > 0;
end $$;

-- A text of JSON without a person, or without any if p_person is null. The rest stays byte for byte.
create or replace function pay_internal.without_person(
  p_environment_id text, p_text text, p_person bytea
) returns text language plpgsql stable as $$
declare
  v_found record;
  v_erased text;
  v_text text := p_text;
begin
  for v_found in select * from pay_internal.persons_in(p_text) loop
    continue when v_found.person is null or p_person is not null
      and p_person <> pay_internal.person_of(
        p_environment_id, v_found.person ->> 'id', v_found.person ->> 'email');
    v_erased := '{' || coalesce('"id":' || (v_found.person -> 'id')::text || ',', '')
      || '"email":null,"name":null}';
    if v_found.object like '{\\"%' then
      v_erased := btrim(to_json(v_erased)::text, '"');
    end if;
    v_text := replace(v_text, '":' || v_found.object, '":' || v_erased);
  end loop;
  return v_text;
end $$;

-- The same without any person.
create or replace function pay_internal.without_persons(p_text text)
returns text language plpgsql stable as $$
begin
  return pay_internal.without_person(null, p_text, null);
end $$;

-- The next payments of an erasure: at most pay_internal.erased_at_once(), or one whose events an
-- earlier call has begun. Returns the erasure with the place where the search has ended.
-- Concurrency: locks the payments in the order of their ids.
create or replace function pay_internal.find_erasable(inout p_erasure pay.erasures, out ids text[])
language plpgsql volatile as $$
declare
  v_most constant integer := pay_internal.erased_at_once();
  v_read text[];
  v_found text[];
begin
  -- Both in the order of an index, so that the planner uses it with any statistics.
  if p_erasure.at_sequence is not null then
    v_found := array[p_erasure.after_id];
  elsif p_erasure.customer_id is not null then
    select array_agg(r.id order by r.id),
      array_agg(r.id order by r.id) filter (where not r.is_erased)
    into v_read, v_found
    from (
      select p.id, p.is_erased from pay.payments p
      where p.customer_id = any (array[p_erasure.customer_id]) and p.customer_id is not null
        and p.environment_id = p_erasure.environment_id
        and p.id > p_erasure.after_id and p.id <= p_erasure.until_id
      order by p.customer_id, p.environment_id, p.id limit pay_internal.erasure_rows()
    ) r;
  else
    select array_agg(r.id order by r.id), array_agg(r.id order by r.id) filter (
      where not r.is_erased and r.customer_id is null
        and pay_internal.person_of(p_erasure.environment_id, null,
          r.body::json #>> '{customer,email}') = p_erasure.person)
    into v_read, v_found
    from (
      select p.id, p.is_erased, p.customer_id, p.body from pay.payments p
      where p.environment_id = any (array[p_erasure.environment_id])
        and p.id > p_erasure.after_id and p.id <= p_erasure.until_id
      order by p.environment_id, p.id limit pay_internal.erasure_rows()
    ) r;
  end if;
  ids := array(
    select p.id from pay.payments p
    where p.environment_id = p_erasure.environment_id and p.id = any (v_found[:v_most])
      and (not p.is_erased or p_erasure.at_sequence is not null)
    order by p.id for update);
  p_erasure.is_done := p_erasure.at_sequence is null and coalesce(cardinality(v_found), 0) <= v_most
    and coalesce(cardinality(v_read), 0) < pay_internal.erasure_rows();
  p_erasure.after_id := case when cardinality(v_found) > v_most then v_found[v_most]
    else coalesce(v_read[cardinality(v_read)], p_erasure.after_id) end;
end $$;

-- The first open payment, refund, dispute or checkout of a person, {id, status}; null: there is none. Looks at
-- the payments that are to be erased, and at the newest ones of the customer. Of a person without an
-- id, at the newest ones that are open.
create or replace function pay_internal.open_of_person(
  p_environment_id text, p_customer_id text, p_person bytea, p_ids text[], p_at timestamptz
) returns json language plpgsql stable as $$
declare
  v_open constant text[] := array[
    /* open */ 'pending', 'requires_action', 'processing', 'authorized'];
begin
  return (
    with known as (
      (select p.* from pay.payments p
       where p.environment_id = p_environment_id and p.id = any (p_ids))
      union all
      (select p.* from pay.payments p
       where p.customer_id = any (array[p_customer_id]) and p.customer_id is not null
         and p.environment_id = p_environment_id
       order by p.customer_id desc, p.environment_id desc, p.id desc
       limit 2 * pay_internal.erasure_rows())
      union all
      select p.* from unnest(v_open) o (status)
      cross join lateral (
        select p.* from pay.payments p
        where p.status = o.status and p.status <> 'completed'
          and p.environment_id = p_environment_id
        order by p.status desc, p.environment_id desc, p.id desc
        limit pay_internal.erasure_rows()
      ) p
      where p_customer_id is null and p.customer_id is null
        and pay_internal.person_of(p_environment_id, null, p.body::json #>> '{customer,email}')
          = p_person
    )
    select row_to_json(t) from (
      select k.id, k.status from known k where k.status = any (v_open)
      union all
      select r.id, r.status from known k
      join pay.refunds r on r.payment_id = k.id and r.environment_id = p_environment_id
      where k.amount_refunding > 0 and r.status = 'pending'
      union all
      select d.id, d.status from known k
      join pay.disputes d on d.payment_id = k.id and d.environment_id = p_environment_id
      where d.status in ('needs_response', 'under_review')
      union all
      select c.id, c.status
      from pay_internal.checkouts_of_person(p_environment_id, p_customer_id, p_person) c
      where pay_internal.checkout_status(c, p_at) = 'open'
      limit 1
    ) t
  );
end $$;

-- Erases a payment, from its newest event to the first, or from an earlier event on. Its bank
-- details go too, unless an order still needs them; then they have a retention of their own.
-- p_from   the sequence of the newest event that is not erased; null: nothing is
-- p_until  the real time after which it begins no further event
-- at_sequence: the event with which the next call begins; null: all are erased
create or replace function pay_internal.erase_payment(
  p_environment_id text, p_id text, p_from integer, p_until timestamptz, out at_sequence integer
) language plpgsql volatile as $$
declare
  v_payment pay.payments;
  v_text text;
  v_event record;
  v_is_first boolean := true;
begin
  select * into v_payment from pay.payments p
  where p.environment_id = p_environment_id and p.id = p_id;
  v_text := v_payment.body;
  if p_from is null then
    update pay.payments p set body = pay_internal.without_persons(v_text), is_erased = true
    where p.environment_id = p_environment_id and p.id = p_id;
    -- The words that are not of the person stay. The caller has the lock of the words.
    delete from pay.search_words w
    where w.environment_id = p_environment_id and w.payment_id = p_id;
    perform pay_internal.add_words(p_environment_id, array[p_id]);
    -- Events of triggers.
    update pay.events v set body = pay_internal.without_persons(v.body)
    where v.environment_id = p_environment_id and v.subject_id = p_id and v.sequence is null
      and v.body is not null;
    if pay_internal.rail_is_by_bank(v_payment.method_kind)
      and pay_internal.bank_details_need(p_environment_id, p_id) is null
    then
      perform pay_internal.delete_bank_details(p_environment_id, p_id);
    end if;
  end if;
  for v_event in
    select v.id, v.sequence, v.before from pay.events v
    where v.environment_id = p_environment_id and v.subject_id = p_id
      and v.sequence <= coalesce(p_from, v_payment.sequence) and v.before is not null
    order by v.environment_id desc, v.subject_id desc, v.sequence desc
  loop
    v_text := pay_internal.undo_splices(v_text, v_event.before);
    if clock_timestamp() > p_until and not v_is_first then
      -- The next call begins with this text.
      at_sequence := v_event.sequence;
    end if;
    update pay.events v
    set before = array['0,0,' || case when at_sequence is null
      then pay_internal.without_persons(v_text) else v_text end]
    where v.environment_id = p_environment_id and v.id = v_event.id;
    exit when at_sequence is not null;
    v_is_first := false;
  end loop;
end $$;

-- Erases the stored responses about payments, instruments and checkouts, and what receivers have
-- answered to deliveries of their events.
create or replace function pay_internal.erase_responses(p_environment_id text, p_ids text[])
returns void language plpgsql volatile as $$
begin
  with stored as materialized (
    select k.api_key_id, k.key from pay.idempotency_keys k
    where k.subject_id = any (p_ids) and k.environment_id = p_environment_id
      and k.body is not null and k.subject_id is not null and k.body <> ''
    order by k.api_key_id, k.key for update
  )
  update pay.idempotency_keys k set body = pay_internal.without_persons(k.body)
  from stored s
  where k.environment_id = p_environment_id and k.api_key_id = s.api_key_id and k.key = s.key;
  with answered as materialized (
    select x.delivery_id, x.slot
    from pay.events v
    cross join lateral pay_internal.deliveries_of(v.environment_id, v.id) d
    join pay.attempt_log x on x.environment_id = d.environment_id and x.delivery_id = d.id
    where v.subject_id = any (p_ids) and v.environment_id = p_environment_id
      and x.response is not null
    order by x.delivery_id, x.slot for update of x
  )
  update pay.attempt_log x set response = null, response_truncated = false
  from answered a
  where x.environment_id = p_environment_id and x.delivery_id = a.delivery_id and x.slot = a.slot;
end $$;

-- Ends the instruments of a person and erases them, with their events. Returns their ids, and the
-- number of deliveries that became due. At most pay_internal.erased_at_once() of them.
-- p_mandates  the ids of mandates of erased payments, for a person without an id
create or replace function pay_internal.erase_instruments(
  p_caller pay_internal.caller, p_customer_id text, p_mandates text[],
  p_at timestamptz, p_request_id text, p_idempotency_key text,
  out ids text[], out deliveries bigint
) language plpgsql volatile as $$
declare
  v_instrument record;
begin
  ids := '{}';
  deliveries := 0;
  for v_instrument in
    select t.id from pay.instruments t
    where t.environment_id = p_caller.environment_id
      and (t.customer_id = p_customer_id and t.customer_id is not null
        or p_customer_id is null and t.customer_id is null
          and upper(t.mandate_id) = any (p_mandates) and t.mandate_id is not null)
      and (t.status = 'active' or coalesce(t.email, t.name) is not null)
    order by t.id limit pay_internal.erased_at_once() for update
  loop
    ids := ids || v_instrument.id;
    update pay.instruments t set email = null, name = null
    where t.environment_id = p_caller.environment_id and t.id = v_instrument.id;
    update pay.events v set object = pay_internal.without_persons(v.object)
    where v.environment_id = p_caller.environment_id and v.subject_id = v_instrument.id
      and v.object is not null;
    deliveries := deliveries + pay_internal.end_instrument(
      p_caller, v_instrument.id, 'erased', p_at, p_request_id, p_idempotency_key);
  end loop;
end $$;

-- A logged request and its answer, as JSON texts, without a person. A request without the person's
-- own id is the person's if its answer is, or its instrument; an answer can show such a request.
-- Receivers of deliveries can have repeated what they got, so their answers go too.
create or replace function pay_internal.exchange_without(
  p_environment_id text, p_customer_id text, p_person bytea, inout request text, inout answer text
) language plpgsql stable as $$
declare
  v_person constant bytea := case when not exists (
    select from pay.instruments t
    where t.environment_id = p_environment_id and t.customer_id = p_customer_id
      and t.id = substring(concat(request, answer) from '"instrument":"(ins_[0-9a-z]{26})"')
  ) then p_person end;
  v_answer constant text := pay_internal.without_person(p_environment_id, answer, v_person);
begin
  request := pay_internal.without_person(p_environment_id, request,
    case when v_answer is not distinct from answer then v_person end);
  answer := case when v_answer <> answer and strpos(answer, ',"exchanges":[') > 0
    then regexp_replace(v_answer,
      ',"response":\{"text":"(?:[^"\\]|\\.)*","truncated":(?:true|false)\}', ',"response":null', 'g')
    else v_answer end;
end $$;

-- A line of a transcript; null without an answer.
create or replace function pay_internal.transcript_line(p_n bigint, p_request text, p_answer text)
returns text language sql immutable parallel safe as $$
  select '{"n":' || p_n || ',"request":' || p_request || ',"answer":' || p_answer || '}'
$$;

-- Lets an erasure come wholly before or after each line of the log and of the transcript: a later one
-- sees it (pay_internal.without_erased).
create or replace function pay_internal.lock_logs(p_environment_id text, p_is_erasure boolean)
returns void language plpgsql volatile as $$
declare
  v_lock constant bigint := hashtextextended('logs ' || p_environment_id, 0);
begin
  if p_is_erasure then perform pg_advisory_xact_lock(v_lock);
  else perform pg_advisory_xact_lock_shared(v_lock); end if;
end $$;

-- Erases a person from the log of requests and the transcript of a sandbox, which are from before
-- the erasure. Only lines with the id or the address are parsed.
-- p_email  of a person without an id; null in retention, which does not know it
-- p_until  as in pay_internal.erase_payment
create or replace function pay_internal.erase_logs(
  p_email text, p_until timestamptz, inout p_erasure pay.erasures
) language plpgsql volatile as $$
declare
  -- JSON within JSON escapes these characters anew.
  v_known constant text := case
    when coalesce(p_erasure.customer_id, p_email) !~ '["\\[:cntrl:]]'
    then coalesce(p_erasure.customer_id, p_email) else '' end;
  v_line record;
begin
  perform pay_internal.lock_logs(p_erasure.environment_id, true);
  for v_line in
    select t.place, t.n, row_number() over (order by t.place) as nth from (
      select o.id as place, null::bigint as n from pay.requests o
      where o.environment_id = p_erasure.environment_id and o.id > p_erasure.logged_after
        and o.created_at < p_erasure.erased_at + interval '5 seconds'
        and (strpos(concat(o.request_body, o.response_body), v_known) > 0
          or strpos(o.request_body, '"instrument":"ins_') > 0)
      union all
      select 'run_' || lpad(o.n::text, 9, '0'), o.n from pay.transcript_lines o
      where o.environment_id = p_erasure.environment_id and o.n <= p_erasure.run_number
        and (strpos(o.line, v_known) > 0 or strpos(o.line, '"instrument":"ins_') > 0)
    ) t
    where t.place > p_erasure.logged_after
    order by t.place
  loop
    if clock_timestamp() > p_until and v_line.nth > 1 then
      p_erasure.is_done := false;
      exit;
    end if;
    if v_line.n is null then
      update pay.requests r set (request_body, response_body) = (
        select x.request, x.answer from pay_internal.exchange_without(r.environment_id,
          p_erasure.customer_id, p_erasure.person, r.request_body, r.response_body) x)
      where r.environment_id = p_erasure.environment_id and r.id = v_line.place;
    else
      update pay.transcript_lines l set line = (
        select pay_internal.transcript_line(l.n, x.request, x.answer)
        from pay_internal.exchange_without(l.environment_id, p_erasure.customer_id,
          p_erasure.person, l.line::json ->> 'request', l.line::json ->> 'answer') x)
      where l.environment_id = p_erasure.environment_id and l.n = v_line.n;
    end if;
    p_erasure.logged_after := v_line.place;
  end loop;
end $$;

-- A logged request from before an erasure, written behind it, without the person. The clock of
-- a function can be 5 seconds ahead.
create or replace function pay_internal.without_erased(
  p_environment_id text, p_at timestamptz, p_n bigint, inout request text, inout answer text
) language plpgsql stable as $$
declare
  v_erasure record;
begin
  for v_erasure in
    select e.customer_id, e.person from pay.erasures e
    where e.environment_id = p_environment_id
      and (p_at < e.erased_at + interval '5 seconds' or p_n <= e.run_number)
  loop
    select * into request, answer from pay_internal.exchange_without(
      p_environment_id, v_erasure.customer_id, v_erasure.person, request, answer);
  end loop;
end $$;

-- Whether a delivery is of an erased payment of a sandbox, and may have left before the erasure.
create or replace function pay_internal.is_just_erased(p_delivery pay.webhook_deliveries)
returns boolean language plpgsql stable as $$
begin
  return exists (
      select from pay.erasures e where e.environment_id = p_delivery.environment_id)
    and exists (
      select from pay.payments p
      where p.environment_id = p_delivery.environment_id and p.id = p_delivery.subject_id
        and p.is_erased);
end $$;

-- Erases the payments that pay_internal.find_erasable has locked, the instruments and the ended
-- checkouts of the person, and the logs.
-- p_erasure  as that function returns it. Returns it with what is left
create or replace function pay_internal.erase_batch(
  p_caller pay_internal.caller, p_ids text[], p_email text, p_at timestamptz, p_request_id text,
  p_idempotency_key text, inout p_erasure pay.erasures,
  out payments integer, out instruments integer, out deliveries bigint
) language plpgsql volatile as $$
declare
  v_environment_id constant text := p_caller.environment_id;
  v_from integer := p_erasure.at_sequence;
  v_until constant timestamptz := clock_timestamp() + pay_internal.erasing_time();
  v_erased text[] := '{}';
  v_mandates text[] := '{}';
  v_id text;
  v_instruments text[];
begin
  perform set_config('pay.erasing', 'on', true);
  perform pg_advisory_xact_lock_shared(pay_internal.words_lock(v_environment_id));
  payments := 0;
  foreach v_id in array p_ids loop
    p_erasure.at_sequence := pay_internal.erase_payment(v_environment_id, v_id, v_from, v_until);
    payments := payments + (v_from is null)::integer;
    v_erased := v_erased || v_id;
    if p_erasure.at_sequence is not null
      or clock_timestamp() > v_until and v_id <> p_ids[cardinality(p_ids)]
    then
      p_erasure.after_id := v_id;
      p_erasure.is_done := false;
      exit;
    end if;
  end loop;
  if p_erasure.customer_id is null then
    v_mandates := array(
      select upper(p.body::json #>> '{method,mandate,id}') from pay.payments p
      where p.environment_id = v_environment_id and p.id = any (v_erased)
        and pay_internal.rail_collects(p.method_kind));
  end if;
  select t.ids, t.deliveries into v_instruments, deliveries
  from pay_internal.erase_instruments(p_caller, p_erasure.customer_id, v_mandates,
    p_at, p_request_id, p_idempotency_key) t;
  instruments := cardinality(v_instruments);
  p_erasure.is_done := p_erasure.is_done and instruments < pay_internal.erased_at_once();
  v_erased := v_erased || pay_internal.erase_checkouts(
    v_environment_id, p_erasure.customer_id, p_erasure.person, p_at);
  perform pay_internal.erase_responses(v_environment_id, v_erased || v_instruments);
  p_erasure := pay_internal.erase_logs(p_email, v_until, p_erasure);
  perform set_config('pay.erasing', '', true);
end $$;

-- Begins the erasure of a person, or goes on with one that is not done.
create or replace function pay_internal.begin_erasure(
  p_environment_id text, p_customer_id text, p_person bytea
) returns pay.erasures language plpgsql volatile as $$
declare
  v_erasure pay.erasures;
begin
  select * into v_erasure from pay.erasures e
  where e.environment_id = p_environment_id and e.person = p_person for update;
  if v_erasure.is_done is not false then
    v_erasure.after_id := '';
    v_erasure.at_sequence := null;
    v_erasure.logged_after := '';
  end if;
  v_erasure.environment_id := p_environment_id;
  v_erasure.person := p_person;
  v_erasure.customer_id := p_customer_id;
  v_erasure.erased_at := pay_internal.server_time();
  v_erasure.run_number := (
    select w.requests from pay.sandbox_settings w
    where w.environment_id = p_environment_id and w.seed is not null);
  if p_customer_id is not null then
    select p.id into v_erasure.until_id from pay.payments p
    where p.customer_id = any (array[p_customer_id]) and p.customer_id is not null
      and p.environment_id = p_environment_id
    order by p.customer_id desc, p.environment_id desc, p.id desc limit 1;
  else
    select p.id into v_erasure.until_id from pay.payments p
    where p.environment_id = any (array[p_environment_id])
    order by p.environment_id desc, p.id desc limit 1;
  end if;
  v_erasure.until_id := coalesce(v_erasure.until_id, '');
  return v_erasure;
end $$;

-- Notes what is left of an erasure. In a sandbox also one that is done, for what is logged behind it.
create or replace function pay_internal.note_erasure(p_erasure pay.erasures)
returns void language plpgsql volatile as $$
begin
  if p_erasure.is_done and exists (
    select from pay.environments e where e.id = p_erasure.environment_id and e.livemode
  ) then
    delete from pay.erasures e
    where e.environment_id = p_erasure.environment_id and e.person = p_erasure.person;
  else
    insert into pay.erasures select p_erasure.*
    on conflict on constraint erasures_pkey do update
    set after_id = excluded.after_id, at_sequence = excluded.at_sequence,
      until_id = excluded.until_id, logged_after = excluded.logged_after,
      run_number = excluded.run_number, is_done = excluded.is_done, erased_at = excluded.erased_at;
  end if;
end $$;

-- Erases a person by a request.
-- p_customer_id  the merchant's own id of the customer, or null
-- p_email        the exact address of payments without such an id, or null
-- Outcomes: those of admission.sql, and
--           ok (body: the response)
--           open (detail: {id, status} of a payment, refund, dispute or checkout without a final result)
-- deliveries: the number of deliveries that the ends of instruments made due.
create or replace function pay.erase_customer(p_request text, p_customer_id text, p_email text)
returns table (
  outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, status smallint, body text, detail text, deliveries bigint
) language plpgsql volatile security definer rows 1 set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
  v_request jsonb := p_request::jsonb -> 0;
  v_access pay.admission := pay_internal.admit_one(p_request);
  v_environment_id constant text := v_access.environment_id;
  v_person constant bytea :=
    pay_internal.person_of(v_environment_id, p_customer_id, p_email);
  v_erasure pay.erasures;
  v_found record;
  v_open json;
  v_done record;
  v_deliveries bigint := 0;
begin
  if v_access.outcome = 'ok' then
    v_erasure := pay_internal.begin_erasure(v_environment_id, p_customer_id, v_person);
    select * into v_found from pay_internal.find_erasable(v_erasure);
    v_open := pay_internal.open_of_person(v_environment_id, p_customer_id, v_person, v_found.ids,
      (v_request ->> 'at')::timestamptz);
    -- As pay_internal.check_instruments, so that no save of the customer comes between.
    if p_customer_id is not null then
      perform pg_advisory_xact_lock(hashtextextended(
        concat_ws(' ', 'instrument 1', v_environment_id, p_customer_id), 0));
      perform from pay.instruments t
      where t.environment_id = v_environment_id and t.customer_id = p_customer_id
        and t.customer_id is not null and t.status = 'active'
      order by t.id for update;
    end if;
  end if;
  v_access := pay_internal.claim_one(p_request, v_access);
  if v_access.outcome = 'ok' and v_open is not null then
    v_access.outcome := 'open';
    v_access.detail := v_open;
    perform pay_internal.release_key(p_request, v_access);
  elsif v_access.outcome = 'ok' then
    select * into v_done from pay_internal.erase_batch(
      row(1, v_environment_id, v_access.api_key_id, v_access.ahead)::pay_internal.caller,
      v_found.ids, p_email, (v_request ->> 'at')::timestamptz, v_request ->> 'request_id',
      v_request ->> 'idempotency_key', v_found.p_erasure);
    v_erasure := v_done.p_erasure;
    v_deliveries := v_done.deliveries;
    perform pay_internal.note_erasure(v_erasure);
    v_access.body := (select row_to_json(t) from (
      select 'customer' as object, p_customer_id as id, true as deleted, v_done.payments,
        v_done.instruments, not v_erasure.is_done as has_more) t);
    perform pay_internal.store_response(p_request, v_access);
  end if;
  return query select v_access.outcome, v_access.api_key_id, v_access.environment_id,
    v_access.account, v_access.livemode, v_access.remaining, v_access.status, v_access.body,
    v_access.detail, v_deliveries;
end $$;
grant execute on function pay.erase_customer to pay_api;

-- Retention: makes one step of an erasure that is not done, and forgets those that are. Returns a
-- number over 0 while something is left. Payments that are open by now are erased too, because a
-- change of them that was decided before is stale.
create or replace function pay_internal.continue_erasures(p_environment_id text)
returns bigint language plpgsql volatile as $$
declare
  v_erasure pay.erasures;
  v_found record;
  v_done record;
begin
  delete from pay.erasures e
  where e.environment_id = p_environment_id and e.is_done
    -- Rows about requests and deliveries from before can be written behind it until then.
    and e.erased_at < pay_internal.server_time() - interval '10 minutes';
  select * into v_erasure from pay.erasures e
  where e.environment_id = p_environment_id and not e.is_done
  order by e.erased_at limit 1 for update skip locked;
  if not found then return 0; end if;
  select * into v_found from pay_internal.find_erasable(v_erasure);
  select * into v_done from pay_internal.erase_batch(
    row(1, p_environment_id, null, (
      select pay_internal.time_ahead(w) from pay.sandbox_settings w
      where w.environment_id = p_environment_id))::pay_internal.caller,
    v_found.ids, null, pay_internal.environment_time(p_environment_id), null, null,
    v_found.p_erasure);
  perform pay_internal.note_erasure(v_done.p_erasure);
  return 1 + v_done.payments + v_done.instruments;
end $$;
