-- Purpose: live providers: the accounts that the operator configures, the operations that the
-- service sends to them, and the provider events that they report.
--
-- The service commits an operation before it sends it, and the id of the operation is the
-- provider's idempotency key. It stores a provider event before it applies it. The reference of a
-- provider event is unique within its account, so no provider event is applied twice.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.provider_accounts (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  connector text collate "C" not null,
  settings jsonb not null,
  secret_name text collate "C",
  notification_secret_names text[] not null,
  status text collate "C" not null,
  created_at timestamptz not null,
  disabled_at timestamptz,
  ignored_notifications bigint not null default 0,
  bridge_token_hash text collate "C",
  constraint provider_accounts_pkey primary key (environment_id, id),
  constraint provider_accounts_connector_known check (connector in (
    /* connectors */ 'stripe', 'evm', 'bank'
  )),
  constraint provider_accounts_secret_name_form check (secret_name ~ '^PROVIDER_[A-Z0-9_]{1,60}$'),
  -- Two during a rotation.
  constraint provider_accounts_notification_secret_names_form check (
    notification_secret_names::text
      ~ '^\{(PROVIDER_[A-Z0-9_]{1,60}(,PROVIDER_[A-Z0-9_]{1,60})?)?\}$'
  ),
  constraint provider_accounts_bridge_token_hash_form check (
    bridge_token_hash ~ '^[0-9a-f]{64}$'
  ),
  constraint provider_accounts_status_known check (status in ('enabled', 'disabled')),
  constraint provider_accounts_disabled_has_time check (
    (status = 'disabled') = (disabled_at is not null)
  )
);
comment on table pay.provider_accounts is 'An account at a provider, which the operator has configured.';
comment on column pay.provider_accounts.environment_id is 'The live environment of the account.';
comment on column pay.provider_accounts.id is 'The id (pac_…). It is part of the address for notifications.';
comment on column pay.provider_accounts.connector is 'The code that speaks to the provider.';
comment on column pay.provider_accounts.settings is 'Settings of the connector, such as base_url. No secrets.';
comment on column pay.provider_accounts.secret_name is 'The name of the variable with the API secret. The database never gets its value.';
comment on column pay.provider_accounts.notification_secret_names is 'The names of the variables with the secrets that sign notifications, newest first.';
comment on column pay.provider_accounts.status is 'enabled, or disabled: the account takes no new payments and transfers.';
comment on column pay.provider_accounts.created_at is 'Time of creation.';
comment on column pay.provider_accounts.disabled_at is 'Time at which the operator disabled it; null: enabled.';
comment on column pay.provider_accounts.bridge_token_hash is 'SHA-256 in hex of the token with which a bridge carries the files of a bank; null: none.';
comment on column pay.provider_accounts.ignored_notifications is 'Number of signed notifications about other accounts of the provider, which changed nothing.';

create index provider_accounts_id on pay.provider_accounts (id);
comment on index pay.provider_accounts_id is
  'pay.read_provider_account: the account of a notification, whose path names no environment.';

create table pay.provider_methods (
  environment_id text collate "C" not null,
  method_kind text collate "C" not null,
  currency text collate "C" not null,
  account_id text collate "C" not null,
  -- One account for each kind and currency.
  constraint provider_methods_pkey primary key (environment_id, method_kind, currency),
  constraint provider_methods_currency_form check (currency ~ '^([A-Z]{3,5}|\*)$'),
  constraint provider_methods_kind_known check (method_kind in (
    /* method kinds */ 'card', 'sepa', 'swift', 'stablecoin'
  )),
  constraint provider_methods_account_fkey foreign key (environment_id, account_id)
    references pay.provider_accounts (environment_id, id)
);
comment on table pay.provider_methods is 'The enabled account that serves a kind of payment method.';
comment on column pay.provider_methods.environment_id is 'The environment of the account.';
comment on column pay.provider_methods.method_kind is 'The kind of payment method, as in responses.';
comment on column pay.provider_methods.currency is 'The currency that it serves; "*": each for which there is no other.';
comment on column pay.provider_methods.account_id is 'The account.';

comment on constraint provider_methods_account_fkey on pay.provider_methods is
  'No index of its own: the primary key begins with the environment, which has few rows.';

