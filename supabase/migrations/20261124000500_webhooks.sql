-- Purpose: webhook endpoints, the outbox of deliveries, inboxes, and the newest attempts of a
-- sandbox.
--
-- A delivery is an event on its way to one endpoint. The transaction of a change writes its events
-- and their deliveries. These rows are the record; a wake only makes the dispatcher read them. The
-- dispatcher leases due deliveries. An attempt that outlives its lease cannot
-- overwrite the record of a later one, because the dispatcher records an attempt only while its
-- number is the newest.
--
-- An endpoint with an inbox has no URL: its receiver reads the deliveries (ADR 0017).

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.webhook_endpoints (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  slot smallint not null,
  url text,
  events text[] not null,
  status text collate "C" not null,
  secrets json not null,
  failing_since timestamptz,
  revision integer not null,
  created_at timestamptz not null,
  delivery text collate "C" not null default 'url',
  inbox_position bigint not null default 0,
  inbox_acknowledged bigint not null default 0,
  body text not null,
  constraint webhook_endpoints_pkey primary key (environment_id, id),
  -- At most 16 endpoints (contract §4): one in each slot.
  constraint webhook_endpoints_slot_key unique (environment_id, slot),
  constraint webhook_endpoints_slot_in_range check (slot between 0 and 63),
  constraint webhook_endpoints_status_known check (status in ('enabled', 'disabled')),
  constraint webhook_endpoints_url_length check (length(url) <= 2048),
  constraint webhook_endpoints_delivery_known check (delivery in ('url', 'inbox')),
  constraint webhook_endpoints_url_agrees_with_delivery
    check ((delivery = 'url') = (url is not null)),
  constraint webhook_endpoints_inbox_acknowledged_in_range
    check (inbox_acknowledged between 0 and inbox_position)
);
comment on table pay.webhook_endpoints is 'A merchant''s address for events.';
comment on column pay.webhook_endpoints.environment_id is 'The environment of the row.';
comment on column pay.webhook_endpoints.id is 'The id in responses; sorts by time.';
comment on column pay.webhook_endpoints.slot is '0 to 15, in a sandbox 0 to 63; the ids of its deliveries encode it.';
comment on column pay.webhook_endpoints.url is
  'The address that receives the events; null if the receiver reads them.';
comment on column pay.webhook_endpoints.events is 'Event types, or patterns: *, payment.*';
comment on column pay.webhook_endpoints.status is 'enabled or disabled.';
comment on column pay.webhook_endpoints.secrets is
  '[{version, salt, expires_at}], newest first. The functions derive each secret from these and the master secret, which is not in the database.';
comment on column pay.webhook_endpoints.failing_since is 'The first failure since the last success; null when the last attempt succeeded.';
comment on column pay.webhook_endpoints.revision is 'Number of changes. An update compares it and sets it.';
comment on column pay.webhook_endpoints.created_at is 'Time of creation.';
comment on column pay.webhook_endpoints.delivery is
  'url: the dispatcher sends the events. inbox: the receiver reads them.';
comment on column pay.webhook_endpoints.inbox_position is
  'The position of the newest delivery in the inbox. A transaction that adds one locks the endpoint.';
comment on column pay.webhook_endpoints.inbox_acknowledged is
  'The receiver has acknowledged the deliveries up to this position.';
comment on column pay.webhook_endpoints.body is 'The endpoint as JSON text, without its secret.';

create table pay.webhook_deliveries (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  event_id text collate "C" not null,
  event_type text collate "C" not null,
  endpoint_id text collate "C" not null,
  subject_id text collate "C" not null,
  sequence integer,
  status text collate "C" not null,
  attempt_count integer not null default 0,
  attempts json[] not null default '{}',
  next_attempt_at timestamptz,
  leased_until timestamptz,
  expired_leases smallint not null default 0,
  created_at timestamptz not null,
  due_at timestamptz,
  fault text collate "C",
  fault_attempt integer,
  constraint webhook_deliveries_pkey primary key (environment_id, id),
  constraint webhook_deliveries_status_known
    check (status in ('pending', 'available', 'delivered', 'failed', 'cancelled')),
  constraint webhook_deliveries_expired_leases_not_negative check (expired_leases >= 0),
  -- A lease is of something pending; that the dispatcher need not ask.
  constraint webhook_deliveries_pending_has_next
    check (
      (status = 'pending') = (next_attempt_at is not null)
      and (status = 'pending' or leased_until is null)
    ),
  constraint webhook_deliveries_fault_known check (
    fault in ('duplicate', 'delay', 'reorder', 'wrong_signature', 'drop_until_recovered')
  ),
  constraint webhook_deliveries_fault_has_attempt check (
    (fault is null) = (fault_attempt is null)
  )
-- A lease writes each row once more, and a poll leases many neighbours at once: with half a page
-- free their new versions stay on it, and no index hears of them. Each delivery leaves a dead entry
-- at the beginning of the indexes of what is pending, over which every poll of the dispatcher steps
-- until a vacuum (measured: 20 000 cost 19 pages a poll, the first poll 2 878). The usual fifth of
-- a table that keeps 30 days would be millions of them.
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 10000);
comment on table pay.webhook_deliveries is 'The outbox: an event on its way to one endpoint.';
comment on column pay.webhook_deliveries.environment_id is 'The environment of the row.';
comment on column pay.webhook_deliveries.id is 'The id in responses; sorts by time.';
comment on column pay.webhook_deliveries.event_id is 'The event that is delivered.';
comment on column pay.webhook_deliveries.event_type is 'The type of the event.';
comment on column pay.webhook_deliveries.endpoint_id is 'The endpoint that receives it.';
comment on column pay.webhook_deliveries.subject_id is
  'The subject of the event; its events arrive in order.';
