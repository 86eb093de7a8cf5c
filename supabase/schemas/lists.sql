-- Purpose: the entry functions that list. Each call is one round trip, and each page reads a
-- bounded number of rows and has a bounded number of bytes (ADR 0029). Called with named arguments
-- by shared/store.
--
-- Outcomes: ok | unauthorized | forbidden | rate_limited | not_found (the parent) |
--           unknown_cursor | resetting (the sandbox is being reset: ask again soon).

-- Most rows that a page reads to find items that match its filters. A page that has read so many
-- ends, however few items it has, and its cursor is the last row that it has read (ADR 0029).
create or replace function pay.page_rows()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 2000 $$;

-- Most bytes of a page's items together. A page shows its first item whatever the size. A hundred
-- usual payments have less than half of this. At its rate limit a key asks for 100 pages a second.
create or replace function pay.page_bytes()
returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$ select 262144 $$;

-- The first column of the index that reads a list: (column, environment_id, id), or the primary key
-- for environment_id. The index has all rows of one value and one environment in the order of the
-- list.
create or replace function pay.list_column(p_kind text, p_filters jsonb)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    case p_kind
      when 'payments' then case
        when p_filters ? 'reference' then 'reference'
        when p_filters ->> 'status' <> 'completed' then 'status'
      end
      when 'refunds' then case when p_filters ? 'payment_id' then 'payment_id' end
      when 'transfers' then case when p_filters ? 'status' then 'status' end
      when 'webhook_deliveries' then case
        when p_filters ? 'subject_id' then 'subject_id'
        when p_filters ? 'endpoint_id' then 'endpoint_id'
      end
    end,
    'environment_id'
  )
$$;

-- The condition on the index of a list; $1 to $4 as in pay.list_query. p_column is null if a
-- subquery supplies the rows. The condition compares the column with an array of one element, and
-- the list is ordered by the column: only its own index has that order, so the planner uses it
-- whatever its statistics say. With a plain "=" the planner knows that the column is constant. It
-- could then read the primary key and discard the rows that do not match, without a bound.
create or replace function pay.list_range(p_kind text, p_column text)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_column is null then 'true'
    when p_column = 'environment_id' then 't.environment_id = any (array[$1])'
    else format('t.%1$I = any (array[$2 ->> %1$L]) and t.environment_id = $1', p_column)
  end
  || ' and t.id < $3 and t.id >= $4'
  -- The predicates of the partial indexes.
  || case
    when p_column = 'reference' then ' and t.reference is not null'
    when p_kind = 'payments' and p_column = 'status' then ' and t.status <> ''completed'''
    else ''
  end
$$;

-- A query for all events of one subject, whose index by subject has another order than the list; null
-- if there are more rows than a page may read. Its order is that of the index by subject and of no
-- other index. Reads the environment that is open; $1 and $2 as in pay.list_query. Internal.
create or replace function pay.list_subject(p_environment_id text, p_kind text, p_filters jsonb)
returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows text := 'select t.* from pay.events t
    where t.environment_id = $1 and t.subject_id = $2 ->> ''subject_id''
    order by t.sequence limit pay.page_rows() + 1';
  v_are_few boolean;
begin
  if p_kind <> 'events' or not p_filters ? 'subject_id' then
    return null;
  end if;
  execute format('select count(*) <= pay.page_rows() from (%s) few', v_rows)
  into v_are_few
  using p_environment_id, p_filters;
  return case when v_are_few then v_rows end;
end
$$;

-- The query of a page. It returns the data, whether a matching item did not fit, the last item
-- shown, and the last row read if the page has read as many rows as it may. It reads the rows once
-- in the order of the list, stops at the end of the page, and computes the body only of rows that
-- match.
-- $1 environment, $2 filters, $3 and $4 bounds of the id (exclusive, inclusive), $5 items of the
-- page, $6 the time of the request.
-- p_columns: the order of the list, descending; p_match: the conditions that p_range does not
-- contain.
create or replace function pay.list_query(
  p_source text, p_range text, p_columns text[], p_match text, p_body text
)
returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    'select
       string_agg(page.body, '','' order by page.n) filter (where page.is_shown),
       bool_or(page.body is not null and not page.is_shown),
       min(page.id) filter (where page.is_shown),
       min(page.id) filter (where page.n = pay.page_rows())
     from (
       select t.n, t.id, t.body,
         t.body is not null and (row_number() over shown = 1 or (
           row_number() over shown <= $5
           and sum(octet_length(t.body)) over shown <= pay.page_bytes()
         )) as is_shown
       from (
         select %3$s, case when %5$s then %6$s end as body, row_number() over (order by %4$s) as n
         from %1$s t
         where %2$s
         order by %4$s
         limit pay.page_rows()
       ) t
       where t.body is not null or t.n = pay.page_rows()
       window shown as (order by %4$s rows unbounded preceding)
       limit $5 + 1
     ) page',
    p_source, p_range,
    (select string_agg('t.' || c, ', ') from unnest(p_columns) c),
    (select string_agg('t.' || c || ' desc', ', ') from unnest(p_columns) c),
    p_match, p_body
  )