create table pay.provider_operations (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  account_id text collate "C" not null,
  connector text collate "C" not null,
  op text collate "C" not null,
  subject_id text collate "C" not null,
  refund_id text collate "C",
  amount_minor bigint not null,
  currency text collate "C" not null,
  request jsonb not null,
  state text collate "C" not null,
  attempts integer not null,
  created_at timestamptz not null,
  first_sent_at timestamptz,
  next_attempt_at timestamptz,
  leased_until timestamptz,
  next_sync_at timestamptz,
  settled_at timestamptz,
  may_repeat boolean not null,
  needs_operator boolean not null default false,
  provider_reference text collate "C",
  last_reply text,
  api_key_id text collate "C" not null,
  idempotency_key text collate "C",
  request_id text collate "C" not null,
  decline_is_error boolean not null,
  due_at timestamptz,
  traceparent text collate "C",
  constraint provider_operations_pkey primary key (environment_id, id),
  constraint provider_operations_op_known check (
    op in ('authorize', 'capture', 'cancel', 'refund', 'transfer', 'expire', 'abandon',
      'dispute_evidence', 'dispute_accept', 'dispute_expire', 'return', 'detach')
  ),
  constraint provider_operations_refund_has_id check ((op = 'refund') = (refund_id is not null)),
  constraint provider_operations_amount_minor_positive check (
    amount_minor > 0 or amount_minor = 0 and op in ('authorize', 'abandon', 'cancel', 'detach')
  ),
  constraint provider_operations_state_known check (state in ('pending', 'settled', 'operator')),
  constraint provider_operations_pending_has_next check (
    (state = 'pending') = (next_attempt_at is not null)
    and (state = 'pending' or leased_until is null)
  ),
  constraint provider_operations_settled_has_time check (
    (state = 'settled') = (settled_at is not null)
  )
);
comment on table pay.provider_operations is 'An operation of a provider, committed before it is sent.';
comment on column pay.provider_operations.environment_id is 'The environment of the row.';
comment on column pay.provider_operations.id is 'The id (pc_…), which is the provider''s idempotency key.';
comment on column pay.provider_operations.account_id is 'The account that gets the operation; "sandbox" in a test environment.';
comment on column pay.provider_operations.connector is 'The connector of the account; "sandbox" in a test environment.';
comment on column pay.provider_operations.op is 'The kind of operation.';
comment on column pay.provider_operations.subject_id is 'The payment or transfer.';
comment on column pay.provider_operations.refund_id is 'The refund of op refund; null for other operations.';
comment on column pay.provider_operations.amount_minor is 'The amount of the operation in minor units.';
comment on column pay.provider_operations.currency is 'ISO 4217 code.';
comment on column pay.provider_operations.request is 'The rest of the request, such as the token and the return URL. Never a card number.';
comment on column pay.provider_operations.state is 'pending, settled, or operator: the result is unknown and the service has given up.';
comment on column pay.provider_operations.attempts is 'How often the operation was leased to be sent.';
comment on column pay.provider_operations.created_at is 'Time of the reservation.';
comment on column pay.provider_operations.first_sent_at is 'Time of the first lease; null: never sent.';
comment on column pay.provider_operations.next_attempt_at is 'When the worker sends or syncs again; null unless pending.';
comment on column pay.provider_operations.leased_until is 'End of the lease of the request or worker that sends the operation; null: nobody sends it.';
comment on column pay.provider_operations.next_sync_at is 'When the worker syncs the provider''s object next; null: the result is final or simulated.';
comment on column pay.provider_operations.settled_at is 'Time at which the result was recorded.';
comment on column pay.provider_operations.may_repeat is 'False: the worker only syncs, because the provider would replay its reply or do the operation again.';
comment on column pay.provider_operations.needs_operator is 'True: the service asks again by itself, but only the operator can end the wait, for example with money for a payout.';
comment on column pay.provider_operations.provider_reference is 'The provider''s id of the payment or transfer; null until the provider has responded.';
comment on column pay.provider_operations.last_reply is 'The last reply without a result, for the operator.';
comment on column pay.provider_operations.api_key_id is 'The API key of the request.';
comment on column pay.provider_operations.idempotency_key is 'The idempotency key of the request, whose response the record stores; null: the operation follows from the result of another one.';
comment on column pay.provider_operations.request_id is 'The request.';
comment on column pay.provider_operations.decline_is_error is 'True: a decline returns 402.';
comment on column pay.provider_operations.due_at is 'When the worker sends the operation, by the clock of the sandbox; null: it has no clock of its own.';
comment on column pay.provider_operations.traceparent is 'The place in a trace from which the request came, as in events.';

create unique index provider_operations_exclusive on pay.provider_operations (environment_id,
  subject_id)
  where state = 'pending' and op in ('authorize', 'capture', 'cancel');
comment on index pay.provider_operations_exclusive is
  'Unique: each of these operations depends on the result of the one before, so only one is pending.';

create index provider_operations_due on pay.provider_operations (next_attempt_at)
  where state = 'pending';
comment on index pay.provider_operations_due is 'pay_internal.lease_work: due operations.';

create index provider_operations_sync on pay.provider_operations (next_sync_at)
  where next_sync_at is not null;
