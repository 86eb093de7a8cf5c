-- Purpose: the log of the requests of sandboxes.

-- The number of requests that the log of a sandbox stores (contract §5).
create or replace function pay_internal.stored_requests()
returns integer language sql immutable parallel safe as $$ select 1000 $$;

-- A request as lists show it, without its bodies.
create or replace function pay_internal.request_body(p_request pay.requests)
returns text language sql stable as $$
  select row_to_json(t)::text from (
    select
      p_request.id,
      'request' as object,
      p_request.method,
      p_request.path,
      p_request.query,
      p_request.status,
      p_request.error_code,
      p_request.idempotency_key,
      p_request.is_replay as idempotent_replay,
      round(p_request.duration_us / 1000.0, 2) as duration_ms,
      p_request.api_key_id,
      p_request.source,
      p_request.resource_id,
      p_request.fault,
      p_request.fault_id,
      pay_internal.wire_time(p_request.created_at) as created_at
  ) t
$$;

-- A request with its bodies, as the read of one request shows it.
create or replace function pay_internal.whole_request_body(p_request pay.requests)
returns text language sql stable as $$
  select left(pay_internal.request_body(p_request), -1)
    || ',"request_body":' || coalesce(p_request.request_body, 'null')
    || ',"response_body":' || coalesce(p_request.response_body, 'null') || '}'
$$;

-- Writes what the functions have logged behind their responses. The service calls it.
-- p_keys      [{k, environment_id, api_key_id}]: the API keys of the requests, by numbers. A key
--             that has left the environment, because the sandbox was reset meanwhile, is left out
--             with its requests, and so is a live key
-- p_requests  the text of an array of pay_internal.logged_request, for the logs of sandboxes; null:
--             none. The bodies are JSON text without secrets
-- p_storage_gb
--             the gigabytes that the sandboxes of an account may store; null: no limit. The
--             requests of an account with as many are stored without bodies
-- p_replays   [{environment_id, api_key_id, key, count}]: replays of stored responses
-- The commit does not wait for the disk: a crash of the server can lose the last entries.
-- Concurrency: locks idempotency keys in the order in which pay_internal.find_responses deletes
-- them, and waits for erasures. After that it waits for nothing. It locks the environments, so none
-- is retired before the entries are visible to retention, and leaves out the requests of one that
-- is being retired.
create or replace function pay.log_requests(
  p_keys text, p_requests text, p_replays text, p_storage_gb integer default null
) returns void language plpgsql volatile security definer as $$
begin
  perform pay_internal.act_as_worker();
  perform set_config('synchronous_commit', 'off', true);
  if p_replays <> '[]' then
    with replayed as materialized (
      select k.environment_id, k.api_key_id, k.key, r.count
      from json_to_recordset(p_replays::json) as r (
        environment_id text, api_key_id text, key text, count integer
      )
      join pay.idempotency_keys k
        on k.environment_id = r.environment_id and k.api_key_id = r.api_key_id and k.key = r.key
      join pay.environments e on e.id = k.environment_id and e.moving is null
      order by k.api_key_id, k.key
      for no key update of k
    )
    update pay.idempotency_keys k set replays = k.replays + r.count
    from replayed r
    where k.environment_id = r.environment_id and k.api_key_id = r.api_key_id and k.key = r.key;
  end if;
  if p_requests is not null then
    -- A row lock needs the right to change the row.
    perform set_config('pay.environment_ids', (
      select array_agg(distinct a.environment_id)::text
      from json_to_recordset(p_keys::json) as a (environment_id text)), true);
    perform pay_internal.lock_logs(e.id, false)
    from unnest(current_setting('pay.environment_ids')::text[]) e (id) order by e.id;
    -- Materialized, so that each key is looked up once.
    with known as materialized (
      select a.k, k.environment_id, k.id, (e.stored_gb >= p_storage_gb) is true as is_full,
        exists (select from pay.erasures x where x.environment_id = e.id) as has_erasures
      from json_to_recordset(p_keys::json) as a (k integer, environment_id text, api_key_id text)
      join pay.api_keys k
        on k.id = a.api_key_id and k.environment_id = a.environment_id and not k.livemode
      join pay.environments e
        on e.id = k.environment_id and e.retired_at is null and e.moving is null
      for share of e skip locked
    )
    insert into pay.requests (environment_id, id, api_key_id, method, path, query, status,
      error_code, idempotency_key, is_replay, duration_us, source, created_at, resource_id, fault,
      fault_id, decided_at, request_body, response_body)
    select k.environment_id, r.id, k.id, r.method, r.path, r.query, r.status, r.error_code,
      r.idempotency_key, coalesce(r.is_replay, false), r.duration_us,
      coalesce(r.source, 'program'), r.at, r.resource_id, r.fault, r.fault_id, r.decided_at,
      case when k.is_full then null when k.has_erasures then x.request else r.request_body end,
      case when k.is_full then null when k.has_erasures then x.answer else r.response_body end
    from unnest(p_requests::pay_internal.logged_request[]) r
    join known k on k.k = r.k
    -- The limit keeps the condition before the function: 15 us a request where nobody was erased.
    left join lateral (
      select w.request, w.answer
      from pay_internal.without_erased(
        k.environment_id, r.at, null, r.request_body, r.response_body) w
      where k.has_erasures limit 1
    ) x on true
    on conflict on constraint requests_pkey do nothing;
  end if;
end $$;
grant execute on function pay.log_requests to pay_api;

-- The bounds of the ids of the events of a request, as pay_internal.list_query takes them: they
-- begin with the time at which it was decided. A live request has this time in its own id, and that
-- of a sandbox in its log. Empty without an entry of the log: then nobody knows the time.
create or replace function pay_internal.event_bounds(p_environment_id text, p_request_id text)
returns jsonb language sql stable as $$
  select coalesce(jsonb_object_agg(bound.name, 'evt_' || left(t.id, 9) || bound.rest)
    filter (where t.id is not null), '{}')
  from (
    select case when e.livemode then substr(p_request_id, 5)
      else (select pay_internal.id_floor('', r.decided_at) from pay.requests r
        where r.environment_id = p_environment_id and r.id = p_request_id) end as id
    from pay.environments e where e.id = p_environment_id
  ) t
  cross join (values ('id_from', ''), ('id_before', '~')) bound (name, rest)
$$;

-- Deletes one batch of the requests that are older than 30 days or no longer among the last of a
-- sandbox. Returns the number of deleted rows. An advance of the clock leaves them to retention,
-- because requests are written behind their responses and its count would differ. The log has real
-- times, so p_at is real.
create or replace function pay_internal.purge_requests(
  p_environment_id text, p_at timestamptz, p_batch integer, out deleted bigint
) language plpgsql volatile as $$
declare
  v_oldest text := greatest(pay_internal.id_floor('req_', p_at - interval '30 days'), (
    select o.id from pay.requests o where o.environment_id = p_environment_id
    order by o.id desc offset pay_internal.stored_requests() - 1 limit 1
  ));
begin
  delete from pay.requests t
  where t.environment_id = p_environment_id and t.id = any (array(
    select o.id from pay.requests o
    where o.environment_id = p_environment_id and o.id < v_oldest
    order by o.id limit p_batch for update skip locked
  ));
  get diagnostics deleted = row_count;
end $$;