$$;

-- A page of the environment that is open, as pay.list gives it. Internal.
create or replace function pay.list_page(
  p_environment_id text, p_at timestamptz, p_kind text, p_limit integer, p_starting_after text,
  p_filters jsonb,
  out data text, out has_more boolean, out next_cursor text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_filters jsonb := p_filters;
  v_subject text;
  v_few text;
  v_column text;
  v_match text;
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  -- The subject of an event's deliveries has an index.
  if p_kind = 'webhook_deliveries' and p_filters ? 'event_id' then
    select coalesce(min(x.subject_id), '') into v_subject from pay.events x
    where x.environment_id = p_environment_id and x.id = p_filters ->> 'event_id';
  end if;
  if v_subject <> coalesce(p_filters ->> 'subject_id', v_subject) then
    data := '';
    has_more := false;
    return;
  end if;
  if v_subject is not null then
    v_filters := p_filters || jsonb_build_object('subject_id', v_subject);
  end if;

  v_few := pay.list_subject(p_environment_id, p_kind, v_filters);
  v_column := case when v_few is null then pay.list_column(p_kind, v_filters) end;
  select coalesce(string_agg(format('t.%I = $2 ->> %L', c, c), ' and '), 'true') into v_match
  from jsonb_object_keys(v_filters - array[coalesce(v_column, ''), 'id_from', 'id_before']) c;
  execute pay.list_query(
    coalesce('(' || v_few || ')', format('pay.%I', p_kind)),
    pay.list_range(p_kind, v_column),
    array_remove(array[v_column, 'id'], null),
    v_match,
    case p_kind
      when 'api_keys' then 'pay.api_key_body(t, $6)'
      when 'webhook_deliveries' then 'pay.webhook_delivery_body(t)'
      else 't.body'
    end
  )
  into data, v_is_left, v_last_shown, v_last_read
  using p_environment_id, v_filters,
    -- Every id sorts before '~'.
    least(coalesce(p_starting_after, '~') collate "C", coalesce(v_filters ->> 'id_before', '~')),
    coalesce(v_filters ->> 'id_from', ''),
    p_limit, p_at;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end
$$;

-- A page of a list, newest first. data contains the bodies, joined by commas. A page reads at most
-- pay.page_rows() rows, so it can have fewer items than p_limit, or none, before the list ends.
-- Then next_cursor is the id of the last row read, which need not match the filters.
-- p_filters: equality on columns of the table; id_from (inclusive) and id_before (exclusive) bound
-- the id and thereby the time. p_parent_id must be a payment of the environment.
create or replace function pay.list(
  p_key_hash text,
  p_scope text,
  p_at timestamptz,
  p_rate integer[],
  p_kind text,
  p_limit integer,
  p_starting_after text,
  p_filters text,
  p_parent_id text
)
returns table (
  outcome text, api_key_id text, environment_id text, remaining integer, data text,
  has_more boolean, next_cursor text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set enable_bitmapscan = off set enable_sort = off
set enable_incremental_sort = off set jit = off
as $$
#variable_conflict use_column
declare
  v_access record;
  v_known boolean;
begin
  select * into v_access from pay.enter(p_key_hash, p_scope, p_at, p_rate, 'shared');
  outcome := v_access.outcome;
  api_key_id := v_access.api_key_id;
  environment_id := v_access.environment_id;
  remaining := v_access.remaining;
  if outcome = 'ok' and p_parent_id is not null and not exists (
    select from pay.payments t
    where t.environment_id = v_access.environment_id and t.id = p_parent_id
  ) then
    outcome := 'not_found';
  end if;
  if outcome = 'ok' and p_starting_after is not null then
    if p_kind = 'ledger_entries' then
      v_known := pay.has_ledger_entry(v_access.environment_id, p_starting_after);
    else
      execute format(
        'select exists (select from pay.%I t where t.environment_id = $1 and t.id = $2)', p_kind
      ) into v_known using v_access.environment_id, p_starting_after;
    end if;
    if not v_known then
      outcome := 'unknown_cursor';
    end if;
  end if;
  if outcome = 'ok' and p_kind = 'ledger_entries' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay.ledger_page(
      v_access.environment_id, p_limit, p_starting_after, coalesce(p_filters, '{}')::jsonb
    ) p;
  elsif outcome = 'ok' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay.list_page(
      v_access.environment_id, p_at, p_kind, p_limit, p_starting_after,
      coalesce(p_filters, '{}')::jsonb
    ) p;
  end if;
  return next;
end
$$;

-- Pages of payments without filters, as pay.list gives one, for requests that were made at the same
-- time: one statement for all, whose plan is made once. n ties a row to its request.
-- p_requests  [{n, key_hash, scope, at, rate, limit, starting_after}]
create or replace function pay.list_payments(p_requests text)
returns table (
  n integer, outcome text, api_key_id text, environment_id text, remaining integer, data text,
  has_more boolean, next_cursor text
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set enable_material = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_has_rates boolean := p_requests like '%"rate":%';
  v_opened text[] := pay.open_environments(p_requests::json);
  v_row record;
begin
  for v_row in
    with asked as materialized (
      select c.*, decode(c.key_hash, 'hex') as hash,
        -- Every id sorts before 'pay_~'. Computed here: in the comparison, below row-level
        -- security, a coalesce is a filter and not an index condition, and a deep page would read
        -- all rows before it.
        coalesce(c.starting_after, 'pay_~') as before
      from json_to_recordset(p_requests::json) as c (
        n integer, key_hash text, scope text, at timestamptz, rate integer[], "limit" integer,
        starting_after text
      )
    )
    select c.n, c.at, c.rate, s.environment_id, s.api_key_id, l.data, l.has_more, l.next_cursor,
      case
        when s.hash is null then 'unauthorized'
        when s.environment_id <> all (v_opened) then 'resetting'
        when k.id is null then 'forbidden'
        when not cursor.is_known then 'unknown_cursor'
        else 'ok'
      end as outcome
    from asked c
    left join pay.api_key_secrets s
      on s.hash = c.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > c.at)
    left join pay.api_keys k
      on k.id = s.api_key_id and (k.scopes is null or c.scope = any (k.scopes))
    left join lateral (
      select c.starting_after is null or exists (
        select from pay.payments t
        where t.environment_id = s.environment_id and t.id = c.starting_after
      ) as is_known
    ) cursor on true
    left join lateral (
      select
        string_agg(page.body, ',' order by page.id desc) filter (where page.is_shown) as data,
        bool_or(not page.is_shown) as has_more,
        min(page.id) filter (where page.is_shown) as next_cursor
      from (
        select t.id, t.body, row_number() over newest = 1 or (
          row_number() over newest <= c.limit
          and sum(octet_length(t.body)) over newest <= pay.page_bytes()
        ) as is_shown
        from pay.payments t
        where t.environment_id = s.environment_id and t.id < c.before
        window newest as (order by t.id desc rows unbounded preceding)
        order by t.id desc
        limit c.limit + 1
      ) page
    ) l on k.id is not null and cursor.is_known
  loop
    n := v_row.n;
    outcome := v_row.outcome;
    api_key_id := v_row.api_key_id;
    environment_id := v_row.environment_id;
    data := coalesce(v_row.data, '');
    has_more := coalesce(v_row.has_more, false);
    next_cursor := case when has_more then v_row.next_cursor end;
    remaining := null;
    if v_has_rates and v_row.rate is not null and outcome not in ('unauthorized', 'resetting') then
      remaining := pay.count_request(environment_id, api_key_id, v_row.at, v_row.rate, true);
      if remaining < 0 then
        outcome := 'rate_limited';
        remaining := 0;
        data := null;
      end if;
    end if;
    return next;
  end loop;
end
$$;

grant execute on function pay.list_payments(text) to pay_api;
grant execute on function
  pay.list(text, text, timestamptz, integer[], text, integer, text, text, text) to pay_api;
