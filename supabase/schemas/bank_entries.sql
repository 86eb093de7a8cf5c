-- Purpose: entries of banks. An entry is booked once, whatever its files call it: by its identity,
-- which its files have in common, or else by what it is like.

-- Confirms the known entries that a camt.053 has by their identity. Its balances prove the
-- direction: the total of the day is that of the camt.053, and the operator sees that the booking
-- differs. Identity is more than likeness (pay_internal.pair_bank_entries): an entry that was taken
-- for another one is booked when a camt.053 has the other one, or itself, by its identity.
-- p_entries as in pay_internal.store_bank_entries
create or replace function pay_internal.confirm_bank_entries(
  p_account_id text, p_sha256 text, p_entries jsonb
) returns void language plpgsql volatile as $$
declare
  v_warnings jsonb; v_days jsonb; v_apart text[];
begin
  with entry as materialized (
    select a.environment_id, e.id, e.amount_minor, e.booked_on as stated_on
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (
      id text, amount_minor bigint, booked_on date, kind text)
    where a.id = p_account_id and pay_internal.interim_kind(e.kind) = 0
  ), known as materialized (
    -- Only the primary key has this order.
    select b.*, e.environment_id, e.id, e.amount_minor, e.stated_on
    from entry e
    cross join lateral (
      select b.ctid as place, b.amount_minor as former_minor, b.currency, b.booked_on,
        b.statement_sha256, b.held_events
      from pay.bank_entries b
      where b.environment_id = e.environment_id and b.account_id = p_account_id
        and b.id between e.id and e.id
      order by b.id offset 0 for update of b
    ) b
  ), apart as materialized (
    select other.*
    from known k
    cross join lateral (
      select y.id, y.same_as from pay.bank_entries y
      where y.account_id = p_account_id and y.same_as between k.id and k.id
        and y.statement_sha256 is not null
      order by y.same_as offset 0
    ) other
    union all
    select k.id, null from known k where k.held_events is not null and k.statement_sha256 is null
  ), confirmed as (
    update pay.bank_entries b
    set statement_sha256 = case when k.was_guess then p_sha256
        else coalesce(b.statement_sha256, p_sha256) end,
      amount_minor = k.amount_minor,
      stated_on = coalesce(b.stated_on, nullif(k.stated_on, b.booked_on))
    from (select k.*, k.id in (select p.same_as from apart p) as was_guess from known k) k
    where b.ctid = k.place
      and (k.statement_sha256 is null or k.former_minor <> k.amount_minor or k.was_guess)
      and (k.statement_sha256 is not null or k.held_events is null)
  ), change as (
    select booked_on, format(
      'the entry %s of %s has the other direction: an earlier file had %s %s in minor units',
      id, booked_on, former_minor, currency) as warning
    from known where former_minor <> amount_minor
  )
  select (select jsonb_agg(c.warning) from change c),
    (select jsonb_agg(distinct c.booked_on) from change c),
    (select array_agg(a.id) from apart a)
  into v_warnings, v_days, v_apart;
  perform pay_internal.keep_file_warnings(p_account_id, p_sha256, v_warnings, v_days);
  perform pay_internal.release_bank_entries(p_account_id, p_sha256, v_apart, true);
end $$;

-- Keeps warnings in the result of a file, 100 at most, and the days whose totals change, until its
-- end.
create or replace function pay_internal.keep_file_warnings(
  p_account_id text, p_sha256 text, p_warnings jsonb, p_days jsonb
) returns void language sql volatile as $$
  update pay.bank_files f
  set result = jsonb_build_object(
    'warnings', jsonb_path_query_array(
      coalesce(f.result -> 'warnings', '[]') || p_warnings, '$[0 to 99]'),
    'days', (select jsonb_agg(distinct d.day)
      from jsonb_array_elements(coalesce(f.result -> 'days', '[]') || p_days) as d (day)))
  from pay.provider_accounts a
  where a.id = p_account_id and f.environment_id = a.environment_id and f.account_id = a.id
    and f.sha256 = p_sha256 and p_warnings is not null
$$;

