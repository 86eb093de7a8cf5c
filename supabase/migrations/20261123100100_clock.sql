-- Purpose: the clock of a sandbox. pay.sandbox_settings has a row for each sandbox that uses a
-- special feature. Other sandboxes have none (supabase/schemas/sandbox_settings.sql).

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.sandbox_settings (
  environment_id text collate "C" not null,
  version bigint not null,
  offset_ms bigint not null default 0,
  frozen_at timestamptz,
  target_at timestamptz,
  runs_after boolean not null default false,
  is_stopping boolean not null default false,
  did jsonb not null default '{}',
  constraint sandbox_settings_pkey primary key (environment_id),
  constraint sandbox_settings_version_positive check (version > 0),
  -- A clock that runs is never behind the real time.
  constraint sandbox_settings_offset_ms_range check (offset_ms >= 0),
  constraint sandbox_settings_target_stands check (
    target_at is null or (frozen_at is not null and frozen_at <= target_at)
  ),
  -- The latest time of a clock (pay.clock_ceiling).
  constraint sandbox_settings_below_ceiling check (
    greatest(frozen_at, target_at) <= '2200-01-01T00:00:00Z'
  ),
  constraint sandbox_settings_runs_after_target check (not runs_after or target_at is not null)
);
comment on table pay.sandbox_settings is 'The settings of a sandbox that uses special features. Other environments have no row.';
comment on column pay.sandbox_settings.environment_id is 'The sandbox.';
comment on column pay.sandbox_settings.version is 'Changes with each change of the row. A request is decided with the settings of one version.';
comment on column pay.sandbox_settings.offset_ms is 'How far a clock that runs is ahead of the real time, in milliseconds; of one that stands and starts again soon, how far it will be.';
comment on column pay.sandbox_settings.frozen_at is 'The time at which the clock stands; null: it runs.';
comment on column pay.sandbox_settings.target_at is 'The end of an advance that is not complete; null: none is under way.';
comment on column pay.sandbox_settings.runs_after is 'Whether the clock runs again when it reaches target_at.';
comment on column pay.sandbox_settings.is_stopping is 'Whether deliveries or calls can still wait by the real time while the clock stands. The next step of an advance stops them.';
comment on column pay.sandbox_settings.did is 'What the advance under way has done: numbers by name.';

-- The times at which rows of a sandbox with a clock of its own are due, by that clock. The columns
-- that the relay and the worker read have the real time of it, or infinity while the clock stands.
alter table pay.webhook_deliveries add column due_at timestamptz;
comment on column pay.webhook_deliveries.due_at is 'Time of the next attempt by the clock of the sandbox; null: it has no clock of its own.';
alter table pay.provider_calls add column due_at timestamptz;
comment on column pay.provider_calls.due_at is 'When the worker sends the call, by the clock of the sandbox; null: it has no clock of its own.';

-- An advance finds what waits for it, in the order of time. Rows with infinity wait for a clock that
-- stands. Only calls in sandboxes are in the second index; it also finds those that wait by the real
-- time.
create index webhook_deliveries_clock on pay.webhook_deliveries (environment_id, due_at)
  where next_attempt_at = 'infinity';
comment on index pay.webhook_deliveries_clock is
  'pay.next_due: the next attempt that a clock waits for.';
create index provider_calls_clock on pay.provider_calls (environment_id, next_attempt_at, due_at)
  where state = 'pending' and account_id = 'sandbox';
comment on index pay.provider_calls_clock is
  'pay.next_due: the next result that a clock waits for.';

alter table pay.idempotency_keys add column advances_to timestamptz;
comment on column pay.idempotency_keys.advances_to is 'Of a request that advances a clock: the end of its advance while the stored answer is not complete; else null.';

-- The end of an advance completes the answers of those that have begun before it.
create index idempotency_keys_advances on pay.idempotency_keys (environment_id)
  where advances_to is not null;
comment on index pay.idempotency_keys_advances is
  'pay.step_clock: the answers of advances that have begun and not ended.';

alter type pay.claimed_delivery add attribute settings text;
comment on column pay.claimed_delivery.settings is 'The settings of the sandbox as JSON text; null: it has none.';

alter type pay.admission add attribute ahead interval;
comment on column pay.admission.ahead is 'How far the clock of the sandbox is ahead of the real time; null: it has no clock of its own.';
alter type pay.admission add attribute detail text;
comment on column pay.admission.detail is 'For an outdated request the settings of the sandbox as JSON text; null: it has none.';

-- The policy is that of the other tables of tenants (20261120000950_policies.sql).
alter table pay.sandbox_settings enable row level security;
alter table pay.sandbox_settings force row level security;
create policy sandbox_settings_of_environment on pay.sandbox_settings to pay_owner using (
  environment_id = any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])
  or (select current_setting('pay.worker', true)) = 'on'
);

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
