-- Purpose: what wakes the relay, retention and the check of the books where pg_cron and pg_net exist (as on Supabase). The
-- only migration that names them. Elsewhere the local server's ticker does the same.
--
-- pg_net only ever calls our own fixed address: it follows redirects and reaches loopback, so it is
-- not fit for addresses that customers choose, and its queue is unlogged, so it is an alarm clock and
-- no record. It is called from the job alone, always with a timeout.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.settings (
  name text collate "C" not null,
  value text not null,
  constraint settings_pkey primary key (name),
  constraint settings_name_known check (
    name in ('relay_url', 'relay_token', 'books_checked_at')
  )
);
comment on table pay.settings is
  'The address and token of the relay (pay.configure_relay), and the time of the last check of the books, in seconds since 1970 (pay.note_findings).';
comment on column pay.settings.name is 'Name of the setting.';
comment on column pay.settings.value is 'Value of the setting, as text.';

alter table pay.settings enable row level security;
alter table pay.settings force row level security;

-- Unlogged, like the answers of pg_net: a crash empties both tables and restarts the ids.
create unlogged table pay.relay_wakes (
  request_id text collate "C" not null,
  woken_at timestamptz not null default now(),
  constraint relay_wakes_pkey primary key (request_id)
);

comment on table pay.relay_wakes is
  'Requests of the last hour with which pg_net has woken the relay.';
comment on column pay.relay_wakes.woken_at is 'Time of the request.';
comment on column pay.relay_wakes.request_id is 'The id that net.http_post returned, as text.';

alter table pay.relay_wakes enable row level security;
alter table pay.relay_wakes force row level security;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