-- Replaces the bookings of totals, of which nobody knew what they are, or only a rule of the
-- account (payout). Returns the entries that had one: a booking that an operator has assigned
-- stays.
create or replace function pay_internal.replace_bank_totals(p_account_id text, p_ids text[])
returns setof text language sql volatile rows 10 as $$
  with total as materialized (
    -- The bounds are made here, as in pay.bank_file_state.
    select a.environment_id, t.id, t.id || ':0:' as low, t.id || ':0;' as high
    from pay.provider_accounts a
    cross join unnest(p_ids) as t (id)
    where a.id = p_account_id
    order by t.id
  ), found as materialized (
    select t.id, event.place
    from total t
    cross join lateral (
      select k.ctid as place from pay.provider_events k
      where k.environment_id = t.environment_id and k.account_id = p_account_id
        and k.reference between t.low and t.high
        and case k.op when 'payout' then coalesce(k.outcome, 'applied') = 'applied'
          else coalesce(k.outcome, 'unmatched') = 'unmatched' end
      order by k.reference offset 0
      for update of k
    ) event
  )
  update pay.provider_events event
  set body = jsonb_set(event.body, '{bank,is_replaced}', 'true'), outcome = null, handled_at = null,
    exception = null, dismissed_at = null, dismissed_reason = null
  from found f
  where event.ctid = f.place
  returning f.id
$$;

-- Stores the entries of a file that are new, with their provider events. Returns their number. If
-- an earlier file has an entry without its details, their events replace that of its total.
-- p_entries [{id, booked_on, amount_minor, currency, is_total, kind, provider_events}]
-- Concurrency: inserts in the order of the ids. A second transaction that stores the same entry
-- waits for the end of the first one.
create or replace function pay_internal.store_bank_entries(
  p_account_id text, p_sha256 text, p_entries jsonb, out stored bigint
) language plpgsql volatile as $$
declare
  v_events jsonb;
  v_detailed text[];
begin
  v_detailed := array(select pay_internal.replace_bank_totals(p_account_id, array(
    select e.id
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (id text, is_total boolean)
    cross join lateral (
      select from pay.bank_entries b
      where b.environment_id = a.environment_id and b.account_id = a.id
        and b.id between e.id and e.id and b.details_sha256 is null and b.same_as is null
      order by b.id offset 0
    ) b
    where a.id = p_account_id and not e.is_total
  )));
  if v_detailed <> '{}' then
    update pay.bank_entries b set details_sha256 = p_sha256
    from (
      select k.place
      from pay.provider_accounts a
      cross join unnest(v_detailed) as d (id)
      cross join lateral (
        select b.ctid as place from pay.bank_entries b
        where b.environment_id = a.environment_id and b.account_id = a.id
          and b.id between d.id and d.id
        order by b.id offset 0
      ) k
      where a.id = p_account_id
    ) f
    where b.ctid = f.place;
  end if;
  with entry as materialized (
    select a.environment_id, e.*, interim.seen_in
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (
      id text, booked_on date, amount_minor bigint, currency text, is_total boolean,
      kind text, provider_events jsonb)
    cross join lateral pay_internal.interim_kind(e.kind) as interim (seen_in)
    where a.id = p_account_id
  ), stored as (
    insert into pay.bank_entries (environment_id, account_id, id, sha256, details_sha256,
      statement_sha256, booked_on, amount_minor, currency, seen_in)
    select e.environment_id, p_account_id, e.id, p_sha256,
      case when not e.is_total then p_sha256 end, case when e.seen_in = 0 then p_sha256 end,
      e.booked_on, e.amount_minor, e.currency, e.seen_in
    from entry e
    order by e.id
    on conflict on constraint bank_entries_pkey do nothing
    returning id
  )
  select count(distinct s.id), coalesce(jsonb_agg(event.value || jsonb_build_object(
    'environment_id', e.environment_id, 'account_id', p_account_id, 'body', event.value)), '[]')
  into stored, v_events
  from entry e
  left join stored s on s.id = e.id
  cross join jsonb_array_elements(e.provider_events) event
  where s.id is not null or e.id in (select d.id from unnest(v_detailed) as d (id));
  perform pay_internal.keep_provider_events(v_events);
end $$;

-- The new entries of a file, and the known ones of the same days and amounts that they can be
-- (pay_internal.pair_bank_entries). low and high: the bounds of their events.
-- p_seen_in as pay_internal.interim_kind returns it
create or replace function pay_internal.comparable_bank_entries(
  p_account_id text, p_sha256 text, p_seen_in smallint
) returns table (
  environment_id text, id text, low text, high text, booked_on date, currency text,
  amount_minor bigint, details_sha256 text, is_new boolean
) language sql stable rows 10 as $$
  with new as materialized (
    select distinct b.booked_on, b.amount_minor from pay.bank_entries b
    where b.account_id = p_account_id and b.sha256 = p_sha256
  )
  select u.environment_id, b.id, b.id || ':' as low, b.id || ';' as high, b.booked_on,
    b.currency, b.amount_minor, b.details_sha256, s.is_new
  from pay.provider_cursors u
  cross join new n
  join pay.bank_entries b on b.account_id = p_account_id and b.booked_on = n.booked_on
    and b.amount_minor = n.amount_minor
  cross join lateral (select b.sha256 = p_sha256 as is_new) s
  where u.account_id = p_account_id and b.same_as is null
    and (s.is_new or case when p_seen_in = 0 then b.statement_sha256 is null
      else b.seen_in & p_seen_in = 0
        and (b.statement_sha256 is null or b.booked_on <= u.totals_day)
        and not exists (select from pay.bank_entries y
          where y.account_id = p_account_id and y.same_as between b.id and b.id
            and y.seen_in & p_seen_in <> 0) end)
