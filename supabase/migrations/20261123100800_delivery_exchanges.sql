-- Purpose: what the newest attempts of a delivery sent, and the beginning of the answers
-- (ADR 0056), and the source of each request in the log. Sandboxes only.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.delivery_exchanges (
  environment_id text collate "C" not null,
  delivery_id text collate "C" not null,
  slot smallint not null,
  attempt integer not null,
  url text not null,
  headers text not null,
  answer text,
  answer_truncated boolean not null,
  kept_at timestamptz not null,
  -- A delivery has one row in each slot, and a later attempt overwrites it.
  constraint delivery_exchanges_pkey primary key (environment_id, delivery_id, slot),
  constraint delivery_exchanges_slot_in_range check (slot between 0 and 4)
);
comment on table pay.delivery_exchanges is
  'The request of an attempt to deliver an event in a sandbox, and the beginning of its answer. The body of the request is that of the event.';
comment on column pay.delivery_exchanges.environment_id is 'The sandbox of the row.';
comment on column pay.delivery_exchanges.delivery_id is 'The delivery.';
comment on column pay.delivery_exchanges.slot is
  'The number of the attempt modulo 5, so that a delivery keeps its newest five.';
comment on column pay.delivery_exchanges.attempt is 'The number of the attempt.';
comment on column pay.delivery_exchanges.url is 'The URL that the request was sent to.';
comment on column pay.delivery_exchanges.headers is 'The headers of the request as a JSON object.';
comment on column pay.delivery_exchanges.answer is
  'The first 1 024 bytes of the answer, from its status line on; null: there was no answer.';
comment on column pay.delivery_exchanges.answer_truncated is 'Whether the answer had more bytes.';
comment on column pay.delivery_exchanges.kept_at is
  'Time of the database, also in a sandbox with a clock of its own. Retention deletes by it.';

create index delivery_exchanges_kept_at on pay.delivery_exchanges (kept_at);
comment on index pay.delivery_exchanges_kept_at is
  'pay.purge_exchanges: the oldest rows of all sandboxes.';

-- The policy is that of the other tables of tenants (20261120000950_policies.sql).
alter table pay.delivery_exchanges enable row level security;
alter table pay.delivery_exchanges force row level security;
create policy delivery_exchanges_of_environment on pay.delivery_exchanges to pay_owner using (
  environment_id = any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

alter table pay.requests
  add column source text collate "C" not null default 'program',
  add constraint requests_source_known check (source in ('program', 'web_page'));
comment on column pay.requests.source is
  'web_page: a browser sent the request for a page such as the console. program: everything else.';

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
