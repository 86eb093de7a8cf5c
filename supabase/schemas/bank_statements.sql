-- Purpose: the statements of banks (camt.053). Each begins with the balance with which the one
-- before it has ended. So a missing statement is known, and equal entries of two statements are.

-- Reports whether a camt.053 is the newest statement and adjoins those before it: it has none of
-- their entries then. Statements of one day can come in any order.
-- p_balances {currency, opened_on, opening_minor, closed_on, closing_minor}, or null
create or replace function pay_internal.follows_statements(p_account_id text, p_balances jsonb)
returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select case when t.day = b.closed_on
      then (b.opening_minor = t.closing_minor or b.closing_minor = t.opening_minor)
        -- One that overlaps it or repeats it has a balance in common.
        and b.opening_minor <> t.opening_minor and b.closing_minor <> t.closing_minor
      else b.opening_minor = t.closing_minor and b.opened_on >= t.day end
    from jsonb_to_record(p_balances) as b (
      currency text, opened_on date, opening_minor bigint, closed_on date, closing_minor bigint)
    cross join lateral (
      select y.day, y.opening_minor, y.closing_minor
      from pay.provider_accounts a
      join pay.provider_totals y on y.environment_id = a.environment_id and y.account_id = a.id
      where a.id = p_account_id and y.currency = b.currency
        and (y.opening_minor is not null or y.closing_minor is not null)
      order by y.day desc limit 1
    ) t
  ), false)
$$;

-- Stores the balances of a statement with the totals of its last day. Statements of one day whose
-- balances adjoin become one. If the entries do not prove the closing balance, it is not stored:
-- some of them count only later.
-- p_balances as in pay_internal.follows_statements
create or replace function pay_internal.store_statement_balances(
  p_account_id text, p_balances jsonb, p_is_proven boolean
)
returns void
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into pay.provider_totals as t (environment_id, account_id, day, currency, provider_minor,
    read_at, opening_minor, closing_minor)
  select a.environment_id, a.id, b.closed_on, b.currency, 0, pay_internal.server_time(),
    case when b.opened_on >= former.day or former.day is null then b.opening_minor end,
    case when p_is_proven or b.opening_minor is null then b.closing_minor end
  from pay.provider_accounts a
  cross join jsonb_to_record(p_balances) as b (
    currency text, opened_on date, opening_minor bigint, closed_on date, closing_minor bigint)
  left join lateral (
    select y.day from pay.provider_totals y
    where y.environment_id = a.environment_id and y.account_id = a.id
      and y.currency = b.currency and y.day < b.closed_on
      and (y.opening_minor is not null or y.closing_minor is not null)
    order by y.day desc limit 1
  ) former on true
  where a.id = p_account_id
  on conflict on constraint provider_totals_pkey do update
  set opening_minor = case
      when t.opening_minor is null and t.closing_minor is null
        or t.opening_minor = excluded.closing_minor then excluded.opening_minor
      else t.opening_minor end,
    closing_minor = case
      when t.opening_minor is null and num_nulls(t.closing_minor, excluded.opening_minor) > 0
        or t.closing_minor = excluded.opening_minor then excluded.closing_minor
      when t.opening_minor = excluded.closing_minor or t.closing_minor = excluded.closing_minor
        then t.closing_minor
      end
$$;

create or replace view pay_internal.statement_gaps with (security_invoker = true) as
select t.environment_id, t.account_id, t.day,
  'a statement is missing: that of ' || t.day || ' begins with ' || t.opening_minor || ' '
    || t.currency || ', the one before it ends on ' || t.former_day || ' with '
    || t.former_minor as detail
from (
  select y.environment_id, y.account_id, y.currency, y.day, y.opening_minor,
    lag(y.day) over w as former_day, lag(y.closing_minor) over w as former_minor
  from pay.provider_totals y
  where y.opening_minor is not null or y.closing_minor is not null
  window w as (partition by y.environment_id, y.account_id, y.currency order by y.day)
) t
where t.opening_minor <> t.former_minor and t.day > (now() - interval '90 days')::date;
comment on view pay_internal.statement_gaps is
  'Statements of the last 90 days that do not begin with the balance that ended the one before.';

-- Warnings about the statements that are missing, at most 20.
create or replace function pay_internal.missing_statements(p_account_id text)
returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(g.detail), '[]')
  from (
    select g.detail
    from pay.provider_accounts a
    join pay_internal.statement_gaps g on g.environment_id = a.environment_id
      and g.account_id = a.id
    where a.id = p_account_id
    order by g.day desc limit 20
  ) g