$$;

-- Finds the new entries of a file that are known under another identity, because banks write fewer
-- details or another reference into one kind of file. A camt.053 is complete: an entry that is new
-- in it is the unconfirmed one of the same day and amount, if there is one. An entry that is new in
-- an interim file is one that no file of its kind has: an unconfirmed one, or one of a day that is
-- complete. Equal entries of a file are paired one to one, first those that tell the same
-- references. The details of either replace the total of the other. Returns the number of pairs.
create or replace function pay_internal.pair_bank_entries(
  p_account_id text, p_sha256 text, p_kind text
) returns bigint language plpgsql volatile as $$
declare
  v_seen_in constant smallint := pay_internal.interim_kind(p_kind);
  v_pairs jsonb;
  v_replaced text[];
begin
  with entry as materialized (
    select * from pay_internal.comparable_bank_entries(p_account_id, p_sha256, v_seen_in)
  ), told as materialized (
    select e.*, r.told, row_number() over (partition by e.booked_on, e.currency, e.amount_minor,
      r.told, e.is_new order by e.id) as place
    from entry e
    -- Only where there are two to compare.
    join (
      select o.booked_on, o.currency, o.amount_minor from entry o
      group by 1, 2, 3 having bool_or(o.is_new) and not bool_and(o.is_new)
    ) compared using (booked_on, currency, amount_minor)
    cross join lateral (
      -- A split total has them in another order than the bank.
      select string_agg(k.body ->> 'provider_reference', ' '
        order by k.body ->> 'provider_reference') as told
      from (
        select k.body from pay.provider_events k
        where k.environment_id = e.environment_id and k.account_id = p_account_id
          and k.reference between e.low and e.high
        order by k.reference offset 0
      ) k
    ) r
  ), agreed as materialized (
    select array_agg(t.id) as ids, min(t.id) filter (where t.is_new) as new_id,
      min(t.id) filter (where not t.is_new) as known_id,
      bool_or(t.is_new and t.details_sha256 is not null)
        and bool_or(not t.is_new and t.details_sha256 is null) as has_details
    from told t where t.told is not null
    group by t.booked_on, t.currency, t.amount_minor, t.told, t.place
    having count(*) = 2
  ), rest as (
    -- Those that tell something come beside those that tell nothing.
    select t.*, row_number() over (partition by t.booked_on, t.currency, t.amount_minor, t.is_new
      order by (t.told is null) = t.is_new, t.id) as rank
    from told t
    where t.id not in (select unnest(a.ids) from agreed a)
  ), pair as (
    select a.new_id, a.known_id, a.has_details from agreed a
    union all
    select min(t.id) filter (where t.is_new), min(t.id) filter (where not t.is_new),
      bool_or(t.is_new and t.details_sha256 is not null)
        and bool_or(not t.is_new and t.details_sha256 is null)
    from rest t
    group by t.booked_on, t.currency, t.amount_minor, t.rank
    -- Only a camt.053 is complete, so that entries which tell different things can be one.
    having count(*) = 2 and (v_seen_in = 0 or count(t.told) < 2)
  )
  select jsonb_agg(to_jsonb(p)) into v_pairs from pair p;
  if v_pairs is null then return 0; end if;
  v_replaced := array(select pay_internal.replace_bank_totals(p_account_id, array(
    select p.known_id from jsonb_to_recordset(v_pairs) as p (known_id text, has_details boolean)
    where p.has_details
  )));
  select jsonb_agg(case when r.id is null
    then jsonb_build_object('id', p.new_id, 'same_as', p.known_id, 'is_new', true)
    else jsonb_build_object('id', p.known_id, 'same_as', p.new_id, 'is_new', false) end)
  into v_pairs
  from jsonb_to_recordset(v_pairs) as p (new_id text, known_id text)
  left join unnest(v_replaced) as r (id) on r.id = p.known_id;
  perform pay_internal.hold_bank_entries(p_account_id, v_pairs);
  return jsonb_array_length(v_pairs);
