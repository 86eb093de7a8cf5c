-- Purpose: the entry function that lists. Each page reads a bounded number of rows and has a
-- bounded number of bytes (ADR 0004).
--
-- Outcomes: those of admission.sql; ok | not_found (the parent) | unknown_cursor.

-- The maximum number of rows that a page reads to find items that match its filters. A page that
-- has read so many rows ends, even with few or no items. Its cursor is then the last row that it
-- has read (ADR 0004).
create or replace function pay_internal.page_rows()
returns integer language sql immutable parallel safe as $$ select 2000 $$;

-- The most items of a list that are counted. A list has a total only if an index has all of its
-- filters, so that no row is read for it. A search counts as many rows for all its words together.
create or replace function pay_internal.counted_rows()
returns integer language sql immutable parallel safe as $$ select 10000 $$;

-- The maximum number of bytes of a page's items together. A page shows its first item whatever its
-- size. A hundred usual payments have less than half of this number (ADR 0004).
create or replace function pay_internal.page_bytes()
returns integer language sql immutable parallel safe as $$ select 262144 $$;

-- The first column of the index that reads a list. The index is (column, environment_id, id), or
-- the primary key if the column is environment_id. In it all rows of one value and one environment
-- are in the order of the list.
create or replace function pay_internal.list_column(p_kind text, p_filters jsonb)
returns text language sql immutable as $$
  select coalesce(
    case p_kind
      when 'payments' then case
        when p_filters ? 'reference' then 'reference'
        when p_filters ? 'customer_id' then 'customer_id'
        when p_filters ? 'instrument_id' then 'instrument_id'
        when p_filters ? 'checkout_id' then 'checkout_id'
        when p_filters ->> 'status' <> 'completed' then 'status'
      end
      when 'refunds' then case when p_filters ? 'payment_id' then 'payment_id' end
      when 'disputes' then case
        when p_filters ? 'payment_id' then 'payment_id'
        when p_filters ? 'status' then 'status'
      end
      when 'instruments' then case when p_filters ? 'customer_id' then 'customer_id' end
      when 'checkouts' then case
        when p_filters ? 'reference' then 'reference'
        when p_filters ? 'customer_id' then 'customer_id'
      end
      when 'transfers' then case when p_filters ? 'status' then 'status' end
      when 'webhook_deliveries' then case when p_filters ? 'endpoint_id' then 'endpoint_id' end
    end,
    'environment_id'
  )
$$;

-- The condition of a search; $2 as in pay_internal.list_query. It reads the part of a body from the
-- member p_first to the metadata, which has all texts of a search. A quote in a text is escaped, so
-- no text can contain the name of a member with its quotes. Only parts that contain the text are
-- parsed: its JSON has the escapes of the body, but without its quotes it can begin or end within
-- an escape, so it finds too many parts and never too few.
create or replace function pay_internal.search_condition(p_first text)
returns text language sql immutable as $$
  select format($condition$
    case when strpos(lower(%1$s collate "C"),
        lower(btrim(to_json($2 ->> 'search')::text, '"') collate "C")) > 0
      then exists (
        select from json_to_record(('{' || %2$L || %1$s || '}')::json) r (
          reference text, description text, customer json
        )
        cross join lateral (
          values (r.reference), (r.description), (r.customer ->> 'email'), (r.customer ->> 'name')
        ) v (shown)
        where strpos(lower(v.shown collate "C"), lower($2 ->> 'search' collate "C")) > 0
      ) end $condition$,
    format($part$split_part(split_part(t.body, ',"metadata":{', 1), %L, 2)$part$, p_first),
    p_first)
$$;