$$;

-- Gives the entries of a file their ids: the hash of what its files have in common, and its number
-- among the entries with this hash. An entry is a known one of the same day, or of ten days around
-- it if their files are not both camt.053, which agree about the day. It is none of a statement
-- that this one follows, nor of another page of this one.
-- p_entries as in pay_internal.store_bank_entries. id: the hash, and the number among the entries
--           of the file with this hash and day
-- p_statement {balances, page: {statement_id, number}}, or null
create or replace function pay_internal.number_bank_entries(
  p_account_id text, p_sha256 text, p_entries jsonb, p_statement jsonb
)
returns jsonb
language plpgsql stable
-- As in pay_internal.lock_provider_events.
set search_path = pg_catalog, pg_temp set enable_sort = off
as $$
declare
  v_follows constant boolean :=
    pay_internal.follows_statements(p_account_id, nullif(p_statement -> 'balances', 'null'));
  v_page constant jsonb := nullif(p_statement -> 'page', 'null');
  v_ids jsonb;
begin
  with entry as materialized (
    select a.environment_id, e.id, e.booked_on, left(e.id, 32) as hash,
      coalesce(nullif(substr(e.id, 34), ''), '1')::bigint as number
    from pay.provider_accounts a
    cross join jsonb_to_recordset(p_entries) as e (id text, booked_on date)
    where a.id = p_account_id
  ), hash as materialized (
    -- The bounds are made here, as in pay.bank_file_state. "." comes behind "-".
    select distinct e.environment_id, e.hash as low, e.hash || '.' as high from entry e
  ), known as materialized (
    select h.low as hash, b.*
    from hash h
    cross join lateral (
      select b.id, b.booked_on, b.statement_sha256 is not null as is_stated,
        b.sha256 = p_sha256 or b.statement_sha256 = p_sha256 as is_ours, coalesce(
          b.statement_sha256 <> p_sha256 and (v_follows or (
            select f.result #>> '{page,statement_id}' = v_page ->> 'statement_id'
              and f.result #> '{page,number}' <> v_page -> 'number'
            from pay.bank_files f
            where v_page is not null and f.environment_id = h.environment_id
              and f.account_id = p_account_id and f.sha256 = b.statement_sha256
          )), false) as is_apart
      from pay.bank_entries b
      where b.environment_id = h.environment_id and b.account_id = p_account_id
        and b.id between h.low and h.high
      order by b.id offset 0
    ) b
  ), same as materialized (
    select d.hash, d.booked_on, k.id, row_number() over (partition by d.hash, d.booked_on
      order by k.booked_on <> d.booked_on, length(k.id), k.id) as number
    from (select distinct e.hash, e.booked_on from entry e) d
    join known k on k.hash = d.hash
    where case when k.booked_on = d.booked_on then not k.is_apart
      else abs(k.booked_on - d.booked_on) <= 10 and not coalesce(k.is_ours, false)
        and not (k.is_stated and p_statement is not null) end
  ), numbered as (
    select e.id, e.booked_on, coalesce(s.id, e.hash || nullif('-' || coalesce(c.known, 0)
      + dense_rank() over (partition by e.hash, s.id is null order by e.booked_on, e.number),
      '-1')) as new_id
    from entry e
    left join same s on s.hash = e.hash and s.booked_on = e.booked_on and s.number = e.number
    left join (select k.hash, count(*) as known from known k group by k.hash) c
      on c.hash = e.hash
  )
  select jsonb_object_agg(n.booked_on || n.id, n.new_id) filter (where n.new_id <> n.id)
  into v_ids
  from numbered n;
  if v_ids is null then return p_entries; end if;
  return (
    select jsonb_agg(case when n.id is null then e.value else e.value || jsonb_build_object(
      'id', n.id, 'provider_events', (
        select jsonb_agg(event.value || jsonb_build_object('reference',
          n.id || substr(event.value ->> 'reference', length(e.value ->> 'id') + 1)))
        from jsonb_array_elements(e.value -> 'provider_events') event)) end)
    from jsonb_array_elements(p_entries) e
    cross join lateral (
      select v_ids ->> ((e.value ->> 'booked_on') || (e.value ->> 'id')) as id) n
  );
end
$$;