comment on column pay.webhook_deliveries.sequence is 'Sequence of the event; null for a triggered event, which waits for no other.';
comment on column pay.webhook_deliveries.status is
  'pending, available (in an inbox and not acknowledged), delivered, failed or cancelled.';
comment on column pay.webhook_deliveries.attempt_count is
  'Attempts begun; also the number of the one under way. In an inbox: how often it was added.';
comment on column pay.webhook_deliveries.attempts is 'Recorded attempts: the first one and the newest ones.';
comment on column pay.webhook_deliveries.next_attempt_at is 'Time of the next attempt, unless the row is leased.';
comment on column pay.webhook_deliveries.leased_until is
  'End of the lease of the dispatcher that has the row; another may take it then. In no index.';
comment on column pay.webhook_deliveries.expired_leases is
  'Leases since the last recorded attempt that expired without a record. From 3 on the delivery has crashed and the count stays.';
comment on column pay.webhook_deliveries.created_at is 'Time of creation.';
comment on column pay.webhook_deliveries.due_at is 'Time of the next attempt by the clock of the sandbox; null: it has no clock of its own.';
comment on column pay.webhook_deliveries.fault is 'The declared fault that changed this delivery; null: none did.';
comment on column pay.webhook_deliveries.fault_attempt is 'The number of the attempt that has the fault; null without a fault.';

-- Only the primary key begins with the environment here. A row that is sought by both parts of its
-- key has then one index to be found by: before the first analyze the planner takes any that begins
-- alike, and reads the whole environment (measured: a poll of the dispatcher went from 2 to 18 ms).
--
-- The dispatcher: due deliveries of an endpoint, except poison deliveries. Only pending rows have a
-- next_attempt_at. The predicate names this column and not the status, so that the planner uses
-- this index for the "due now" query and for no other: before the first analyze it took this index
-- in place of the one below, and each delivery read all due rows (measured: 1 300 µs instead of
-- 30).
create index webhook_deliveries_due
  on pay.webhook_deliveries (endpoint_id, next_attempt_at, subject_id, sequence)
  where next_attempt_at is not null and expired_leases = 0;
comment on index pay.webhook_deliveries_due is
  'pay_internal.lease_due: due deliveries of an endpoint, except poison deliveries.';

-- The dispatcher: poison deliveries, which have expired leases. It leases one at a time.
create index webhook_deliveries_poison
  on pay.webhook_deliveries (endpoint_id, expired_leases, next_attempt_at, subject_id, sequence)
  where next_attempt_at is not null and expired_leases > 0;
comment on index pay.webhook_deliveries_poison is
  'pay_internal.lease_first_poison: deliveries with expired leases, one at a time.';

-- The dispatcher: endpoints that have something pending; is an earlier event of the same payment
-- still being tried?
create index webhook_deliveries_order on pay.webhook_deliveries (endpoint_id, subject_id, sequence)
  where status = 'pending';
comment on index pay.webhook_deliveries_order is
  'pay_internal.blocking_delivery, pay_internal.lease_due: earlier events of the same payment that are still being tried.';

-- Lists with endpoint_id=. It contains the environment because a reset leaves the deliveries of the
-- retired environment under the same endpoint, and a caller can name ids of another environment: a
-- list must not read those rows. The primary key finds the deliveries of an event, and of a payment
-- through its events (pay_internal.deliveries_of).
create index webhook_deliveries_endpoint
  on pay.webhook_deliveries (endpoint_id, environment_id, id);
comment on index pay.webhook_deliveries_endpoint is 'pay_internal.list_column: lists with endpoint_id=.';

-- An advance finds what waits for it, in the order of time. Rows with infinity wait for a clock
-- that stands. Only operations in sandboxes are in the second index; it also finds those that wait
-- by the real time.
create index webhook_deliveries_clock on pay.webhook_deliveries (environment_id, due_at)
  where next_attempt_at = 'infinity';
comment on index pay.webhook_deliveries_clock is
  'pay_internal.next_due: the next attempt that a clock waits for.';

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

