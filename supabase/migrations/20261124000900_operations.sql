-- Purpose: the breaches of the hourly check of the books, the settings of the operator, the
-- archives of live environments, and the requests that wake the dispatcher.
--
-- Each view pay.invariant_* lists what breaks one promise (docs/reliability.md), and is empty while
-- it holds. A view is one statement and so one snapshot. pg_net only ever calls our own fixed
-- address: it follows redirects and reaches loopback, and its queue is unlogged.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.invariant_breaches (
  environment_id text collate "C" not null,
  invariant text collate "C" not null,
  subject_id text collate "C" not null,
  detail text not null,
  found_at timestamptz not null default now(),
  constraint invariant_breaches_pkey primary key (environment_id, invariant, subject_id)
);
comment on table pay.invariant_breaches is 'Breaches of the hourly check, until pay.forget_breaches. Empty while every promise holds.';
comment on column pay.invariant_breaches.environment_id is 'The environment of the subject.';
comment on column pay.invariant_breaches.invariant is 'The view that found it.';
comment on column pay.invariant_breaches.subject_id is 'The resource that the breach is about.';
comment on column pay.invariant_breaches.detail is 'The breach in words.';
comment on column pay.invariant_breaches.found_at is 'Time at which it was found first.';

create table pay.settings (
  name text collate "C" not null,
  value text not null,
  constraint settings_pkey primary key (name),
  constraint settings_name_known check (
    name in ('relay_url', 'relay_token', 'books_checked_at', 'storage_counted_at')
  )
);
comment on table pay.settings is
  'The address and token with which the dispatcher is woken (pay.configure_relay), and the times of the last check of the books (pay.note_breaches) and of the last count of what sandboxes store (pay_internal.note_storage), in seconds since 1970.';
comment on column pay.settings.name is 'Name of the setting.';
comment on column pay.settings.value is 'Value of the setting, as text.';

create table pay.archives (
  environment_id text collate "C" not null,
  archived_until timestamptz not null,
  last_sha256 text not null,
  is_ended boolean not null default false,
  constraint archives_pkey primary key (environment_id),
  constraint archives_last_sha256_form check (last_sha256 ~ '^[0-9a-f]{64}$')
);
comment on table pay.archives is 'The live environments whose old events are archived before retention deletes them.';
comment on column pay.archives.environment_id is 'The live environment.';
comment on column pay.archives.archived_until is 'Retention keeps the events and deliveries from this time on, until the archive has ended.';
comment on column pay.archives.last_sha256 is 'SHA-256 of the manifest of the last day, in hex. Each manifest has that of the day before, so no other archive passes for this one.';
comment on column pay.archives.is_ended is 'Retention deletes events and deliveries after 30 days again.';

-- Unlogged, like the responses of pg_net: a crash empties both tables and restarts the ids.
create unlogged table pay.dispatcher_wakes (
  request_id text collate "C" not null,
  woken_at timestamptz not null default now(),
  constraint dispatcher_wakes_pkey primary key (request_id)
);
comment on table pay.dispatcher_wakes is
  'Requests of the last hour with which pg_net has woken the dispatcher.';
comment on column pay.dispatcher_wakes.request_id is 'The id that net.http_post returned, as text.';
comment on column pay.dispatcher_wakes.woken_at is 'Time of the request.';

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
