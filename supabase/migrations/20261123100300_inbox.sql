-- Purpose: inboxes of webhook endpoints (ADR 0048): endpoints without a URL, whose deliveries the
-- receiver reads.
--
-- The locks on webhook_deliveries stop all reads and writes, so this migration does not read it:
-- the new constraint is "not valid", and 20261123110300_inbox_checks.sql checks the old rows.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

alter table pay.webhook_endpoints
  alter column url drop not null,
  add column delivery text collate "C" not null default 'url',
  add column inbox_position bigint not null default 0,
  add column inbox_acknowledged bigint not null default 0,
  add constraint webhook_endpoints_delivery_known check (delivery in ('url', 'inbox')),
  add constraint webhook_endpoints_url_agrees_with_delivery
    check ((delivery = 'url') = (url is not null)),
  add constraint webhook_endpoints_inbox_acknowledged_in_range
    check (inbox_acknowledged between 0 and inbox_position);
comment on column pay.webhook_endpoints.url is
  'The address that receives the events; null if the receiver reads them.';
comment on column pay.webhook_endpoints.delivery is
  'url: the relay sends the events. inbox: the receiver reads them.';
comment on column pay.webhook_endpoints.inbox_position is
  'The position of the newest delivery in the inbox. A transaction that adds one locks the endpoint.';
comment on column pay.webhook_endpoints.inbox_acknowledged is
  'The receiver has acknowledged the deliveries up to this position.';

alter table pay.webhook_deliveries
  drop constraint webhook_deliveries_status_known,
  add constraint webhook_deliveries_status_known
    check (status in ('pending', 'available', 'delivered', 'failed', 'cancelled')) not valid;
comment on column pay.webhook_deliveries.status is
  'pending, available (in an inbox and not acknowledged), delivered, failed or cancelled.';
comment on column pay.webhook_deliveries.attempt_count is
  'Attempts begun; also the number of the one under way. In an inbox: how often it was added.';

create table pay.inbox_entries (
  environment_id text collate "C" not null,
  delivery_id text collate "C" not null,
  endpoint_id text collate "C" not null,
  position bigint not null,
  -- In the order of time, for retention.
  constraint inbox_entries_pkey primary key (environment_id, delivery_id),
  -- Reads of an inbox are in this order.
  constraint inbox_entries_position_key unique (environment_id, endpoint_id, position),
  constraint inbox_entries_position_positive check (position > 0)
);
comment on table pay.inbox_entries is 'The place of a delivery in the inbox of its endpoint.';
comment on column pay.inbox_entries.environment_id is 'The environment of the row.';
comment on column pay.inbox_entries.delivery_id is 'The delivery.';
comment on column pay.inbox_entries.endpoint_id is 'Its endpoint.';
comment on column pay.inbox_entries.position is
  'The position in the inbox, from 1. A delivery that is added again moves to the end.';

alter table pay.inbox_entries enable row level security;
alter table pay.inbox_entries force row level security;

create policy inbox_entries_of_environment on pay.inbox_entries to pay_owner using (
  environment_id = any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