create table pay.attempt_log (
  environment_id text collate "C" not null,
  delivery_id text collate "C" not null,
  slot smallint not null,
  attempt integer not null,
  url text not null,
  headers text not null,
  response text,
  response_truncated boolean not null,
  stored_at timestamptz not null,
  -- A delivery has one row in each slot, and a later attempt overwrites it.
  constraint attempt_log_pkey primary key (environment_id, delivery_id, slot),
  constraint attempt_log_slot_in_range check (slot between 0 and 4)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 10000);
comment on table pay.attempt_log is
  'The request of an attempt to deliver an event in a sandbox, and the beginning of its response. The body of the request is that of the event.';
comment on column pay.attempt_log.environment_id is 'The sandbox of the row.';
comment on column pay.attempt_log.delivery_id is 'The delivery.';
comment on column pay.attempt_log.slot is
  'The number of the attempt modulo 5, so that a delivery keeps its newest five.';
comment on column pay.attempt_log.attempt is 'The number of the attempt.';
comment on column pay.attempt_log.url is 'The URL that the request was sent to.';
comment on column pay.attempt_log.headers is 'The headers of the request as a JSON object.';
comment on column pay.attempt_log.response is
  'The first 1 024 bytes of the response, from its status line on; null: there was no response.';
comment on column pay.attempt_log.response_truncated is 'Whether the response had more bytes.';
comment on column pay.attempt_log.stored_at is
  'Time of the database, also in a sandbox with a clock of its own. Retention deletes by it.';

create index attempt_log_stored_at on pay.attempt_log (stored_at);
comment on index pay.attempt_log_stored_at is
  'pay_internal.purge_attempt_log: the oldest rows of all sandboxes.';

create type pay_internal.due_delivery as (
  environment_id text collate "C",
  id text collate "C",
  endpoint_id text collate "C",
  subject_id text collate "C",
  sequence integer,
  event_id text collate "C",
  rank_of_endpoint bigint,
  is_expired boolean
);
comment on type pay_internal.due_delivery is 'A delivery that a poll of the dispatcher has locked.';
comment on column pay_internal.due_delivery.environment_id is 'Its environment.';
comment on column pay_internal.due_delivery.id is 'The delivery.';
comment on column pay_internal.due_delivery.endpoint_id is 'Its endpoint.';
comment on column pay_internal.due_delivery.subject_id is 'The subject of its event.';
comment on column pay_internal.due_delivery.sequence is 'The sequence of its event; null: it waits for no other.';
comment on column pay_internal.due_delivery.event_id is 'Its event.';
comment on column pay_internal.due_delivery.rank_of_endpoint is
  'The poll serves lower ranks first, so that endpoints share its capacity.';
comment on column pay_internal.due_delivery.is_expired is 'Its lease has expired without a record.';

create type pay.leased_delivery as (
  environment_id text collate "C",
  public_id text,
  account text,
  id text collate "C",
  endpoint_id text collate "C",
  event_id text collate "C",
  subject_id text collate "C",
  attempt integer,
  url text,
  secrets text,
  livemode boolean,
  failing_since timestamptz,
  poison boolean,
  crashed boolean,
  body text,
  settings text,
  fault text,
  traceparent text,
  leased_until text
);
comment on type pay.leased_delivery is 'A delivery that the dispatcher has leased and now attempts.';
comment on column pay.leased_delivery.environment_id is 'Its environment.';
comment on column pay.leased_delivery.public_id is 'The public id of the environment, which a reset keeps.';
comment on column pay.leased_delivery.account is 'The account of the environment.';
comment on column pay.leased_delivery.id is 'The delivery.';
comment on column pay.leased_delivery.endpoint_id is 'Its endpoint.';
comment on column pay.leased_delivery.event_id is 'Its event.';
comment on column pay.leased_delivery.subject_id is 'The subject of its event.';
comment on column pay.leased_delivery.attempt is 'The number of the attempt that the lease begins.';
comment on column pay.leased_delivery.url is 'The address of the endpoint.';
comment on column pay.leased_delivery.secrets is 'The secrets of the endpoint, in the form of webhook_endpoints.secrets.';
comment on column pay.leased_delivery.livemode is 'The mode of the environment.';
comment on column pay.leased_delivery.failing_since is
  'webhook_endpoints.failing_since in the time of the dispatcher''s clock.';
comment on column pay.leased_delivery.poison is
  'It has an expired lease, so it may have ended the process of its dispatcher.';
comment on column pay.leased_delivery.crashed is
  'The dispatcher records a crashed attempt under this number and does not send the delivery.';
comment on column pay.leased_delivery.body is 'The event as JSON text.';
comment on column pay.leased_delivery.settings is 'The settings of the sandbox as JSON text; null: it has none.';
comment on column pay.leased_delivery.fault is 'The declared fault of this attempt; null: none.';
comment on column pay.leased_delivery.traceparent is 'events.traceparent of its event.';
comment on column pay.leased_delivery.leased_until is
  'The end of the lease as text. A result names it and the attempt, so that it counts for no other lease.';

do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