-- The condition of a filter; $2 as in pay_internal.list_query. Most filters are columns. The e-mail
-- address of a payment's customer and the texts of a search are only in its body: columns would
-- cost every create more than the filter costs a page, which reads pay_internal.page_rows() bodies
-- at most (ADR 0004). "found" is a search that pay.search_words answers. Only bodies that contain
-- the text are parsed. JSON escapes no character of an e-mail address.
create or replace function pay_internal.list_condition(p_kind text, p_name text)
returns text language sql immutable as $$
  select case
    when p_name = 'search' then pay_internal.search_condition(
      case p_kind when 'payments' then '"customer":' else '"description":' end)
    when p_name = 'found' then
      'pay_internal.is_found($1, t.id, t.reference, t.customer_id, $2 -> ''found'')'
    when p_kind = 'payments' and p_name = 'customer' then $condition$
      case when strpos(t.body, $2 ->> 'customer') > 0
        then t.body::json #>> '{customer,email}' end = $2 ->> 'customer' $condition$
    when p_kind = 'instruments' and p_name = 'status' then $condition$
      (pay_internal.instrument_at(t, $6)).status = $2 ->> 'status' $condition$
    when p_kind = 'checkouts' and p_name = 'status' then $condition$
      pay_internal.checkout_status(t, $6) = $2 ->> 'status' $condition$
    when p_kind = 'events' and p_name = 'instrument_id' then $condition$
      (t.subject_id = $2 ->> 'instrument_id' or exists (
        select from pay.payments p
        where p.environment_id = $1 and p.id = t.subject_id
          and p.instrument_id = $2 ->> 'instrument_id')) $condition$
    -- A class of statuses is 4xx. A decline is a result, and no error.
    when p_kind = 'requests' and p_name = 'status' then $condition$
      (t.status::text = $2 ->> 'status' or t.status / 100 || 'xx' = $2 ->> 'status'
        or $2 ->> 'status' = 'error' and t.status >= 400 and t.status <> 402) $condition$
    when p_kind = 'requests' and p_name = 'resource_id' then $condition$
      (t.resource_id = $2 ->> 'resource_id' or strpos(t.path, $2 ->> 'resource_id') > 0) $condition$
    else format('t.%1$I::text = $2 ->> %1$L', p_name)
  end
$$;

-- The condition on the index of a list; $1 to $4 as in pay_internal.list_query. p_column is null if
-- a subquery supplies the rows. The condition compares the column with an array of one element, and
-- the list is ordered by the column. Only the index of this column has that order, so the planner
-- uses it with any statistics. With a plain "=" the planner knows that the column is constant. It
-- could then read the primary key and discard an unlimited number of rows that do not match.
create or replace function pay_internal.list_range(p_kind text, p_column text)
returns text language sql immutable as $$
  select case
    when p_column is null then 'true'
    when p_column = 'environment_id' then 't.environment_id = any (array[$1])'
    else format('t.%1$I = any (array[$2 ->> %1$L]) and t.environment_id = $1', p_column)
  end
  || ' and t.id < $3 and t.id >= $4'
  -- The predicates of the partial indexes.
  || case
    when p_column in ('reference', 'customer_id', 'instrument_id', 'checkout_id')
      then format(' and t.%I is not null', p_column)
    when p_kind = 'payments' and p_column = 'status' then ' and t.status <> ''completed'''
    else ''
  end
$$;

