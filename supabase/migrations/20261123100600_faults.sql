-- Purpose: declared faults of sandboxes: a test declares that the next matching request, delivery
-- or call to the simulated provider fails in a certain way (ADR 0051).
--
-- A fault counts down. The row is locked while it is counted, so a fault happens exactly as often
-- as it was declared, however many requests compete for it.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.faults (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  fault text collate "C" not null,
  filter json not null,
  delay_ms integer,
  times integer not null,
  times_left integer not null,
  created_at timestamptz not null,
  constraint faults_pkey primary key (environment_id, id),
  constraint faults_fault_known check (
    kind || ' ' || fault in (
      'request rate_limited', 'request server_error_before', 'request server_error_after',
      'request connection_lost_after', 'request delay', 'delivery duplicate', 'delivery delay',
      'delivery reorder', 'delivery wrong_signature', 'delivery drop_until_recovered',
      'provider timeout', 'provider declined', 'provider failed'
    )
  ),
  constraint faults_delay_has_ms check ((fault = 'delay') = (delay_ms is not null)),
  constraint faults_delay_ms_in_range check (delay_ms between 1 and 10000),
  constraint faults_times_in_range check (times between 1 and 1000),
  constraint faults_times_left_in_range check (times_left between 0 and times)
);
comment on table pay.faults is 'A fault that a test has declared in its sandbox.';
comment on column pay.faults.environment_id is 'The sandbox of the row.';
comment on column pay.faults.id is 'The id in answers; sorts by time.';
comment on column pay.faults.kind is 'The kind of thing that fails: request, delivery or provider ("on" in answers).';
comment on column pay.faults.fault is 'The way in which it fails.';
comment on column pay.faults.filter is 'The conditions that the thing has to match, by name; empty: it matches everything ("where" in answers).';
comment on column pay.faults.delay_ms is 'The duration of a delay in milliseconds; null for other faults.';
comment on column pay.faults.times is 'How often the fault was declared to happen.';
comment on column pay.faults.times_left is 'How often it will still happen ("left" in answers).';
comment on column pay.faults.created_at is 'Time of creation.';

-- The faults that can still happen: of a sandbox, in the order in which they were declared, and of
-- all sandboxes for a turn of the relay.
create index faults_open on pay.faults (kind, environment_id, id) where times_left > 0;
comment on index pay.faults_open is
  'pay.next_fault, pay.give_faults: the faults that can still happen.';

-- The constraints are "not valid", so that this migration reads no delivery. Older ones have no fault.
alter table pay.webhook_deliveries
  add column fault text collate "C",
  add column fault_attempt integer,
  add constraint webhook_deliveries_fault_known check (
    fault in ('duplicate', 'delay', 'reorder', 'wrong_signature', 'drop_until_recovered')
  ) not valid,
  add constraint webhook_deliveries_fault_has_attempt check (
    (fault is null) = (fault_attempt is null)
  ) not valid;
comment on column pay.webhook_deliveries.fault is 'The declared fault that changed this delivery; null: none did.';
comment on column pay.webhook_deliveries.fault_attempt is 'The number of the attempt that has the fault; null without a fault.';

alter type pay.claimed_delivery add attribute fault text;
comment on column pay.claimed_delivery.fault is 'The declared fault of this attempt; null: none.';

-- A function asks for faults only if the settings that it knows name their kind.
alter table pay.sandbox_settings add column fault_kinds text[] not null default '{}';
comment on column pay.sandbox_settings.fault_kinds is 'The kinds of declared faults that can still happen: request, provider. The relay finds those of deliveries itself.';

-- The policy is that of the other tables of tenants (20261120000950_policies.sql).
do $policies$
declare
  v_is_opened constant text := $sql$= any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])$sql$;
  v_is_worker constant text := $sql$(select current_setting('pay.worker', true)) = 'on'$sql$;
begin
  alter table pay.faults enable row level security;
  alter table pay.faults force row level security;
  execute format(
    'create policy faults_of_environment on pay.faults to pay_owner using (environment_id %s or %s)',
    v_is_opened, v_is_worker
  );
end
$policies$;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
