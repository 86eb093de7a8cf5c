-- Purpose: a stand-in for pg_net on servers without it. Its function takes the same parameters and
-- inserts the same rows. Only the test responds to requests. Install it as superuser before the
-- migration that schedules the jobs.

create schema net;
grant usage on schema net to public;

-- The queue of pg_net 0.20. The table is unlogged, so a crash empties it.
create unlogged table net.http_request_queue (
  id bigint generated always as identity primary key,
  method text not null,
  url text not null,
  headers jsonb,
  body bytea,
  timeout_milliseconds integer not null
);

-- The responses of pg_net 0.20.4. The test inserts them in place of the worker. The real worker
-- deletes them after pg_net.ttl, which is six hours. The table holds the responses to the requests
-- of all roles. It has no primary key, and it is unlogged, so a crash empties it.
create unlogged table net._http_response (
  id bigint,
  status_code integer,
  content_type text,
  headers jsonb,
  content text,
  timed_out boolean,
  error_msg text,
  created timestamptz not null default now()
);
create index on net._http_response (created);
grant select on net._http_response to public;

-- Queues a request. The real worker sends it after the commit.
create function net.http_post(
  url text,
  body jsonb default '{}'::jsonb,
  params jsonb default '{}'::jsonb,
  headers jsonb default '{"Content-Type": "application/json"}'::jsonb,
  timeout_milliseconds integer default 5000
)
returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint;
begin
  if headers ->> 'Content-Type' is distinct from 'application/json' then
    raise exception 'Content-Type header must be "application/json"';
  end if;
  if params <> '{}' then
    raise exception 'the stand-in knows no parameters';
  end if;
  insert into net.http_request_queue (method, url, headers, body, timeout_milliseconds)
  values ('POST', http_post.url, http_post.headers, convert_to(http_post.body::text, 'UTF8'),
    http_post.timeout_milliseconds)
  returning id into v_id;
  return v_id;
end
$$;
