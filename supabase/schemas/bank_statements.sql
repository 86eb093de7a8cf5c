-- Purpose: the statements of banks (camt.053). Their balances tell which of two statements of a day
-- repeats the other one, and whether an entry of a statement is missing in the books.

-- The files with the statements that lead to the beginning of a camt.053 or on from its end, by
-- their balances. They have none of its entries, also if they have equal ones. Null: there are
-- none, or balances cannot tell, because it repeats or overlaps a statement of its day.
-- p_balances {currency, opened_on, opening_minor, closed_on, closing_minor}, or null
create or replace function pay_internal.adjoining_files(p_account_id text, p_balances jsonb)
returns text[] language sql stable as $$
  with recursive statement as materialized (
    select b.*, t.balances, former.day as former_day,
      pay_internal.outer_balance(former.balances, true) as former_minor
    from jsonb_to_record(p_balances) as b (
      currency text, opened_on date, opening_minor bigint, closed_on date, closing_minor bigint)
    join pay.provider_accounts a on a.id = p_account_id
    join pay.provider_totals t on t.environment_id = a.environment_id and t.account_id = a.id
      and t.day = b.closed_on and t.currency = b.currency and t.balances is not null
    left join lateral (
      select y.day, y.balances from pay.provider_totals y
      where y.environment_id = a.environment_id and y.account_id = a.id
        and y.currency = b.currency and y.day < b.closed_on and y.balances is not null
      order by y.day desc limit 1
    ) former on true
  ), other as materialized (
    select (x.value ->> 0)::bigint as opening_minor, (x.value ->> 1)::bigint as closing_minor,
      x.value ->> 2 as sha256, x.place
    from statement s
    cross join jsonb_array_elements(s.balances) with ordinality as x (value, place)
  ), reached (minor) as (
    select o.closing_minor from statement s join other o on o.opening_minor = s.opening_minor
    union
    select o.closing_minor from reached r join other o on o.opening_minor = r.minor
  ), chain (opening_minor, closing_minor, sha256, place, is_before) as (
    select o.*, o.closing_minor = s.opening_minor
    from statement s
    join other o on o.closing_minor = s.opening_minor or o.opening_minor = s.closing_minor
    union
    select o.*, c.is_before
    from chain c
    join other o on case when c.is_before then o.closing_minor = c.opening_minor
      else o.opening_minor = c.closing_minor end
  )
  select (
    select array_agg(distinct o.sha256)
    from chain c
    -- A later one that had more can have an earlier one as its part.
    join other o on o.sha256 = c.sha256 or o.place < c.place
      and case when c.is_before then o.opening_minor = c.opening_minor
        else o.closing_minor = c.closing_minor end
      and exists (select from pay.bank_entries b
        where b.account_id = p_account_id and b.sha256 = c.sha256)
  )
  from statement s
  -- One of several days overlaps the statements before.
  where (s.former_day is null or s.opened_on >= s.former_day or s.opening_minor = s.former_minor
      or exists (select from chain c where c.is_before and c.opening_minor = s.former_minor))
    -- It overlaps those with which it begins or ends, and those that lead where it leads.
    and (s.opening_minor = s.closing_minor or not exists (select from other o
      where o.opening_minor = s.opening_minor or o.closing_minor = s.closing_minor))
    and not exists (select from reached r where r.minor = s.closing_minor)
$$;