-- A query for the payments that a search can mean, if they are few. Or for all events of one subject,
-- or of an instrument and its payments, whose index by subject has another order than the list, or
-- for the deliveries of an event or of a subject's events. Null if there are more rows than a page
-- may read, or more events of these deliveries. Only the index by subject has the order of the query. Reads the environment that is
-- open; $1 to $4 as in pay_internal.list_query.
create or replace function pay_internal.list_subject(
  p_environment_id text, p_kind text, p_filters jsonb
) returns text language plpgsql stable as $$
declare
  -- A delivery is read with its event.
  v_most constant integer := pay_internal.page_rows()
    / case p_kind when 'webhook_deliveries' then 2 else 1 end;
  v_events constant text := format('select t.* from (%%s) s cross join lateral (
      select t.* from pay.events t
      where t.environment_id = $1 and t.subject_id = s.id
      order by t.sequence limit %1$s
    ) t limit %1$s', v_most + 1);
  v_deliveries constant text := format('select t.* from (%%s) e
    cross join lateral pay_internal.deliveries_of($1, e.id) t limit %s', v_most + 1);
  v_subject constant text := 'select $2 ->> ''subject_id'' as id';
  v_rows constant text := case
    when p_filters ? 'found' then pay_internal.found_rows(p_filters -> 'found')
    when p_kind = 'webhook_deliveries' and p_filters ? 'event_id'
      then format(v_deliveries, 'select $2 ->> ''event_id'' as id')
    when p_kind = 'webhook_deliveries' and p_filters ? 'subject_id'
      then format(v_deliveries, format(v_events, v_subject))
    when p_kind = 'events' and p_filters ? 'subject_id' then format(v_events, v_subject)
    when p_kind = 'events' and p_filters ? 'instrument_id' then format(v_events,
      'select $2 ->> ''instrument_id'' as id union all
      (select p.id from pay.payments p
       where p.instrument_id = any (array[$2 ->> ''instrument_id''])
         and p.instrument_id is not null and p.environment_id = $1
       order by p.instrument_id, p.environment_id, p.id limit pay_internal.page_rows())')
  end;
  -- Of these events the deliveries are read.
  v_read constant text := case
    when p_kind = 'webhook_deliveries' and not p_filters ? 'event_id'
      then format(v_events, v_subject)
    else 'select' end;
  v_are_few boolean;
begin
  if v_rows is null or p_filters ? 'found' then return v_rows; end if;
  execute format('select (select count(*) from (%2$s) read) <= %1$s
    and (select count(*) from (%3$s) few) <= %1$s', v_most, v_read, v_rows)
  into v_are_few
  using p_environment_id, p_filters;
  return case when v_are_few then v_rows end;
end $$;

-- The query of a page. It returns the data, whether a matching item did not fit, the last item
-- shown, and the last row read if the page has read as many rows as it may. It reads the rows once
-- in the order of the list, stops at the end of the page, and computes the body only of rows that
-- match.
-- $1 environment, $2 filters, $3 and $4 bounds of the id (exclusive, inclusive), $5 items of the
-- page, $6 the time of the request.
-- p_columns: the order of the list, descending; p_match: the conditions that p_range does not
-- contain.
create or replace function pay_internal.list_query(
  p_source text, p_range text, p_columns text[], p_match text, p_body text
) returns text language sql immutable as $$
  select format(
    'select
       string_agg(page.body, '','' order by page.n) filter (where page.is_shown),
       bool_or(page.body is not null and not page.is_shown),
       min(page.id) filter (where page.is_shown),
       min(page.id) filter (where page.n = pay_internal.page_rows())
     from (
       select t.n, t.id, t.body,
         t.body is not null and (row_number() over shown = 1 or (
           row_number() over shown <= $5
           and sum(octet_length(t.body)) over shown <= pay_internal.page_bytes()
         )) as is_shown
       from (
         select %3$s, case when %5$s then %6$s end as body, row_number() over (order by %4$s) as n
         from %1$s t
         where %2$s
         order by %4$s
         limit pay_internal.page_rows()
       ) t
       where t.body is not null or t.n = pay_internal.page_rows()
       window shown as (order by %4$s rows unbounded preceding)
       limit $5 + 1
     ) page',
    p_source, p_range,
    (select string_agg('t.' || c, ', ') from unnest(p_columns) c),
    (select string_agg('t.' || c || ' desc', ', ') from unnest(p_columns) c),
    p_match, p_body
  )
$$;

-- A page of the environment that is open, in the form that pay.list returns.
create or replace function pay_internal.list_page(
  p_environment_id text, p_at timestamptz, p_kind text, p_limit integer, p_starting_after text,
  p_filters jsonb, p_counts boolean, out data text, out has_more boolean, out next_cursor text,
  out total integer
) language plpgsql stable as $$
declare
  v_filters jsonb := p_filters;
  v_found jsonb;
  v_few text;
  v_column text;
  v_source text;
  -- The filter of which the source has no other rows.
  v_filter text;
  v_match text;
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  if p_kind = 'events' and p_filters ? 'request_id' then
    v_filters := v_filters
      || pay_internal.event_bounds(p_environment_id, p_filters ->> 'request_id');
  end if;
  if p_kind = 'payments' and p_filters ? 'search' then
    v_found := pay_internal.sought(p_environment_id, p_filters ->> 'search');
    if v_found is not null then
      v_filters := v_filters - 'search' || jsonb_build_object('found', v_found);
    end if;
  end if;

  v_few := pay_internal.list_subject(p_environment_id, p_kind, v_filters);
  v_column := case when v_few is null then pay_internal.list_column(p_kind, v_filters) end;
  v_source := coalesce('(' || v_few || ')', format('pay.%I', p_kind));
  v_filter := case
    when v_few is null then v_column
    when p_kind <> 'webhook_deliveries' then null
    when v_filters ? 'event_id' then 'event_id'
    else 'subject_id' end;
  select coalesce(
    string_agg(pay_internal.list_condition(p_kind, c), ' and '), 'true'
  )
  into v_match
  from jsonb_object_keys(v_filters - array[coalesce(v_filter, ''), 'id_from', 'id_before']) c;
  execute pay_internal.list_query(
    v_source,
    pay_internal.list_range(p_kind, v_column),
    array_remove(array[v_column, 'id'], null),
    v_match,
    case p_kind
      when 'api_keys' then 'pay_internal.api_key_body(t, $6)'
      when 'faults' then 'pay_internal.fault_body(t)'
      when 'webhook_deliveries' then 'pay_internal.webhook_delivery_body(t)'
      when 'webhook_endpoints' then 'pay_internal.webhook_endpoint_body(t)'
      -- A row without a body is not shown.
      when 'sandboxes' then
        'case when t.expires_at > pay_internal.server_time() then pay_internal.sandbox_body(t) end'
      when 'requests' then 'pay_internal.request_body(t)'
      when 'events' then 'pay_internal.event_body(t)'
      when 'checkouts' then 'pay_internal.checkout_body(t, $6)'
      when 'instruments' then
        'pay_internal.instrument_body(pay_internal.instrument_at(t, $6))'
      else 't.body'
    end
  )
  into data, v_is_left, v_last_shown, v_last_read
  using p_environment_id, v_filters,
    -- Every id sorts before '~'.
    least(coalesce(p_starting_after, '~') collate "C", coalesce(v_filters ->> 'id_before', '~')),
    coalesce(v_filters ->> 'id_from', ''),
    p_limit, p_at;
  if p_counts and v_filter is not null and v_match = 'true' then
    execute format('select count(*) from (select from %s t where %s limit %s) counted', v_source,
      pay_internal.list_range(p_kind, v_column), pay_internal.counted_rows() + 1)
    into total
    using p_environment_id, v_filters, coalesce(v_filters ->> 'id_before', '~'),
      coalesce(v_filters ->> 'id_from', '');
  end if;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end $$;

-- A page of one admitted request, with its outcome: ok, not_found or unknown_cursor. PostgreSQL
-- plans the query for the filters of the request.
create or replace function pay_internal.filtered_page(
  p_environment_id text, p_at timestamptz, p_request jsonb, out outcome text, out data text,
  out has_more boolean, out next_cursor text, out total integer
) language plpgsql stable
set enable_hashjoin = off set enable_sort = off set enable_incremental_sort = off as $$
#variable_conflict use_column
declare
  v_kind text := p_request ->> 'kind';
  v_parent_id text := p_request ->> 'parent_id';
  v_limit integer := p_request ->> 'limit';
  v_starting_after text := p_request ->> 'starting_after';
  v_filters jsonb := coalesce(p_request -> 'filters', '{}');
  v_is_known boolean;
begin
  outcome := 'ok';
  if v_parent_id is not null and not exists (
    select from pay.payments t where t.environment_id = p_environment_id and t.id = v_parent_id
  ) then
    outcome := 'not_found';
    return;
  end if;
  if v_starting_after is not null then
    if v_kind = 'ledger_entries' then
      v_is_known := pay_internal.has_ledger_entry(p_environment_id, v_starting_after);
    else
      execute format(
        'select exists (select from pay.%I t where t.environment_id = $1 and t.id = $2)',
        case v_kind when 'payment_totals' then 'payments' else v_kind end
      ) into v_is_known using p_environment_id, v_starting_after;
    end if;
    if not v_is_known then
      outcome := 'unknown_cursor';
      return;
    end if;
  end if;
  if v_kind = 'ledger_entries' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay_internal.ledger_page(p_environment_id, v_limit, v_starting_after, v_filters) p;
  elsif v_kind = 'payment_totals' then
    select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
    from pay_internal.totals_page(p_environment_id, v_starting_after, v_filters) p;
  else
    select p.data, p.has_more, p.next_cursor, p.total into data, has_more, next_cursor, total
    from pay_internal.list_page(p_environment_id, p_at, v_kind, v_limit, v_starting_after,
      v_filters, p_request -> 'counts' is not null) p;
  end if;
end $$;

-- A page of a list for each request, newest first, one statement for all. data contains the bodies,
-- joined by commas. A page reads at most pay_internal.page_rows() rows, so it can have fewer items
-- than its limit, or none, before the list ends. Then next_cursor is the id of the last row read,
-- which need not match the filters.
-- p_requests  pay_internal.requests_of
-- p_pages     as JSON for each request, in their order:
--               n               of the request
--               kind            the name of the table
--               limit           the maximum number of items of the page
--               starting_after  the cursor; null for the first page
--               filters         absent without filters: pay_internal.list_condition; id_from
--                               (inclusive) and id_before (exclusive) bound the id and thereby the
--                               time
--               parent_id       absent, or a payment that must exist
--               counts          absent, or true: with the number of the items of the whole list, up
--                               to one more than pay_internal.counted_rows(); null: not known
-- Pages of payments without filters are "plain": this statement reads them, and its plan is made
-- once (ADR 0004).
create or replace function pay.list(p_requests text, p_pages text) returns table (
  n integer, outcome text, api_key_id text, environment_id text, account text, livemode boolean,
  remaining integer, data text, has_more boolean, next_cursor text, total integer, detail text
) language plpgsql volatile security definer rows 10
set enable_mergejoin = off set enable_material = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
  v_pages constant jsonb := p_pages::jsonb;
  -- The events whose words a search writes.
  v_portion constant integer := 200;
  v_found pay.admission[] := pay_internal.admit(
    pay_internal.requests_of(p_requests), 'shared', true);
begin
  -- A search finds what its client has just made.
  perform pay_internal.write_words(o.environment_id, v_portion, true)
  from (
    select distinct f.environment_id from unnest(v_found) f
    where f.outcome = 'ok' and v_pages -> (f.n - 1) ->> 'kind' = 'payments'
      and v_pages -> (f.n - 1) -> 'filters' ? 'search'
  ) o;
  return query
    with requested as materialized (
      select f.*, r."limit", r.starting_after, r.is_plain,
        -- Every id sorts before 'pay_~'. Computed here: in the comparison, below row-level
        -- security, a coalesce is a filter and not an index condition, and a deep page would read
        -- all rows before it.
        coalesce(r.starting_after, 'pay_~') as before
      from unnest(v_found) f
      join (
        select *, kind = 'payments' and filters is null and parent_id is null and counts is null
          as is_plain
        from jsonb_to_recordset(v_pages) as r (
          n integer, kind text, "limit" integer, starting_after text, filters jsonb, parent_id text,
          counts boolean
        )
      ) r on r.n = f.n
    )
    select a.n, case when c.is_known then coalesce(p.outcome, a.outcome) else 'unknown_cursor' end,
      a.api_key_id, a.environment_id, a.account, a.livemode, a.remaining, p.data, p.has_more,
      p.next_cursor, p.total, a.detail
    from requested a
    cross join lateral (
      select a.outcome <> 'ok' or not a.is_plain or a.starting_after is null or exists (
        select from pay.payments t
        where t.environment_id = a.environment_id and t.id = a.starting_after
      ) as is_known
    ) c
    left join lateral (
      select
        'ok' as outcome,
        coalesce(string_agg(page.body, ',' order by page.id desc) filter (where page.is_shown), '')
          as data,
        coalesce(bool_or(not page.is_shown), false) as has_more,
        case when bool_or(not page.is_shown)
          then min(page.id) filter (where page.is_shown)
        end as next_cursor,
        null::integer as total
      from (
        select t.id, t.body, row_number() over newest = 1 or (
          row_number() over newest <= a."limit"
          and sum(octet_length(t.body)) over newest <= pay_internal.page_bytes()
        ) as is_shown
        from pay.payments t
        where t.environment_id = a.environment_id and t.id < a.before
        window newest as (order by t.id desc rows unbounded preceding)
        order by t.id desc
        limit a."limit" + 1
      ) page
      having a.outcome = 'ok' and a.is_plain and c.is_known
      union all
      select x.outcome, x.data, x.has_more, x.next_cursor, x.total
      from pay_internal.filtered_page(a.environment_id, a.at, v_pages -> (a.n - 1)) x
      where a.outcome = 'ok' and not a.is_plain
    ) p on true;
end $$;
grant execute on function pay.list to pay_api;