comment on index pay.provider_operations_sync is 'pay_internal.lease_work: the objects to sync.';

create index provider_operations_unsettled on pay.provider_operations (first_sent_at)
  where state <> 'settled';
comment on index pay.provider_operations_unsettled is
  'pay.read_providers, pay.list_unsettled_operations: operations without a result.';

create index provider_operations_subject on pay.provider_operations (subject_id, environment_id,
  id);
comment on index pay.provider_operations_subject is
  'pay_internal.has_event_operation, pay_internal.find_providers: the operations of a payment or transfer.';

create index provider_operations_reference on pay.provider_operations (provider_reference,
  account_id)
  where provider_reference is not null;
comment on index pay.provider_operations_reference is
  'pay_internal.find_event_subject, pay.find_bank_references, pay.read_challenge: the operation with an id of the provider.';

create index provider_operations_clock on pay.provider_operations (environment_id, next_attempt_at,
  due_at)
  where state = 'pending' and account_id = 'sandbox';
comment on index pay.provider_operations_clock is
  'pay_internal.next_due: the next result that a clock waits for.';

create table pay.provider_events (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  reference text collate "C" not null,
  op text collate "C" not null,
  state text collate "C" not null,
  subject_id text collate "C",
  refund_id text collate "C",
  provider_reference text collate "C",
  amount_minor bigint not null,
  currency text collate "C" not null,
  happened_at timestamptz not null,
  received_at timestamptz not null,
  body jsonb not null,
  leased_until timestamptz,
  outcome text collate "C",
  exception text,
  handled_at timestamptz,
  booked_minor bigint not null default 0,
  dismissed_at timestamptz,
  dismissed_reason text,
  constraint provider_events_pkey primary key (environment_id, account_id, reference),
  constraint provider_events_outcome_known check (
    outcome in ('applied', 'ignored', 'exception', 'unmatched')
  ),
  constraint provider_events_handled_has_time check (
    (outcome is null) = (handled_at is null)
  ),
  constraint provider_events_exception_has_text check (
    case outcome
      when 'exception' then exception is not null
      when 'unmatched' then true
      when 'applied' then true
      else exception is null
    end
  ),
  -- Null: a provider event that was unmatched and is handled again.
  constraint provider_events_booked_when_applied check (
    booked_minor = 0 or coalesce(outcome, 'unmatched') in ('applied', 'unmatched')
  ),
  constraint provider_events_dismissed_has_reason check (
    (dismissed_at is null) = (dismissed_reason is null)
  )
);
comment on table pay.provider_events is 'A report of a provider, stored before it is applied.';
comment on column pay.provider_events.environment_id is 'The environment of the account.';
comment on column pay.provider_events.account_id is 'The account that reported it; "sandbox" in a test environment.';
comment on column pay.provider_events.reference is 'Object and state at the provider: unique in the account.';
comment on column pay.provider_events.op is 'The kind of the provider event: an operation, verification of a payee, dispute, fee or payout.';
comment on column pay.provider_events.state is 'The state that the provider event reports.';
comment on column pay.provider_events.subject_id is 'The payment or transfer; null: unknown, or a payout.';
comment on column pay.provider_events.refund_id is 'The refund; null for other provider events.';
comment on column pay.provider_events.provider_reference is 'The provider''s id of the payment or transfer.';
comment on column pay.provider_events.amount_minor is 'Amount in minor units.';
comment on column pay.provider_events.currency is 'ISO 4217 code.';
comment on column pay.provider_events.happened_at is 'The time at the provider.';
comment on column pay.provider_events.received_at is 'The time at which the provider event was first stored.';
comment on column pay.provider_events.body is 'The whole provider event.';
comment on column pay.provider_events.leased_until is 'End of the lease of the worker that handles it; null: nobody does.';
comment on column pay.provider_events.outcome is 'applied, ignored (it changes nothing), exception, unmatched (no such subject), or null: not handled yet.';
comment on column pay.provider_events.exception is 'The reason of an exception, for the operator.';
comment on column pay.provider_events.handled_at is 'Time of the outcome.';
comment on column pay.provider_events.booked_minor is 'The signed change of the balance at the provider that the ledger booked for it.';
comment on column pay.provider_events.dismissed_at is 'Time at which the operator dismissed the exception or the unmatched provider event; null: it waits for him.';
comment on column pay.provider_events.dismissed_reason is 'The reason of the operator.';

create index provider_events_open on pay.provider_events (account_id, received_at)
  where outcome is null;
comment on index pay.provider_events_open is 'pay_internal.lease_provider_events: the provider events to handle.';