end $$;

-- Holds entries that are known under another identity, and takes back the events of the new ones,
-- which nobody has seen yet.
-- p_pairs [{id, same_as, is_new}]
create or replace function pay_internal.hold_bank_entries(p_account_id text, p_pairs jsonb)
returns void language plpgsql volatile as $$
begin
  -- The bounds are made here, as in pay.bank_file_state, and each lookup names the order of its
  -- index.
  with pair as materialized (
    select a.environment_id, p.id, p.same_as, p.is_new, p.id || ':' as low, p.id || ';' as high
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_pairs) as p (id text, same_as text, is_new boolean)
    where a.id = p_account_id
  ), found as materialized (
    select p.same_as, other.*, kept.place as kept, event.*
    from pair p
    cross join lateral (
      select b.ctid as place, b.statement_sha256, b.batch_id, b.batch_minor
      from pay.bank_entries b
      where b.environment_id = p.environment_id and b.account_id = p_account_id
        and b.id between p.id and p.id
      order by b.id offset 0
    ) other
    cross join lateral (
      select b.ctid as place from pay.bank_entries b
      where b.environment_id = p.environment_id and b.account_id = p_account_id
        and b.id between p.same_as and p.same_as
      order by b.id offset 0
    ) kept
    cross join lateral (
      select coalesce(jsonb_agg(e.body), '[]') as bodies, array_agg(e.place) as places
      from (
        select k.ctid as place, k.body from pay.provider_events k
        where k.environment_id = p.environment_id and k.account_id = p_account_id
          and k.reference between p.low and p.high and p.is_new
          -- The worker still has to reverse the others.
          and k.booked_minor = 0 and not k.body -> 'bank' ? 'is_replaced'
        order by k.reference offset 0
      ) e
    ) event
  ), taken as (
    delete from pay.provider_events k
    using found f cross join unnest(f.places) as e (place)
    where k.ctid = e.place
  ), same as (
    update pay.bank_entries b set same_as = f.same_as, held_events = f.bodies
    from found f where b.ctid = f.place
  )
  update pay.bank_entries b
  set statement_sha256 = coalesce(b.statement_sha256, f.statement_sha256),
    batch_id = coalesce(b.batch_id, f.batch_id),
    batch_minor = coalesce(b.batch_minor, f.batch_minor)
  from found f where b.ctid = f.kept;
  -- Their own other identities are those of the entry that is booked.
  with pair as materialized (
    select p.* from jsonb_to_recordset(p_pairs) as p (id text, same_as text)
  ), other as materialized (
    select y.place, p.same_as
    from pair p
    cross join lateral (
      select b.ctid as place from pay.bank_entries b
      where b.account_id = p_account_id and b.same_as between p.id and p.id
      order by b.same_as offset 0
    ) y
  )
  update pay.bank_entries b set same_as = o.same_as from other o where b.ctid = o.place;
end $$;

-- Warnings about entries that no camt.053 has, of days that are complete: those of a file, and
-- those up to the day to which the file makes the account complete.
create or replace function pay_internal.unconfirmed_bank_entries(
  p_account_id text, p_sha256 text, p_complete_until date
) returns jsonb language sql stable as $$
  with days as materialized (
    select u.totals_day, greatest(u.totals_day, p_complete_until) as complete_until
    from pay.provider_cursors u where u.account_id = p_account_id
  ), of_file as materialized (
    select b.* from pay.bank_entries b
    where b.account_id = p_account_id and b.sha256 = p_sha256
  ), entry as (
    select b.id, b.booked_on, b.amount_minor, b.currency
    from of_file b
    where b.statement_sha256 is null and b.same_as is null
      and b.booked_on <= (select d.complete_until from days d)
    union all
    (select b.id, b.booked_on, b.amount_minor, b.currency
    from pay.bank_entries b
    where b.account_id = p_account_id and b.sha256 <> p_sha256
      and b.statement_sha256 is null and b.same_as is null
      and b.booked_on <= (select d.complete_until from days d)
      and b.booked_on > (select coalesce(d.totals_day, '-infinity') from days d)
    order by b.booked_on, b.id
    limit 20)
    order by booked_on, id
    limit 20
  )
  select coalesce(jsonb_agg(format('no camt.053 has the entry %s of %s: %s %s in minor units',
    e.id, e.booked_on, e.amount_minor, e.currency)), '[]')
  from entry e
$$;