-- Stores the balances of a statement with the totals of its last day, as [opening, closing, file,
-- day of the opening]: 100 of a day at most, each once.
-- p_balances as in pay_internal.adjoining_files
create or replace function pay_internal.store_statement_balances(
  p_account_id text, p_sha256 text, p_balances jsonb
) returns void language sql volatile as $$
  insert into pay.provider_totals as t (environment_id, account_id, day, currency, provider_minor,
    read_at, balances)
  select a.environment_id, a.id, b.closed_on, b.currency, 0, pay_internal.server_time(),
    jsonb_build_array(jsonb_build_array(b.opening_minor, b.closing_minor, p_sha256, b.opened_on))
  from pay.provider_accounts a
  cross join jsonb_to_record(p_balances) as b (
    currency text, opened_on date, opening_minor bigint, closed_on date, closing_minor bigint)
  where a.id = p_account_id
  on conflict on constraint provider_totals_pkey do update
  set balances = coalesce(t.balances, '[]') || excluded.balances
  where t.balances is null or jsonb_array_length(t.balances) < 100 and not exists (
    select from jsonb_array_elements(t.balances) x
    where x.value -> 0 = excluded.balances #> '{0,0}'
      and x.value -> 1 = excluded.balances #> '{0,1}')
$$;

-- The balance at the beginning or at the end of a day: the only one on this side of the statements
-- that is on the other side of none. Those that come to nothing do not count beside others. If all
-- of them lead back, as on an account that the bank empties, it is the only one, or 0. Null: it is
-- not known.
create or replace function pay_internal.outer_balance(p_balances jsonb, p_is_end boolean)
returns bigint language sql immutable as $$
  with side as materialized (
    select (x.value ->> p_is_end::integer)::bigint as minor,
      (x.value ->> (not p_is_end)::integer)::bigint as other_minor
    from jsonb_array_elements(p_balances) x
  ), open as materialized (
    select s.minor from side s
    except
    select s.other_minor from side s where s.minor <> s.other_minor
  )
  select case (select count(*) from open)
    when 1 then (select o.minor from open o)
    when 0 then (select case when min(s.minor) = max(s.minor) then min(s.minor)
      when bool_or(s.minor = 0) then 0 end from side s)
  end
$$;

-- The accounts at banks whose balances of the last 90 days change by another amount than their
-- entries, each with the first day since then.
create or replace view pay_internal.unproven_balances with (security_invoker = true) as
select x.environment_id, x.account_id,
  'the balances of the statements since ' || min(x.day) filter (where x.is_last) || ' differ by '
    || max(x.last_minor) || ' ' || x.currency || ' in minor units from the entries: a statement is '
    || 'missing, or an entry was taken for another one' as detail
from (
  select d.*, bool_and(d.difference_minor = d.last_minor) over rest as is_last
  from (
    select c.*, last_value(c.difference_minor) over rest as last_minor
    from (
      select t.environment_id, t.account_id, t.currency, t.day, t.is_end,
        t.balance_minor - first_value(t.balance_minor) over w
          - (t.moved_minor - first_value(t.moved_minor) over w) as difference_minor
      from (
        select y.environment_id, y.account_id, y.currency, y.day, p.is_end,
          pay_internal.outer_balance(y.balances, p.is_end) as balance_minor,
          y.moved_minor - case when p.is_end then 0 else y.provider_minor end as moved_minor
        from (
          select f.*, sum(f.provider_minor) over w as moved_minor, lag(f.day) over w as former_day,
            count(f.balances) over w as place
          from pay.provider_totals f
          where f.day > (now() - interval '90 days')::date
          window w as (partition by f.environment_id, f.account_id, f.currency order by f.day)
        ) y
        -- The first day also has its beginning, unless that is days ago.
        join (values (false), (true)) as p (is_end) on p.is_end or y.place = 1
          and (y.former_day is null or y.former_day < (
            select min((x.value ->> 3)::date) from jsonb_array_elements(y.balances) x))
        where y.balances is not null
      ) t
      where t.balance_minor is not null
      window w as (partition by t.environment_id, t.account_id, t.currency
        order by t.day, t.is_end)
    ) c
    window rest as (partition by c.environment_id, c.account_id, c.currency
      order by c.day, c.is_end rows between current row and unbounded following)
  ) d
  window rest as (partition by d.environment_id, d.account_id, d.currency
    order by d.day, d.is_end rows between current row and unbounded following)
) x
where x.last_minor <> 0
group by x.environment_id, x.account_id, x.currency;
comment on view pay_internal.unproven_balances is
  'Accounts at banks whose balances change by another amount than their entries.';

-- Gives the entries of a file their ids: the hash of what its files have in common, and its number
-- among the entries with this hash. An entry is a known one of the same day, or else of ten days
-- around it if their files are not both camt.053, which agree about the day. It is none of a
-- statement that this one adjoins, nor of another page of this one.
-- p_entries as in pay_internal.store_bank_entries. id: the hash, and the number among the entries
--           of the file with this hash and day
-- p_statement {balances, page: {statement_id, number}}, or null
create or replace function pay_internal.number_bank_entries(
  p_account_id text, p_sha256 text, p_entries jsonb, p_statement jsonb
) returns jsonb language plpgsql stable as $$
declare
  v_ids jsonb;
begin
  with entry as materialized (
    select distinct e.id, e.booked_on, left(e.id, 32) as hash,
      coalesce(nullif(substr(e.id, 34), ''), '1')::bigint as number
    from jsonb_to_recordset(p_entries) as e (id text, booked_on date)
  ), known as materialized (
    select k.*, row_number() over (partition by k.hash, k.day, k.is_apart
      order by length(k.id), k.id) as number
    from pay_internal.known_bank_entries(p_account_id, p_sha256, p_statement,
      (select jsonb_agg(to_jsonb(e)) from entry e)) k
  ), exact as materialized (
    select e.*, k.id as known_id
    from entry e
    left join known k on k.hash = e.hash and k.day = e.booked_on and k.number = e.number
      and not k.is_apart
  ), new as (
    select e.*, row_number() over (partition by e.hash order by e.booked_on, e.number) as place
    from exact e where e.known_id is null
  ), near as (
    select k.*, row_number() over (partition by k.hash order by k.day, length(k.id), k.id) as place
    from known k
    where k.is_open
      and k.id not in (select e.known_id from exact e where e.known_id is not null)
      and exists (select from (select distinct n.hash, n.booked_on from new n) n
        where n.hash = k.hash and abs(n.booked_on - k.day) <= 10)
  ), found as (
    select n.id, n.booked_on, n.hash, n.place, k.id as known_id
    from new n
    left join near k on k.hash = n.hash and k.place = n.place
  ), numbered as (
    select e.id, e.booked_on, e.known_id as new_id from exact e where e.known_id is not null
    union all
    select f.id, f.booked_on, coalesce(f.known_id, f.hash || nullif('-' || coalesce(c.known, 0)
      + row_number() over (partition by f.hash, f.known_id is null order by f.place), '-1'))
    from found f
    left join (select k.hash, count(*) as known from known k group by k.hash) c
      on c.hash = f.hash
  )
  select jsonb_object_agg(n.booked_on || n.id, n.new_id) filter (where n.new_id <> n.id)
  into v_ids
  from numbered n;
  if v_ids is null then return p_entries; end if;
  return (
    select jsonb_agg(case when n.id is null then e.value else e.value || jsonb_build_object(
      'id', n.id, 'provider_events', (
        select jsonb_agg(event.value || jsonb_build_object('object_id', n.id, 'reference',
          n.id || substr(event.value ->> 'reference', length(e.value ->> 'id') + 1)))
        from jsonb_array_elements(e.value -> 'provider_events') event)) end)
    from jsonb_array_elements(p_entries) e
    cross join lateral (
      select v_ids ->> ((e.value ->> 'booked_on') || (e.value ->> 'id')) as id) n
  );
end $$;

-- The known entries with the hashes of some entries. day: that of a camt.053, if one has it.
-- is_open: an entry of this file can be it, also if the days differ. is_apart: none can be it.
-- p_entries [{hash, booked_on, number}], as in pay_internal.number_bank_entries
create or replace function pay_internal.known_bank_entries(
  p_account_id text, p_sha256 text, p_statement jsonb, p_entries jsonb
) returns table (hash text, id text, day date, is_open boolean, is_apart boolean)
language plpgsql stable rows 100 as $$
declare
  v_balances constant jsonb := nullif(p_statement -> 'balances', 'null');
  v_files constant text[] := pay_internal.adjoining_files(p_account_id, v_balances);
  v_page constant jsonb := nullif(p_statement -> 'page', 'null');
begin
  return query
    -- The bounds are made here, as in pay.bank_file_state. "." comes behind "-".
    with entry as materialized (
      select e.* from jsonb_to_recordset(p_entries) as e (hash text, booked_on date, number bigint)
    ), hash as materialized (
      select a.environment_id, h.low, h.low || '.' as high
      from pay.provider_accounts a cross join (select distinct e.hash as low from entry e) h
      where a.id = p_account_id
    ), known as materialized (
      select h.low as hash, b.id, coalesce(b.stated_on, b.booked_on) as day,
        b.sha256 <> p_sha256 and (b.statement_sha256 is null or p_statement is null and b.is_stated
          -- Its camt.053 has another entry that was taken for it.
          or exists (select from pay.bank_entries o
            where o.account_id = p_account_id and o.same_as between b.id and b.id
              and o.statement_sha256 = b.statement_sha256)) as is_open,
        b.is_stated and b.statement_sha256 = any(v_files) as is_beside,
        b.is_stated and (
          select f.result #>> '{page,statement_id}' = v_page ->> 'statement_id'
            and f.result #> '{page,number}' <> v_page -> 'number'
          from pay.bank_files f
          where v_page is not null and f.environment_id = h.environment_id
            and f.account_id = p_account_id and f.sha256 = b.statement_sha256
        ) as is_on_other_page
      from hash h
      cross join lateral (
        select y.*, y.statement_sha256 <> p_sha256 as is_stated
        from pay.bank_entries y
        where y.environment_id = h.environment_id and y.account_id = p_account_id
          and y.id between h.low and h.high
        order by y.id offset 0
      ) b
    ), contained as (
      -- A statement that comes to nothing can be a part of one that ends with its balance.
      select v_balances -> 'opening_minor' = v_balances -> 'closing_minor'
        and bool_and(e.number <= coalesce(s.count, 0)) as is_contained
      from entry e
      left join (
        select k.hash, k.day, count(*) as count from known k
        where k.is_beside
        group by k.hash, k.day
      ) s on s.hash = e.hash and s.day = e.booked_on
    )
    select k.hash, k.id, k.day, k.is_open,
      (k.is_on_other_page or k.is_beside and c.is_contained is not true) is true
    from known k cross join contained c;
end $$;