create index provider_events_reported on pay.provider_events (outcome, received_at)
  where (outcome in ('exception', 'unmatched') or exception is not null) and dismissed_at is null;
comment on index pay.provider_events_reported is
  'pay.list_reported_events, pay.read_providers: provider events for the operator.';

create index provider_events_unmatched
  on pay.provider_events (provider_reference, account_id, environment_id)
  where outcome = 'unmatched';
comment on index pay.provider_events_unmatched is
  'pay_internal.reopen_provider_events: the provider events that came before the operation that learns their id.';

create index provider_events_subject on pay.provider_events (subject_id, environment_id);
comment on index pay.provider_events_subject is
  'pay_internal.final_minor, pay.watched_deposits, pay.open_payouts, pay_internal.note_payee_check, pay_internal.reopen_bank_entries: the provider events of a payment or transfer.';

create index provider_events_received on pay.provider_events (environment_id, received_at);
comment on index pay.provider_events_received is 'pay_internal.purge_old: the old provider events of sandboxes.';

create table pay.provider_cursors (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  cursor jsonb,
  polled_at timestamptz,
  totals_cursor jsonb,
  totals_day date,
  leased_until timestamptz,
  stalled_since timestamptz,
  last_error text,
  constraint provider_cursors_pkey primary key (environment_id, account_id),
  constraint provider_cursors_stalled_has_error check (
    (stalled_since is null) = (last_error is null)
  )
);
comment on table pay.provider_cursors is 'How far the worker has read an account.';
comment on column pay.provider_cursors.environment_id is 'The environment of the account.';
comment on column pay.provider_cursors.account_id is 'The account.';
comment on column pay.provider_cursors.cursor is 'Where the next poll begins, in the form of the connector; null: at the present.';
comment on column pay.provider_cursors.polled_at is 'Time of the last complete poll; null: none.';
comment on column pay.provider_cursors.totals_cursor is 'The place and the sums so far in the day after totals_day, in the form of the connector; null: at its beginning.';
comment on column pay.provider_cursors.totals_day is 'The last day (UTC) whose totals are read; null: none.';
comment on column pay.provider_cursors.leased_until is 'End of the lease of the worker that reads the account; null: none does.';
comment on column pay.provider_cursors.stalled_since is 'Time of the first failed poll after the last page that was read; null: the last poll worked.';
comment on column pay.provider_cursors.last_error is 'The message of the last failed poll, for the operator; null: the last poll worked.';

create table pay.provider_totals (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  day date not null,
  currency text collate "C" not null,
  provider_minor bigint not null,
  read_at timestamptz not null,
  balances jsonb,
  constraint provider_totals_pkey primary key (environment_id, account_id, day, currency)
);
comment on table pay.provider_totals is 'The movements of a day at a provider, in one currency.';
comment on column pay.provider_totals.environment_id is 'The environment of the account.';
comment on column pay.provider_totals.account_id is 'The account.';
comment on column pay.provider_totals.day is 'The day in UTC.';
comment on column pay.provider_totals.currency is 'ISO 4217 code.';
comment on column pay.provider_totals.provider_minor is 'Sum of all movements of the balance in minor units, after fees; payouts are negative.';
comment on column pay.provider_totals.read_at is 'Time at which the worker read it.';
comment on column pay.provider_totals.balances is 'For each statement of a bank that ends on this day, in the order of their import: the opening and closing balances in minor units, its file and the day of its opening. Null: there is none.';

-- A piece of work for the worker (pay.lease_provider_work).
create type pay.provider_work as (
  kind text,
  environment_id text collate "C",
  livemode boolean,
  account json,
  operation json,
  event json,
  subject_body text,
  subject_sequence integer,
  refund_body text,
  cursor json,
  day date
);
comment on type pay.provider_work is 'A piece of work that a worker has leased.';
comment on column pay.provider_work.kind is 'operation, provider event, sync, poll or totals.';
comment on column pay.provider_work.environment_id is 'The environment of the account.';
comment on column pay.provider_work.livemode is 'The mode of the environment.';
comment on column pay.provider_work.account is 'The account, with the names of its secrets.';
comment on column pay.provider_work.operation is 'The operation to send or to sync; for a provider event the operation that it can settle, or null.';
comment on column pay.provider_work.event is 'The provider event to handle.';
comment on column pay.provider_work.subject_body is 'The payment or transfer as JSON text; null: there is none.';
comment on column pay.provider_work.subject_sequence is 'The sequence of the payment or transfer.';
comment on column pay.provider_work.refund_body is 'The refund as JSON text; null: there is none.';
comment on column pay.provider_work.cursor is 'Where a poll, or the reading of totals, goes on; null: at its beginning.';
comment on column pay.provider_work.day is 'The day whose totals to read.';

do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
