-- The database as the migrations make it, without the bodies of functions and the queries of views,
-- which are in supabase/schemas. "deno task schema" writes it, "deno task schema --check" and the
-- tests compare it. This is a description: do not edit it, do not run it.

-- roles
create role pay_api nologin nosuperuser nobypassrls nocreaterole nocreatedb;
create role pay_operator nologin nosuperuser nobypassrls nocreaterole nocreatedb;
create role pay_owner nologin nosuperuser nobypassrls nocreaterole nocreatedb;

-- schema pay
create schema pay authorization pay_owner;
comment on schema pay is 'Payments service: tables and their entry functions. Exposed by no API; callers hold EXECUTE only.';
grant usage on schema pay to pay_api;
grant usage on schema pay to pay_operator;
alter default privileges for role pay_owner on type "f": {pay_owner=X/pay_owner};

-- type pay.admission
create type pay.admission as (
  n integer,
  outcome text,
  api_key_id text collate "C",
  environment_id text collate "C",
  at timestamp with time zone,
  remaining integer,
  status smallint,
  body text,
  ahead interval,
  detail text
);
alter type pay.admission owner to pay_owner;
comment on type pay.admission is 'A request of a list: whether it may go on, and its answer.';
comment on column pay.admission.n is 'The place of the request in the list, from 1.';
comment on column pay.admission.outcome is '"ok" while the request may go on.';
comment on column pay.admission.api_key_id is 'Null if no valid key was presented.';
comment on column pay.admission.environment_id is 'The environment that the key opens; null without a valid key.';
comment on column pay.admission.at is 'The time of the request.';
comment on column pay.admission.remaining is 'Requests that the key and its environment have left after this one, the smaller; null without a limit.';
comment on column pay.admission.status is 'HTTP status of the answer, if the database knows it.';
comment on column pay.admission.body is 'JSON text of the answer, if the database knows it.';
comment on column pay.admission.ahead is 'How far the clock of the sandbox is ahead of the real time; null: it has no clock of its own.';
comment on column pay.admission.detail is 'For an outdated request the settings of the sandbox as JSON text; null: it has none.';

-- table pay.api_key_secrets
create table pay.api_key_secrets (
  hash bytea not null,
  api_key_id text collate "C" not null,
  environment_id text collate "C" not null,
  livemode boolean not null,
  prefix text not null,
  last_four text not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  ends_at timestamp with time zone,
  constraint api_key_secrets_pkey PRIMARY KEY (hash),
  constraint api_key_secrets_api_key_fkey FOREIGN KEY (api_key_id) REFERENCES pay.api_keys(id),
  constraint api_key_secrets_environment_fkey FOREIGN KEY (environment_id, livemode) REFERENCES pay.environments(id, livemode),
  constraint api_key_secrets_hash_length CHECK ((length(hash) = 32)),
  constraint api_key_secrets_last_four_length CHECK ((length(last_four) = 4)),
  constraint api_key_secrets_prefix_tells_mode CHECK ((prefix ~ (('^[a-z][a-z0-9]{0,15}_'::text ||
CASE
    WHEN livemode THEN 'live'::text
    ELSE 'test'::text
END) || '_$'::text)))
);
alter table pay.api_key_secrets owner to pay_owner;
comment on table pay.api_key_secrets is 'A secret of an API key, as a hash. A rotation adds one and lets the older ones expire.';
comment on column pay.api_key_secrets.hash is 'SHA-256 of the whole key text; the text itself is stored nowhere.';
comment on column pay.api_key_secrets.api_key_id is 'The key of the secret.';
comment on column pay.api_key_secrets.environment_id is 'The environment of the key.';
comment on column pay.api_key_secrets.livemode is 'The mode of the environment.';
comment on column pay.api_key_secrets.prefix is 'Shown to tell keys apart: sk_test_ or sk_live_. Agrees with livemode.';
comment on column pay.api_key_secrets.last_four is 'The last four characters, to recognise the secret.';
comment on column pay.api_key_secrets.created_at is 'Time of creation.';
comment on column pay.api_key_secrets.expires_at is 'Time at which the secret ends: the end of its overlap or of the key, whichever is earlier.';
comment on column pay.api_key_secrets.revoked_at is 'Time of revocation; null: not revoked.';
comment on column pay.api_key_secrets.last_used_at is 'Last use; written at most once an hour.';
comment on column pay.api_key_secrets.ends_at is 'The real time at which the secret ends at the latest: at its expiry, or with its disposable sandbox; null: it does not end.';
CREATE INDEX api_key_secrets_api_key ON pay.api_key_secrets USING btree (api_key_id);
CREATE INDEX api_key_secrets_environment ON pay.api_key_secrets USING btree (environment_id);
alter table pay.api_key_secrets enable row level security;
alter table pay.api_key_secrets force row level security;
create policy api_key_secrets_presented on pay.api_key_secrets as permissive for all to pay_owner
  using (((hash = ANY (( SELECT (NULLIF(current_setting('pay.key_hashes'::text, true), ''::text))::bytea[] AS "nullif")::bytea[])) OR (environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.api_keys
create table pay.api_keys (
  id text collate "C" not null,
  environment_id text collate "C" not null,
  livemode boolean not null,
  name text not null,
  scopes text[],
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  ends_at timestamp with time zone,
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_environment_fkey FOREIGN KEY (environment_id, livemode) REFERENCES pay.environments(id, livemode),
  constraint api_keys_id_form CHECK ((id ~ '^key_[0-9a-z]{26}$'::text)),
  constraint api_keys_name_length CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint api_keys_scopes_known CHECK ((scopes <@ ARRAY['payments:read'::text, 'payments:write'::text, 'refunds:write'::text, 'transfers:read'::text, 'transfers:write'::text, 'webhooks:read'::text, 'webhooks:write'::text, 'events:read'::text, 'ledger:read'::text, 'keys:write'::text, 'sandbox:write'::text]))
);
alter table pay.api_keys owner to pay_owner;
comment on table pay.api_keys is 'An API key: a name, its scopes, and one or more secrets. The scope of idempotency.';
comment on column pay.api_keys.id is 'The id in answers.';
comment on column pay.api_keys.environment_id is 'The environment that the key opens.';
comment on column pay.api_keys.livemode is 'The mode of the environment.';
comment on column pay.api_keys.name is 'Name for people.';
comment on column pay.api_keys.scopes is 'Operations that the key allows; null: all.';
comment on column pay.api_keys.created_at is 'Time of creation.';
comment on column pay.api_keys.expires_at is 'Time at which the key and its secrets end; null: never.';
comment on column pay.api_keys.revoked_at is 'Time of revocation; null: not revoked.';
comment on column pay.api_keys.last_used_at is 'Last use of the secrets that have been deleted; exact to the hour.';
comment on column pay.api_keys.ends_at is 'The real time at which the key and its secrets end at the latest: at its expiry, or with its disposable sandbox; null: it does not end.';
CREATE INDEX api_keys_environment ON pay.api_keys USING btree (environment_id, id);
alter table pay.api_keys enable row level security;
alter table pay.api_keys force row level security;
create policy api_keys_of_environment on pay.api_keys as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.chain_payouts
create table pay.chain_payouts (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  call_id text collate "C" not null,
  destination text collate "C" not null,
  nonce bigint,
  tx_hashes text[] default '{}'::text[] not null,
  first_fee bigint,
  max_fee bigint,
  priority_fee bigint,
  sent_at timestamp with time zone,
  exported_at timestamp with time zone,
  constraint chain_payouts_pkey PRIMARY KEY (environment_id, call_id),
  constraint chain_payouts_sent_has_fees CHECK ((((sent_at IS NULL) = (max_fee IS NULL)) AND ((max_fee IS NULL) = (first_fee IS NULL)) AND ((max_fee IS NULL) = (priority_fee IS NULL)) AND ((max_fee IS NULL) OR (nonce IS NOT NULL)))),
  constraint chain_payouts_signed_once CHECK (((exported_at IS NULL) OR (nonce IS NULL)))
);
alter table pay.chain_payouts owner to pay_owner;
comment on table pay.chain_payouts is 'A refund or transfer that is sent as a transaction on a chain. The row lives as long as its call.';
comment on column pay.chain_payouts.environment_id is 'The environment of the call.';
comment on column pay.chain_payouts.account_id is 'The account of the chain.';
comment on column pay.chain_payouts.call_id is 'The call of the refund or transfer.';
comment on column pay.chain_payouts.destination is 'The address that receives the money.';
comment on column pay.chain_payouts.nonce is 'The nonce of its transaction. It never changes, so that a repeated transaction replaces the first; null: none yet.';
comment on column pay.chain_payouts.tx_hashes is 'Hashes that the signer has returned. At most one of them is in a block.';
comment on column pay.chain_payouts.first_fee is 'Maximum fee per unit of gas of the first transaction, in wei; null: nothing was sent.';
comment on column pay.chain_payouts.max_fee is 'The same for the last transaction.';
comment on column pay.chain_payouts.priority_fee is 'Maximum priority fee per unit of gas of the last transaction, in wei.';
comment on column pay.chain_payouts.sent_at is 'Time of the last transaction with a new fee; null: nothing was sent.';
comment on column pay.chain_payouts.exported_at is 'Time of the last export for people to sign; null: it was not exported.';
CREATE INDEX chain_payouts_account ON pay.chain_payouts USING btree (account_id, call_id);
alter table pay.chain_payouts enable row level security;
alter table pay.chain_payouts force row level security;
create policy chain_payouts_of_environment on pay.chain_payouts as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- type pay.claimed_delivery
create type pay.claimed_delivery as (
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
  failing_since timestamp with time zone,
  suspect boolean,
  crashed boolean,
  body text,
  settings text,
  fault text
);
alter type pay.claimed_delivery owner to pay_owner;
comment on type pay.claimed_delivery is 'A delivery that the relay has claimed and now attempts.';
comment on column pay.claimed_delivery.environment_id is 'Its environment.';
comment on column pay.claimed_delivery.public_id is 'The public id of the environment, which a reset keeps.';
comment on column pay.claimed_delivery.account is 'The account of the environment.';
comment on column pay.claimed_delivery.id is 'The delivery.';
comment on column pay.claimed_delivery.endpoint_id is 'Its endpoint.';
comment on column pay.claimed_delivery.event_id is 'Its event.';
comment on column pay.claimed_delivery.subject_id is 'The subject of its event.';
comment on column pay.claimed_delivery.attempt is 'The number of the attempt that the claim begins.';
comment on column pay.claimed_delivery.url is 'The address of the endpoint.';
comment on column pay.claimed_delivery.secrets is 'The secrets of the endpoint, in the form of webhook_endpoints.secrets.';
comment on column pay.claimed_delivery.livemode is 'The mode of the environment.';
comment on column pay.claimed_delivery.failing_since is 'webhook_endpoints.failing_since in the time of the relay''s clock.';
comment on column pay.claimed_delivery.suspect is 'It has a lost claim, so it may have ended the process of its relay.';
comment on column pay.claimed_delivery.crashed is 'The relay records a crashed attempt under this number and does not send the delivery.';
comment on column pay.claimed_delivery.body is 'The event as JSON text.';
comment on column pay.claimed_delivery.settings is 'The settings of the sandbox as JSON text; null: it has none.';
comment on column pay.claimed_delivery.fault is 'The declared fault of this attempt; null: none.';

-- table pay.delivery_exchanges
create table pay.delivery_exchanges (
  environment_id text collate "C" not null,
  delivery_id text collate "C" not null,
  slot smallint not null,
  attempt integer not null,
  url text not null,
  headers text not null,
  answer text,
  answer_truncated boolean not null,
  kept_at timestamp with time zone not null,
  constraint delivery_exchanges_pkey PRIMARY KEY (environment_id, delivery_id, slot),
  constraint delivery_exchanges_slot_in_range CHECK (((slot >= 0) AND (slot <= 4)))
);
alter table pay.delivery_exchanges owner to pay_owner;
comment on table pay.delivery_exchanges is 'The request of an attempt to deliver an event in a sandbox, and the beginning of its answer. The body of the request is that of the event.';
comment on column pay.delivery_exchanges.environment_id is 'The sandbox of the row.';
comment on column pay.delivery_exchanges.delivery_id is 'The delivery.';
comment on column pay.delivery_exchanges.slot is 'The number of the attempt modulo 5, so that a delivery keeps its newest five.';
comment on column pay.delivery_exchanges.attempt is 'The number of the attempt.';
comment on column pay.delivery_exchanges.url is 'The URL that the request was sent to.';
comment on column pay.delivery_exchanges.headers is 'The headers of the request as a JSON object.';
comment on column pay.delivery_exchanges.answer is 'The first 1 024 bytes of the answer, from its status line on; null: there was no answer.';
comment on column pay.delivery_exchanges.answer_truncated is 'Whether the answer had more bytes.';
comment on column pay.delivery_exchanges.kept_at is 'Time of the database, also in a sandbox with a clock of its own. Retention deletes by it.';
CREATE INDEX delivery_exchanges_kept_at ON pay.delivery_exchanges USING btree (kept_at);
alter table pay.delivery_exchanges enable row level security;
alter table pay.delivery_exchanges force row level security;
create policy delivery_exchanges_of_environment on pay.delivery_exchanges as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.deposit_addresses
create table pay.deposit_addresses (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  call_id text collate "C" not null,
  payment_id text collate "C" not null,
  xpub_index bigint not null,
  expires_at timestamp with time zone not null,
  watch_until timestamp with time zone,
  constraint deposit_addresses_pkey PRIMARY KEY (environment_id, call_id),
  constraint deposit_addresses_index_once UNIQUE (environment_id, account_id, xpub_index),
  constraint deposit_addresses_in_range CHECK (((xpub_index >= 0) AND (xpub_index <= 2147483647)))
);
alter table pay.deposit_addresses owner to pay_owner;
comment on table pay.deposit_addresses is 'The index of a payment''s address below the extended public key of its account. The row lives as long as the payment.';
comment on column pay.deposit_addresses.environment_id is 'The environment of the payment.';
comment on column pay.deposit_addresses.account_id is 'The account whose extended public key the address comes from.';
comment on column pay.deposit_addresses.call_id is 'The call that asked for the address. Its provider_reference is the address.';
comment on column pay.deposit_addresses.payment_id is 'The payment.';
comment on column pay.deposit_addresses.xpub_index is 'The index of the address, from pay.xpub_counters.';
comment on column pay.deposit_addresses.expires_at is 'The payer can send until then.';
comment on column pay.deposit_addresses.watch_until is 'The worker watches for late money until then; null: the watch is over.';
CREATE INDEX deposit_addresses_expiry ON pay.deposit_addresses USING btree (account_id, expires_at);
CREATE INDEX deposit_addresses_watch_until ON pay.deposit_addresses USING btree (watch_until) WHERE (watch_until IS NOT NULL);
CREATE INDEX deposit_addresses_watched ON pay.deposit_addresses USING btree (account_id, xpub_index) WHERE (watch_until IS NOT NULL);
alter table pay.deposit_addresses enable row level security;
alter table pay.deposit_addresses force row level security;
create policy deposit_addresses_of_environment on pay.deposit_addresses as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.disputes
create table pay.disputes (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  payment_id text collate "C" not null,
  status text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  provider_reference text collate "C",
  created_at timestamp with time zone not null,
  body text not null,
  constraint disputes_pkey PRIMARY KEY (environment_id, id),
  constraint disputes_amount_minor_positive CHECK ((amount_minor > 0)),
  constraint disputes_status_known CHECK ((status = ANY (ARRAY['needs_response'::text, 'under_review'::text, 'won'::text, 'lost'::text])))
);
alter table pay.disputes owner to pay_owner;
comment on table pay.disputes is 'A payment that the payer has charged back.';
comment on column pay.disputes.environment_id is 'The environment of the row.';
comment on column pay.disputes.id is 'The id in answers (dp_…); sorts by time.';
comment on column pay.disputes.payment_id is 'The payment that is disputed.';
comment on column pay.disputes.status is 'Status, as in answers.';
comment on column pay.disputes.amount_minor is 'Amount in minor units.';
comment on column pay.disputes.currency is 'Currency of the payment.';
comment on column pay.disputes.provider_reference is 'The provider''s id of the dispute; null in a sandbox.';
comment on column pay.disputes.created_at is 'Time of creation.';
comment on column pay.disputes.body is 'The dispute as JSON text, as it is answered.';
CREATE INDEX disputes_payment ON pay.disputes USING btree (payment_id, environment_id, id);
CREATE INDEX disputes_status ON pay.disputes USING btree (status, environment_id, id);
CREATE UNIQUE INDEX disputes_current ON pay.disputes USING btree (environment_id, payment_id) WHERE (status <> 'won'::text);
alter table pay.disputes enable row level security;
alter table pay.disputes force row level security;
create policy disputes_of_environment on pay.disputes as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- type pay.due_delivery
create type pay.due_delivery as (
  environment_id text collate "C",
  id text collate "C",
  endpoint_id text collate "C",
  subject_id text collate "C",
  sequence integer,
  event_id text collate "C",
  rank_of_endpoint bigint,
  is_lost boolean
);
alter type pay.due_delivery owner to pay_owner;
comment on type pay.due_delivery is 'A delivery that a turn of the relay has locked.';
comment on column pay.due_delivery.environment_id is 'Its environment.';
comment on column pay.due_delivery.id is 'The delivery.';
comment on column pay.due_delivery.endpoint_id is 'Its endpoint.';
comment on column pay.due_delivery.subject_id is 'The subject of its event.';
comment on column pay.due_delivery.sequence is 'The sequence of its event; null: it waits for no other.';
comment on column pay.due_delivery.event_id is 'Its event.';
comment on column pay.due_delivery.rank_of_endpoint is 'The turn serves lower ranks first, so that endpoints share its places.';
comment on column pay.due_delivery.is_lost is 'Its lease has expired without a record.';

-- table pay.environments
create table pay.environments (
  id text collate "C" not null,
  public_id text collate "C" not null,
  account text not null,
  livemode boolean not null,
  name text not null,
  created_at timestamp with time zone default now() not null,
  retired_at timestamp with time zone,
  ends_at timestamp with time zone,
  constraint environments_pkey PRIMARY KEY (id),
  constraint environments_id_livemode_key UNIQUE (id, livemode),
  constraint environments_account_length CHECK (((length(account) >= 1) AND (length(account) <= 100))),
  constraint environments_id_form CHECK ((id ~ '^env_[0-9a-z]{26}$'::text)),
  constraint environments_live_has_no_end CHECK (((NOT livemode) OR (ends_at IS NULL))),
  constraint environments_live_stays CHECK (((NOT livemode) OR ((retired_at IS NULL) AND (id = public_id)))),
  constraint environments_name_length CHECK (((length(name) >= 1) AND (length(name) <= 100)))
);
alter table pay.environments owner to pay_owner;
comment on table pay.environments is 'A data space: one live and any number of sandboxes per account.';
comment on column pay.environments.id is 'The first column of every row of a tenant. A reset gives the keys a new one.';
comment on column pay.environments.public_id is 'The id that operators see; resets keep it.';
comment on column pay.environments.account is 'The operator''s name for the owner.';
comment on column pay.environments.livemode is 'Whether real money moves. Never changes.';
comment on column pay.environments.name is 'Name for people.';
comment on column pay.environments.created_at is 'Time of creation.';
comment on column pay.environments.retired_at is 'Time of the reset that replaced it. No key opens it, and retention empties it.';
comment on column pay.environments.ends_at is 'Time at which a disposable sandbox ends; null: another environment. Resets keep it.';
CREATE INDEX environments_ending ON pay.environments USING btree (ends_at) WHERE ((ends_at IS NOT NULL) AND (retired_at IS NULL));
CREATE UNIQUE INDEX environments_one_live_per_account ON pay.environments USING btree (account) WHERE livemode;
CREATE UNIQUE INDEX environments_public_id ON pay.environments USING btree (public_id) WHERE (retired_at IS NULL);
alter table pay.environments enable row level security;
alter table pay.environments force row level security;
create policy environments_change on pay.environments as permissive for update to pay_owner
  using (((( SELECT current_setting('pay.environment_ids'::text, true) AS current_setting) <> ''::text) AND (id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[]))));
create policy environments_delete on pay.environments as permissive for delete to pay_owner
  using (((( SELECT current_setting('pay.environment_ids'::text, true) AS current_setting) <> ''::text) AND (id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[]))));
create policy environments_read on pay.environments as permissive for select to pay_owner
  using (((id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));
create policy environments_write on pay.environments as permissive for insert to pay_owner
  with check (((( SELECT current_setting('pay.environment_ids'::text, true) AS current_setting) <> ''::text) AND (id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[]))));

-- table pay.events
create table pay.events (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  type text collate "C" not null,
  subject_id text collate "C" not null,
  sequence integer,
  created_at timestamp with time zone not null,
  body text not null,
  constraint events_pkey PRIMARY KEY (environment_id, id),
  constraint events_subject_sequence_key UNIQUE (environment_id, subject_id, sequence),
  constraint events_sequence_positive CHECK ((sequence > 0))
);
alter table pay.events owner to pay_owner;
comment on table pay.events is 'A change of a resource. Written in the transaction of the change; never changes.';
comment on column pay.events.environment_id is 'The environment of the row.';
comment on column pay.events.id is 'The id in answers; sorts by time.';
comment on column pay.events.type is 'Type, for example payment.completed.';
comment on column pay.events.subject_id is 'The resource that changed. Events of one subject are ordered by sequence.';
comment on column pay.events.sequence is 'Null for a triggered event, which changes nothing.';
comment on column pay.events.created_at is 'Time of creation.';
comment on column pay.events.body is 'The payload as JSON text, as it is signed and sent.';
alter table pay.events enable row level security;
alter table pay.events force row level security;
create policy events_of_environment on pay.events as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.faults
create table pay.faults (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  fault text collate "C" not null,
  filter json not null,
  delay_ms integer,
  times integer not null,
  times_left integer not null,
  created_at timestamp with time zone not null,
  constraint faults_pkey PRIMARY KEY (environment_id, id),
  constraint faults_delay_has_ms CHECK (((fault = 'delay'::text) = (delay_ms IS NOT NULL))),
  constraint faults_delay_ms_in_range CHECK (((delay_ms >= 1) AND (delay_ms <= 10000))),
  constraint faults_fault_known CHECK ((((kind || ' '::text) || fault) = ANY (ARRAY['request rate_limited'::text, 'request server_error_before'::text, 'request server_error_after'::text, 'request connection_lost_after'::text, 'request delay'::text, 'delivery duplicate'::text, 'delivery delay'::text, 'delivery reorder'::text, 'delivery wrong_signature'::text, 'delivery drop_until_recovered'::text, 'provider timeout'::text, 'provider declined'::text, 'provider failed'::text]))),
  constraint faults_times_in_range CHECK (((times >= 1) AND (times <= 1000))),
  constraint faults_times_left_in_range CHECK (((times_left >= 0) AND (times_left <= times)))
);
alter table pay.faults owner to pay_owner;
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
CREATE INDEX faults_open ON pay.faults USING btree (kind, environment_id, id) WHERE (times_left > 0);
alter table pay.faults enable row level security;
alter table pay.faults force row level security;
create policy faults_of_environment on pay.faults as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- view pay.health
create view pay.health with (security_invoker=true) (
  due_deliveries bigint,
  oldest_due_seconds double precision,
  pending_deliveries bigint,
  failed_deliveries_last_hour bigint,
  failing_endpoints bigint,
  oracle_findings bigint,
  books_checked_at timestamp with time zone,
  is_retention_behind boolean,
  test_keys bigint,
  live_keys bigint,
  is_relay_configured boolean,
  last_relay_wake_at timestamp with time zone,
  last_retention_at timestamp with time zone,
  failed_cron_runs bigint,
  last_relay_status integer,
  failed_relay_wakes_last_hour bigint,
  unsettled_calls bigint,
  oldest_unsettled_call_seconds double precision,
  unmatched_facts bigint,
  stalled_readings bigint
);
alter view pay.health owner to pay_owner;
comment on view pay.health is 'One row about the state of the service.';
comment on column pay.health.due_deliveries is 'Deliveries that could be sent now, up to 100 000.';
comment on column pay.health.oldest_due_seconds is 'For how many seconds the oldest due delivery has been due; 0 if none is due.';
comment on column pay.health.pending_deliveries is 'Deliveries that are due, under way or waiting for a retry, up to 100 000.';
comment on column pay.health.failed_deliveries_last_hour is 'Deliveries created in the last hour that have failed.';
comment on column pay.health.failing_endpoints is 'Enabled endpoints whose last attempt failed.';
comment on column pay.health.oracle_findings is 'Findings of the check of the books. Should be 0. Null if the check has never run.';
comment on column pay.health.books_checked_at is 'Time of the last run of pay.note_findings.';
comment on column pay.health.is_retention_behind is 'True if there are events older than 31 days.';
comment on column pay.health.test_keys is 'Number of API keys of sandboxes that are not revoked.';
comment on column pay.health.live_keys is 'Number of live API keys that are not revoked.';
comment on column pay.health.is_relay_configured is 'True if pay.configure_relay was called.';
comment on column pay.health.last_relay_wake_at is 'Time of the last run of the job that wakes the relay. Null if none is visible.';
comment on column pay.health.last_retention_at is 'Time of the last run of the retention job. Null if none is visible.';
comment on column pay.health.failed_cron_runs is 'Failed runs of the jobs of this service, among the last 1000 runs of all jobs.';
comment on column pay.health.last_relay_status is 'HTTP status of the answer to the last wake of the relay. Null if there is no answer.';
comment on column pay.health.failed_relay_wakes_last_hour is 'Wakes without a 2xx answer. Null if pg_net is not installed or its answers are not readable.';
comment on column pay.health.unsettled_calls is 'Sent calls to providers whose result is not recorded, up to 100 000.';
comment on column pay.health.oldest_unsettled_call_seconds is 'Seconds since the first attempt of the oldest of them; 0 if there is none.';
comment on column pay.health.unmatched_facts is 'Facts that match no payment or transfer and are not dismissed, up to 100 000. Should be 0.';
comment on column pay.health.stalled_readings is 'Accounts of providers whose readings have failed for five minutes. Should be 0.';
grant select on pay.health to pay_operator;

-- table pay.idempotency_keys
create table pay.idempotency_keys (
  environment_id text collate "C" not null,
  api_key_id text collate "C" not null,
  key text collate "C" not null,
  fingerprint bytea not null,
  request_id text collate "C" not null,
  status smallint not null,
  body text not null,
  created_at timestamp with time zone not null,
  advances_to timestamp with time zone,
  request_line text collate "C",
  replays integer default 0 not null,
  constraint idempotency_keys_pkey PRIMARY KEY (environment_id, api_key_id, key),
  constraint idempotency_keys_fingerprint_length CHECK ((length(fingerprint) = 32)),
  constraint idempotency_keys_key_length CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);
alter table pay.idempotency_keys owner to pay_owner;
comment on table pay.idempotency_keys is 'The first answer to a keyed request, replayed for 24 hours.';
comment on column pay.idempotency_keys.environment_id is 'The environment of the row.';
comment on column pay.idempotency_keys.api_key_id is 'The API key of the request.';
comment on column pay.idempotency_keys.key is 'The Idempotency-Key header.';
comment on column pay.idempotency_keys.fingerprint is 'SHA-256 of method, path and canonical body.';
comment on column pay.idempotency_keys.request_id is 'The first request; identifies the winner of concurrent twins.';
comment on column pay.idempotency_keys.status is 'HTTP status of the answer; 102 while a triggered attempt is under way.';
comment on column pay.idempotency_keys.body is 'The body of the answer, byte for byte.';
comment on column pay.idempotency_keys.created_at is 'Time of the first request.';
comment on column pay.idempotency_keys.advances_to is 'Of a request that advances a clock: the end of its advance while the stored answer is not complete; else null.';
comment on column pay.idempotency_keys.request_line is 'Method and path of the first request; null: functions of release 1.0.0 claimed the key.';
comment on column pay.idempotency_keys.replays is 'How often the answer was replayed, counted behind the answers.';
CREATE INDEX idempotency_keys_advances ON pay.idempotency_keys USING btree (environment_id) WHERE (advances_to IS NOT NULL);
CREATE INDEX idempotency_keys_age ON pay.idempotency_keys USING btree (environment_id, created_at) WHERE (created_at > '-infinity'::timestamp with time zone);
alter table pay.idempotency_keys enable row level security;
alter table pay.idempotency_keys force row level security;
create policy idempotency_keys_of_environment on pay.idempotency_keys as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.inbox_entries
create table pay.inbox_entries (
  environment_id text collate "C" not null,
  delivery_id text collate "C" not null,
  endpoint_id text collate "C" not null,
  "position" bigint not null,
  constraint inbox_entries_pkey PRIMARY KEY (environment_id, delivery_id),
  constraint inbox_entries_position_key UNIQUE (environment_id, endpoint_id, "position"),
  constraint inbox_entries_position_positive CHECK (("position" > 0))
);
alter table pay.inbox_entries owner to pay_owner;
comment on table pay.inbox_entries is 'The place of a delivery in the inbox of its endpoint.';
comment on column pay.inbox_entries.environment_id is 'The environment of the row.';
comment on column pay.inbox_entries.delivery_id is 'The delivery.';
comment on column pay.inbox_entries.endpoint_id is 'Its endpoint.';
comment on column pay.inbox_entries."position" is 'The position in the inbox, from 1. A delivery that is added again moves to the end.';
alter table pay.inbox_entries enable row level security;
alter table pay.inbox_entries force row level security;
create policy inbox_entries_of_environment on pay.inbox_entries as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- view pay.ledger_entries
create view pay.ledger_entries with (security_invoker=true) (
  environment_id text collate "C",
  id text collate "C",
  transaction_id text collate "C",
  subject_id text collate "C",
  refund_id text collate "C",
  account text collate "C",
  direction text,
  amount_minor bigint,
  currency text collate "C",
  created_at timestamp with time zone
);
alter view pay.ledger_entries owner to pay_owner;
comment on view pay.ledger_entries is 'The two entries of each movement of the ledger.';

-- table pay.ledger_movements
create table pay.ledger_movements (
  amount_minor bigint not null,
  created_at timestamp with time zone not null,
  leg smallint not null,
  environment_id text collate "C" not null,
  transaction_id text collate "C" not null,
  kind text collate "C" not null,
  subject_id text collate "C" not null,
  refund_id text collate "C",
  debit_account text collate "C" not null,
  credit_account text collate "C" not null,
  currency text collate "C" not null,
  constraint ledger_movements_pkey PRIMARY KEY (environment_id, transaction_id, leg),
  constraint ledger_movements_accounts_differ CHECK ((debit_account <> credit_account)),
  constraint ledger_movements_accounts_known CHECK (((debit_account = ANY (ARRAY['processor'::text, 'available'::text, 'chargebacks'::text, 'in_transit'::text, 'external'::text, 'bank'::text, 'unapplied'::text])) AND (credit_account = ANY (ARRAY['processor'::text, 'available'::text, 'chargebacks'::text, 'in_transit'::text, 'external'::text, 'bank'::text, 'unapplied'::text])))),
  constraint ledger_movements_amount_minor_positive CHECK ((amount_minor > 0)),
  constraint ledger_movements_kind_known CHECK ((kind = ANY (ARRAY['capture'::text, 'capture_reversal'::text, 'refund'::text, 'chargeback'::text, 'chargeback_reversal'::text, 'fee'::text, 'fee_reversal'::text, 'settlement'::text, 'settlement_reversal'::text, 'unmatched'::text, 'unmatched_reversal'::text, 'transfer'::text, 'transfer_completed'::text, 'transfer_reversed'::text]))),
  constraint ledger_movements_leg_in_range CHECK (((leg >= 0) AND ((strpos('0123456789abcdefghjkmnpqrstvwxyz'::text, substr(transaction_id, 30)) >= 1) AND (strpos('0123456789abcdefghjkmnpqrstvwxyz'::text, substr(transaction_id, 30)) <= (30 - (2 * leg))))))
);
alter table pay.ledger_movements owner to pay_owner;
comment on table pay.ledger_movements is 'One leg of a ledger transaction: an amount that moves from one account to another. Append-only.';
comment on column pay.ledger_movements.amount_minor is 'Minor units of the currency; both entries of the movement have this amount.';
comment on column pay.ledger_movements.created_at is 'The instant of the request that moved the money.';
comment on column pay.ledger_movements.leg is 'The number of the leg in its ledger transaction, from 0 to at most 14.';
comment on column pay.ledger_movements.environment_id is 'The environment that the money belongs to.';
comment on column pay.ledger_movements.transaction_id is 'The ledger transaction (txn_…). Movements with the same one are its legs.';
comment on column pay.ledger_movements.kind is 'The reason for the movement.';
comment on column pay.ledger_movements.subject_id is 'The payment or transfer whose money moves.';
comment on column pay.ledger_movements.refund_id is 'The refund that moves the money; null for other kinds.';
comment on column pay.ledger_movements.debit_account is 'The account that is debited.';
comment on column pay.ledger_movements.credit_account is 'The account that is credited.';
comment on column pay.ledger_movements.currency is 'ISO 4217 code.';
CREATE INDEX ledger_movements_subject ON pay.ledger_movements USING btree (subject_id, environment_id, transaction_id, leg);
alter table pay.ledger_movements enable row level security;
alter table pay.ledger_movements force row level security;
create policy ledger_movements_delete_in_sandbox on pay.ledger_movements as permissive for delete to pay_owner
  using ((environment_id IN ( SELECT e.id
   FROM pay.environments e
  WHERE (NOT e.livemode))));
create policy ledger_movements_read on pay.ledger_movements as permissive for select to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));
create policy ledger_movements_write on pay.ledger_movements as permissive for insert to pay_owner
  with check (((( SELECT current_setting('pay.environment_ids'::text, true) AS current_setting) <> ''::text) AND (environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[]))));

-- table pay.ledger_totals
create table pay.ledger_totals (
  environment_id text collate "C" not null,
  currency text collate "C" not null,
  debit_account text collate "C" not null,
  credit_account text collate "C" not null,
  stripe smallint not null,
  generation integer not null,
  updates smallint not null,
  amount_minor numeric not null,
  constraint ledger_totals_pkey PRIMARY KEY (environment_id, currency, debit_account, credit_account, stripe, generation),
  constraint ledger_totals_stripe_in_range CHECK (((stripe >= 0) AND (stripe <= 63)))
) with (fillfactor=50);
alter table pay.ledger_totals owner to pay_owner;
comment on table pay.ledger_totals is 'Sums of the movements between two accounts, spread over stripes. A sum stays when retention deletes its movements.';
comment on column pay.ledger_totals.environment_id is 'The environment that the money belongs to.';
comment on column pay.ledger_totals.currency is 'ISO 4217 code.';
comment on column pay.ledger_totals.debit_account is 'The account that the movements debit.';
comment on column pay.ledger_totals.credit_account is 'The account that the movements credit.';
comment on column pay.ledger_totals.stripe is 'The number of the stripe. The total is the sum over all stripes.';
comment on column pay.ledger_totals.generation is 'Grows with every 64th update of the row, so that the newest version is found by the index.';
comment on column pay.ledger_totals.updates is 'Updates of the row since its generation began.';
comment on column pay.ledger_totals.amount_minor is 'The sum in minor units; numeric, because it can exceed a bigint.';
alter table pay.ledger_totals enable row level security;
alter table pay.ledger_totals force row level security;
create policy ledger_totals_of_environment on pay.ledger_totals as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- view pay.oracle_bodies
create view pay.oracle_bodies with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_bodies owner to pay_owner;
comment on view pay.oracle_bodies is 'R5: the body of a payment or transfer agrees with its row and its newest event';

-- view pay.oracle_delivery_order
create view pay.oracle_delivery_order with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_delivery_order owner to pay_owner;
comment on view pay.oracle_delivery_order is 'R7: for each endpoint and payment, first attempts are made in the order of sequence';

-- view pay.oracle_deposits
create view pay.oracle_deposits with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_deposits owner to pay_owner;
comment on view pay.oracle_deposits is 'R14: a payment to an address is completed exactly when its final transfers reach its amount';

-- view pay.oracle_dispute_bodies
create view pay.oracle_dispute_bodies with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_dispute_bodies owner to pay_owner;
comment on view pay.oracle_dispute_bodies is 'R5: the body of a dispute agrees with its row and its event';

-- view pay.oracle_disputes
create view pay.oracle_disputes with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_disputes owner to pay_owner;
comment on view pay.oracle_disputes is 'R5: a payment that is charged back has one open or lost dispute of its disputed amount';

-- view pay.oracle_effects
create view pay.oracle_effects with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_effects owner to pay_owner;
comment on view pay.oracle_effects is 'R2, R3: every event of a keyed request belongs to a request whose answer is stored';

-- view pay.oracle_endless_deliveries
create view pay.oracle_endless_deliveries with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_endless_deliveries owner to pay_owner;
comment on view pay.oracle_endless_deliveries is 'R6: no delivery waits longer than the retry schedule allows';

-- table pay.oracle_findings
create table pay.oracle_findings (
  environment_id text collate "C" not null,
  oracle text collate "C" not null,
  subject_id text collate "C" not null,
  detail text not null,
  found_at timestamp with time zone default now() not null,
  constraint oracle_findings_pkey PRIMARY KEY (environment_id, oracle, subject_id)
);
alter table pay.oracle_findings owner to pay_owner;
comment on table pay.oracle_findings is 'Findings of the hourly check, until pay.forget_findings. Empty while every promise holds.';
comment on column pay.oracle_findings.environment_id is 'The environment of the subject.';
comment on column pay.oracle_findings.oracle is 'The view that found it.';
comment on column pay.oracle_findings.subject_id is 'The resource that the finding is about.';
comment on column pay.oracle_findings.detail is 'The finding in words.';
comment on column pay.oracle_findings.found_at is 'Time at which it was found first.';
alter table pay.oracle_findings enable row level security;
alter table pay.oracle_findings force row level security;
create policy oracle_findings_of_worker on pay.oracle_findings as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- view pay.oracle_inboxes
create view pay.oracle_inboxes with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_inboxes owner to pay_owner;
comment on view pay.oracle_inboxes is 'R6: every delivery that waits in an inbox is behind the acknowledged position';

-- view pay.oracle_kept_answers
create view pay.oracle_kept_answers with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_kept_answers owner to pay_owner;
comment on view pay.oracle_kept_answers is 'R1, R2: the resource in each stored answer exists, and had the state that the answer shows';

-- view pay.oracle_ledger_legs
create view pay.oracle_ledger_legs with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_ledger_legs owner to pay_owner;
comment on view pay.oracle_ledger_legs is 'R4: the legs of a ledger transaction are numbered without a gap and belong to one subject';

-- view pay.oracle_ledger_totals
create view pay.oracle_ledger_totals with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_ledger_totals owner to pay_owner;
comment on view pay.oracle_ledger_totals is 'R4: the total of two accounts is the sum of the movements between them';

-- view pay.oracle_moves
create view pay.oracle_moves with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_moves owner to pay_owner;
comment on view pay.oracle_moves is 'R5: each event of a payment or transfer is a legal move after the event before it';

-- view pay.oracle_orphans
create view pay.oracle_orphans with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_orphans owner to pay_owner;
comment on view pay.oracle_orphans is 'R1, R9: every refund, dispute, movement, event and delivery belongs to an existing subject';

-- view pay.oracle_outbox
create view pay.oracle_outbox with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_outbox owner to pay_owner;
comment on view pay.oracle_outbox is 'R6: every event has a delivery to every endpoint that subscribes to it';

-- view pay.oracle_payment_money
create view pay.oracle_payment_money with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_payment_money owner to pay_owner;
comment on view pay.oracle_payment_money is 'R4: each account holds the amount of a payment that the status of the payment requires';

-- view pay.oracle_provider_calls
create view pay.oracle_provider_calls with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_provider_calls owner to pay_owner;
comment on view pay.oracle_provider_calls is 'R14: every live payment has a call, and every call gets a result that the payment shows';

-- view pay.oracle_provider_facts
create view pay.oracle_provider_facts with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_provider_facts owner to pay_owner;
comment on view pay.oracle_provider_facts is 'R14: every fact of a provider is read and applied once, and the ledger moved by its amount';

-- view pay.oracle_provider_totals
create view pay.oracle_provider_totals with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_provider_totals owner to pay_owner;
comment on view pay.oracle_provider_totals is 'R14: the movements of each day at a provider add up to those that the ledger booked';

-- view pay.oracle_refund_bodies
create view pay.oracle_refund_bodies with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_refund_bodies owner to pay_owner;
comment on view pay.oracle_refund_bodies is 'R5: the body of a refund agrees with its row and its event';

-- view pay.oracle_refunds
create view pay.oracle_refunds with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_refunds owner to pay_owner;
comment on view pay.oracle_refunds is 'R5: the refunds of a payment add up to its sums of refunds, at most to the captured amount';

-- view pay.oracle_sequences
create view pay.oracle_sequences with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text
);
alter view pay.oracle_sequences owner to pay_owner;
comment on view pay.oracle_sequences is 'R5: the events of a payment or transfer are numbered 1, 2, 3 … without a gap, to its sequence';

-- view pay.oracle_transfer_money
create view pay.oracle_transfer_money with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  detail text collate "C"
);
alter view pay.oracle_transfer_money owner to pay_owner;
comment on view pay.oracle_transfer_money is 'R4: each account holds the amount of a transfer that the status of the transfer requires';

-- table pay.payments
create table pay.payments (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  status text collate "C" not null,
  amount_minor bigint not null,
  amount_refunded bigint not null,
  currency text collate "C" not null,
  method_kind text collate "C" not null,
  reference text collate "C",
  sequence integer not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  body text not null,
  amount_released bigint default 0 not null,
  amount_refunding bigint default 0 not null,
  amount_disputed bigint default 0 not null,
  constraint payments_pkey PRIMARY KEY (environment_id, id),
  constraint payments_amount_minor_in_range CHECK (((amount_minor >= 1) AND (amount_minor <= '999999999999'::bigint))),
  constraint payments_method_kind_known CHECK ((method_kind = ANY (ARRAY['card'::text, 'sepa'::text, 'swift'::text, 'stablecoin'::text]))),
  constraint payments_money_agrees_with_status CHECK ((
CASE
    WHEN (status = ANY (ARRAY['completed'::text, 'partially_refunded'::text, 'refunded'::text])) THEN (amount_disputed = 0)
    WHEN (status = 'chargeback'::text) THEN (amount_disputed > 0)
    ELSE ((amount_refunding = 0) AND (amount_disputed = 0))
END AND
CASE status
    WHEN 'partially_refunded'::text THEN ((amount_refunded >= 1) AND (amount_refunded <= ((amount_minor - amount_released) - 1)))
    WHEN 'refunded'::text THEN (amount_refunded = (amount_minor - amount_released))
    WHEN 'chargeback'::text THEN (amount_refunded < amount_minor)
    WHEN 'failed'::text THEN (amount_refunded < amount_minor)
    ELSE (amount_refunded = 0)
END)),
  constraint payments_refunds_in_range CHECK (((amount_refunded >= 0) AND (amount_refunding >= 0) AND ((amount_refunded + amount_refunding) <= (amount_minor - amount_released)))),
  constraint payments_released_in_range CHECK (((amount_released >= 0) AND (amount_released <= (amount_minor - 1)))),
  constraint payments_sequence_positive CHECK ((sequence > 0)),
  constraint payments_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'requires_action'::text, 'processing'::text, 'authorized'::text, 'completed'::text, 'declined'::text, 'failed'::text, 'cancelled'::text, 'partially_refunded'::text, 'refunded'::text, 'chargeback'::text])))
) with (fillfactor=90);
alter table pay.payments owner to pay_owner;
comment on table pay.payments is 'A payment as it stands now.';
comment on column pay.payments.environment_id is 'The environment of the row.';
comment on column pay.payments.id is 'The id in answers; sorts by time.';
comment on column pay.payments.status is 'Status, as in answers.';
comment on column pay.payments.amount_minor is 'Amount in minor units.';
comment on column pay.payments.amount_refunded is 'Sum of the payment''s refunds, minor units.';
comment on column pay.payments.currency is 'ISO 4217 code.';
comment on column pay.payments.method_kind is 'The kind of payment method, as in answers.';
comment on column pay.payments.reference is 'The merchant''s own reference, here because lists filter by it.';
comment on column pay.payments.sequence is 'Number of the payment''s newest event. A change compares it and sets it.';
comment on column pay.payments.created_at is 'Time of creation.';
comment on column pay.payments.updated_at is 'Time of the last change.';
comment on column pay.payments.body is 'The payment as JSON text, as it is answered.';
comment on column pay.payments.amount_released is 'The part of an authorized amount that the capture has released, minor units.';
comment on column pay.payments.amount_refunding is 'Sum of the payment''s pending refunds, minor units.';
comment on column pay.payments.amount_disputed is 'The amount that the payer has charged back, minor units.';
CREATE INDEX payments_reference ON pay.payments USING btree (reference, environment_id, id) WHERE (reference IS NOT NULL);
CREATE INDEX payments_status ON pay.payments USING btree (status, environment_id, id) WHERE (status <> 'completed'::text);
alter table pay.payments enable row level security;
alter table pay.payments force row level security;
create policy payments_of_environment on pay.payments as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.provider_accounts
create table pay.provider_accounts (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  connector text collate "C" not null,
  settings jsonb not null,
  secret_name text collate "C",
  notification_secret_names text[] not null,
  status text collate "C" not null,
  created_at timestamp with time zone not null,
  disabled_at timestamp with time zone,
  ignored_notifications bigint default 0 not null,
  constraint provider_accounts_pkey PRIMARY KEY (environment_id, id),
  constraint provider_accounts_connector_known CHECK ((connector = ANY (ARRAY['stripe'::text, 'evm'::text]))),
  constraint provider_accounts_disabled_has_time CHECK (((status = 'disabled'::text) = (disabled_at IS NOT NULL))),
  constraint provider_accounts_notification_secret_names_form CHECK (((notification_secret_names)::text ~ '^\{(PROVIDER_[A-Z0-9_]{1,60}(,PROVIDER_[A-Z0-9_]{1,60})?)?\}$'::text)),
  constraint provider_accounts_secret_name_form CHECK ((secret_name ~ '^PROVIDER_[A-Z0-9_]{1,60}$'::text)),
  constraint provider_accounts_status_known CHECK ((status = ANY (ARRAY['enabled'::text, 'disabled'::text])))
);
alter table pay.provider_accounts owner to pay_owner;
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
comment on column pay.provider_accounts.ignored_notifications is 'Number of signed notifications about other accounts of the provider, which changed nothing.';
CREATE INDEX provider_accounts_id ON pay.provider_accounts USING btree (id);
alter table pay.provider_accounts enable row level security;
alter table pay.provider_accounts force row level security;
create policy provider_accounts_of_environment on pay.provider_accounts as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.provider_calls
create table pay.provider_calls (
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
  created_at timestamp with time zone not null,
  first_sent_at timestamp with time zone,
  next_attempt_at timestamp with time zone,
  leased_until timestamp with time zone,
  next_look_at timestamp with time zone,
  settled_at timestamp with time zone,
  may_repeat boolean not null,
  provider_reference text collate "C",
  last_reply text,
  api_key_id text collate "C" not null,
  idempotency_key text collate "C",
  request_id text collate "C" not null,
  decline_is_error boolean not null,
  due_at timestamp with time zone,
  constraint provider_calls_pkey PRIMARY KEY (environment_id, id),
  constraint provider_calls_amount_minor_positive CHECK ((amount_minor > 0)),
  constraint provider_calls_op_known CHECK ((op = ANY (ARRAY['authorize'::text, 'capture'::text, 'cancel'::text, 'refund'::text, 'transfer'::text, 'expire'::text, 'abandon'::text, 'dispute_evidence'::text, 'dispute_accept'::text, 'dispute_expire'::text]))),
  constraint provider_calls_pending_has_next CHECK ((((state = 'pending'::text) = (next_attempt_at IS NOT NULL)) AND ((state = 'pending'::text) OR (leased_until IS NULL)))),
  constraint provider_calls_refund_has_id CHECK (((op = 'refund'::text) = (refund_id IS NOT NULL))),
  constraint provider_calls_settled_has_time CHECK (((state = 'settled'::text) = (settled_at IS NOT NULL))),
  constraint provider_calls_state_known CHECK ((state = ANY (ARRAY['pending'::text, 'settled'::text, 'operator'::text])))
);
alter table pay.provider_calls owner to pay_owner;
comment on table pay.provider_calls is 'A call to a provider, committed before it is sent.';
comment on column pay.provider_calls.environment_id is 'The environment of the row.';
comment on column pay.provider_calls.id is 'The id (pc_…), which is the provider''s idempotency key.';
comment on column pay.provider_calls.account_id is 'The account that gets the call; "sandbox" in a test environment.';
comment on column pay.provider_calls.connector is 'The connector of the account; "sandbox" in a test environment.';
comment on column pay.provider_calls.op is 'The operation that the service asks for.';
comment on column pay.provider_calls.subject_id is 'The payment or transfer.';
comment on column pay.provider_calls.refund_id is 'The refund of op refund; null for other operations.';
comment on column pay.provider_calls.amount_minor is 'The amount of the operation in minor units.';
comment on column pay.provider_calls.currency is 'ISO 4217 code.';
comment on column pay.provider_calls.request is 'The rest of the request, such as the token and the return URL. Never a card number.';
comment on column pay.provider_calls.state is 'pending, settled, or operator: the result is unknown and the service has given up.';
comment on column pay.provider_calls.attempts is 'How often the call was leased to be sent.';
comment on column pay.provider_calls.created_at is 'Time of the claim.';
comment on column pay.provider_calls.first_sent_at is 'Time of the first lease; null: never sent.';
comment on column pay.provider_calls.next_attempt_at is 'When the worker sends or looks again; null unless pending.';
comment on column pay.provider_calls.leased_until is 'End of the lease of the request or worker that sends the call; null: nobody sends it.';
comment on column pay.provider_calls.next_look_at is 'When the worker looks at the provider''s object next; null: the result is final or simulated.';
comment on column pay.provider_calls.settled_at is 'Time at which the result was recorded.';
comment on column pay.provider_calls.may_repeat is 'False: the worker only looks, because the provider would replay its reply or do the operation again.';
comment on column pay.provider_calls.provider_reference is 'The provider''s id of the payment or transfer; null until the provider has answered.';
comment on column pay.provider_calls.last_reply is 'The last reply without a result, for the operator.';
comment on column pay.provider_calls.api_key_id is 'The API key of the request.';
comment on column pay.provider_calls.idempotency_key is 'The idempotency key of the request, whose answer the record stores; null: the call follows from the result of another one.';
comment on column pay.provider_calls.request_id is 'The request.';
comment on column pay.provider_calls.decline_is_error is 'True: a decline is answered with 402.';
comment on column pay.provider_calls.due_at is 'When the worker sends the call, by the clock of the sandbox; null: it has no clock of its own.';
CREATE INDEX provider_calls_clock ON pay.provider_calls USING btree (environment_id, next_attempt_at, due_at) WHERE ((state = 'pending'::text) AND (account_id = 'sandbox'::text));
CREATE INDEX provider_calls_due ON pay.provider_calls USING btree (next_attempt_at) WHERE (state = 'pending'::text);
CREATE INDEX provider_calls_look ON pay.provider_calls USING btree (next_look_at) WHERE (next_look_at IS NOT NULL);
CREATE INDEX provider_calls_reference ON pay.provider_calls USING btree (provider_reference, account_id) WHERE (provider_reference IS NOT NULL);
CREATE INDEX provider_calls_subject ON pay.provider_calls USING btree (subject_id, environment_id, id);
CREATE INDEX provider_calls_unsettled ON pay.provider_calls USING btree (first_sent_at) WHERE (state <> 'settled'::text);
CREATE UNIQUE INDEX provider_calls_exclusive ON pay.provider_calls USING btree (environment_id, subject_id) WHERE ((state = 'pending'::text) AND (op = ANY (ARRAY['authorize'::text, 'capture'::text, 'cancel'::text])));
alter table pay.provider_calls enable row level security;
alter table pay.provider_calls force row level security;
create policy provider_calls_of_environment on pay.provider_calls as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.provider_cursors
create table pay.provider_cursors (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  cursor jsonb,
  polled_at timestamp with time zone,
  totals_cursor jsonb,
  totals_day date,
  leased_until timestamp with time zone,
  stalled_since timestamp with time zone,
  last_error text,
  constraint provider_cursors_pkey PRIMARY KEY (environment_id, account_id),
  constraint provider_cursors_stalled_has_error CHECK (((stalled_since IS NULL) = (last_error IS NULL)))
);
alter table pay.provider_cursors owner to pay_owner;
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
alter table pay.provider_cursors enable row level security;
alter table pay.provider_cursors force row level security;
create policy provider_cursors_of_environment on pay.provider_cursors as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.provider_facts
create table pay.provider_facts (
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
  happened_at timestamp with time zone not null,
  received_at timestamp with time zone not null,
  body jsonb not null,
  leased_until timestamp with time zone,
  outcome text collate "C",
  finding text,
  handled_at timestamp with time zone,
  booked_minor bigint default 0 not null,
  dismissed_at timestamp with time zone,
  dismissed_reason text,
  constraint provider_facts_pkey PRIMARY KEY (environment_id, account_id, reference),
  constraint provider_facts_booked_when_applied CHECK (((booked_minor = 0) OR (COALESCE(outcome, 'unmatched'::text) = ANY (ARRAY['applied'::text, 'unmatched'::text])))),
  constraint provider_facts_dismissed_has_reason CHECK (((dismissed_at IS NULL) = (dismissed_reason IS NULL))),
  constraint provider_facts_finding_has_text CHECK (
CASE outcome
    WHEN 'finding'::text THEN (finding IS NOT NULL)
    WHEN 'unmatched'::text THEN true
    WHEN 'applied'::text THEN true
    ELSE (finding IS NULL)
END),
  constraint provider_facts_handled_has_time CHECK (((outcome IS NULL) = (handled_at IS NULL))),
  constraint provider_facts_outcome_known CHECK ((outcome = ANY (ARRAY['applied'::text, 'ignored'::text, 'finding'::text, 'unmatched'::text])))
);
alter table pay.provider_facts owner to pay_owner;
comment on table pay.provider_facts is 'A report of a provider, stored before it is applied.';
comment on column pay.provider_facts.environment_id is 'The environment of the account.';
comment on column pay.provider_facts.account_id is 'The account that reported it; "sandbox" in a test environment.';
comment on column pay.provider_facts.reference is 'Object and state at the provider: unique in the account.';
comment on column pay.provider_facts.op is 'The kind of the fact: an operation, dispute, fee or payout.';
comment on column pay.provider_facts.state is 'The state that the fact reports.';
comment on column pay.provider_facts.subject_id is 'The payment or transfer; null: unknown, or a payout.';
comment on column pay.provider_facts.refund_id is 'The refund; null for other facts.';
comment on column pay.provider_facts.provider_reference is 'The provider''s id of the payment or transfer.';
comment on column pay.provider_facts.amount_minor is 'Amount in minor units.';
comment on column pay.provider_facts.currency is 'ISO 4217 code.';
comment on column pay.provider_facts.happened_at is 'The time at the provider.';
comment on column pay.provider_facts.received_at is 'The time at which the fact was first stored.';
comment on column pay.provider_facts.body is 'The whole fact.';
comment on column pay.provider_facts.leased_until is 'End of the lease of the worker that handles it; null: nobody does.';
comment on column pay.provider_facts.outcome is 'applied, ignored (it changes nothing), finding, unmatched (no such subject), or null: not handled yet.';
comment on column pay.provider_facts.finding is 'The reason of a finding, for the operator.';
comment on column pay.provider_facts.handled_at is 'Time of the outcome.';
comment on column pay.provider_facts.booked_minor is 'The signed change of the balance at the provider that the ledger booked for it.';
comment on column pay.provider_facts.dismissed_at is 'Time at which the operator dismissed the finding or the unmatched fact; null: it waits for him.';
comment on column pay.provider_facts.dismissed_reason is 'The reason of the operator.';
CREATE INDEX provider_facts_open ON pay.provider_facts USING btree (received_at) WHERE (outcome IS NULL);
CREATE INDEX provider_facts_received ON pay.provider_facts USING btree (environment_id, received_at);
CREATE INDEX provider_facts_reported ON pay.provider_facts USING btree (outcome, received_at) WHERE (((outcome = ANY (ARRAY['finding'::text, 'unmatched'::text])) OR (finding IS NOT NULL)) AND (dismissed_at IS NULL));
CREATE INDEX provider_facts_subject ON pay.provider_facts USING btree (subject_id, environment_id);
CREATE INDEX provider_facts_unmatched ON pay.provider_facts USING btree (provider_reference, account_id, environment_id) WHERE (outcome = 'unmatched'::text);
alter table pay.provider_facts enable row level security;
alter table pay.provider_facts force row level security;
create policy provider_facts_of_environment on pay.provider_facts as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.provider_methods
create table pay.provider_methods (
  environment_id text collate "C" not null,
  method_kind text collate "C" not null,
  account_id text collate "C" not null,
  constraint provider_methods_pkey PRIMARY KEY (environment_id, method_kind),
  constraint provider_methods_account_fkey FOREIGN KEY (environment_id, account_id) REFERENCES pay.provider_accounts(environment_id, id),
  constraint provider_methods_kind_known CHECK ((method_kind = ANY (ARRAY['card'::text, 'sepa'::text, 'swift'::text, 'stablecoin'::text])))
);
alter table pay.provider_methods owner to pay_owner;
comment on table pay.provider_methods is 'The enabled account that serves a kind of payment method.';
comment on column pay.provider_methods.environment_id is 'The environment of the account.';
comment on column pay.provider_methods.method_kind is 'The kind of payment method, as in answers.';
comment on column pay.provider_methods.account_id is 'The account.';
alter table pay.provider_methods enable row level security;
alter table pay.provider_methods force row level security;
create policy provider_methods_of_environment on pay.provider_methods as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- view pay.provider_readings
create view pay.provider_readings with (security_invoker=true) (
  environment_id text collate "C",
  account_id text collate "C",
  poll_at timestamp with time zone,
  day date,
  totals_at timestamp with time zone
);
alter view pay.provider_readings owner to pay_owner;
comment on view pay.provider_readings is 'Internal: when each account of a provider is read next.';

-- view pay.provider_subjects
create view pay.provider_subjects with (security_invoker=true) (
  environment_id text collate "C",
  id text collate "C",
  status text collate "C",
  sequence integer,
  body text
);
alter view pay.provider_subjects owner to pay_owner;
comment on view pay.provider_subjects is 'Internal: payments and transfers.';

-- table pay.provider_totals
create table pay.provider_totals (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  day date not null,
  currency text collate "C" not null,
  provider_minor bigint not null,
  read_at timestamp with time zone not null,
  constraint provider_totals_pkey PRIMARY KEY (environment_id, account_id, day, currency)
);
alter table pay.provider_totals owner to pay_owner;
comment on table pay.provider_totals is 'The movements of a day at a provider, in one currency.';
comment on column pay.provider_totals.environment_id is 'The environment of the account.';
comment on column pay.provider_totals.account_id is 'The account.';
comment on column pay.provider_totals.day is 'The day in UTC.';
comment on column pay.provider_totals.currency is 'ISO 4217 code.';
comment on column pay.provider_totals.provider_minor is 'Sum of all movements of the balance in minor units, after fees; payouts are negative.';
comment on column pay.provider_totals.read_at is 'Time at which the worker read it.';
alter table pay.provider_totals enable row level security;
alter table pay.provider_totals force row level security;
create policy provider_totals_of_environment on pay.provider_totals as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- type pay.provider_work
create type pay.provider_work as (
  kind text,
  environment_id text collate "C",
  livemode boolean,
  account json,
  call json,
  fact json,
  subject_body text,
  subject_sequence integer,
  refund_body text,
  cursor json,
  day date
);
alter type pay.provider_work owner to pay_owner;
comment on type pay.provider_work is 'A piece of work that a worker has claimed.';
comment on column pay.provider_work.kind is 'call, fact, look, poll or totals.';
comment on column pay.provider_work.environment_id is 'The environment of the account.';
comment on column pay.provider_work.livemode is 'The mode of the environment.';
comment on column pay.provider_work.account is 'The account, with the names of its secrets.';
comment on column pay.provider_work.call is 'The call to send or to look at; for a fact the call that it can settle, or null.';
comment on column pay.provider_work.fact is 'The fact to handle.';
comment on column pay.provider_work.subject_body is 'The payment or transfer as JSON text; null: there is none.';
comment on column pay.provider_work.subject_sequence is 'The sequence of the payment or transfer.';
comment on column pay.provider_work.refund_body is 'The refund as JSON text; null: there is none.';
comment on column pay.provider_work.cursor is 'Where a poll, or the reading of totals, goes on; null: at its beginning.';
comment on column pay.provider_work.day is 'The day whose totals to read.';

-- table pay.rate_counters
create unlogged table pay.rate_counters (
  environment_id text collate "C" not null,
  api_key_id text collate "C" not null,
  stripe smallint not null,
  window_number bigint not null,
  current_count integer not null,
  previous_count integer not null,
  constraint rate_counters_pkey PRIMARY KEY (environment_id, api_key_id, stripe),
  constraint rate_counters_stripe_in_range CHECK (((stripe >= 0) AND (stripe <= 63)))
) with (fillfactor=50);
alter table pay.rate_counters owner to pay_owner;
comment on table pay.rate_counters is 'Requests of each key in the two-second window and the one before.';
comment on column pay.rate_counters.environment_id is 'The environment of the key.';
comment on column pay.rate_counters.api_key_id is 'The key that made the requests.';
comment on column pay.rate_counters.stripe is '0 to 63; requests at the same time count in different stripes.';
comment on column pay.rate_counters.window_number is 'Number of the two-second window since 1970.';
comment on column pay.rate_counters.current_count is 'Requests in that window.';
comment on column pay.rate_counters.previous_count is 'Requests in the window before it.';
CREATE INDEX rate_counters_recent ON pay.rate_counters USING btree (environment_id, window_number);
alter table pay.rate_counters enable row level security;
alter table pay.rate_counters force row level security;
create policy rate_counters_of_environment on pay.rate_counters as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.refunds
create table pay.refunds (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  payment_id text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  created_at timestamp with time zone not null,
  body text not null,
  status text collate "C" default 'completed'::text not null,
  constraint refunds_pkey PRIMARY KEY (environment_id, id),
  constraint refunds_amount_minor_positive CHECK ((amount_minor > 0)),
  constraint refunds_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'completed'::text, 'failed'::text])))
);
alter table pay.refunds owner to pay_owner;
comment on table pay.refunds is 'Money given back on a payment.';
comment on column pay.refunds.environment_id is 'The environment of the row.';
comment on column pay.refunds.id is 'The id in answers; sorts by time.';
comment on column pay.refunds.payment_id is 'The payment that is refunded.';
comment on column pay.refunds.amount_minor is 'Amount in minor units.';
comment on column pay.refunds.currency is 'Currency of the payment.';
comment on column pay.refunds.created_at is 'Time of creation.';
comment on column pay.refunds.body is 'The refund as JSON text, as it is answered.';
comment on column pay.refunds.status is 'Status, as in answers.';
CREATE INDEX refunds_payment ON pay.refunds USING btree (payment_id, environment_id, id);
alter table pay.refunds enable row level security;
alter table pay.refunds force row level security;
create policy refunds_of_environment on pay.refunds as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.relay_wakes
create unlogged table pay.relay_wakes (
  request_id text collate "C" not null,
  woken_at timestamp with time zone default now() not null,
  constraint relay_wakes_pkey PRIMARY KEY (request_id)
);
alter table pay.relay_wakes owner to pay_owner;
comment on table pay.relay_wakes is 'Requests of the last hour with which pg_net has woken the relay.';
comment on column pay.relay_wakes.request_id is 'The id that net.http_post returned, as text.';
comment on column pay.relay_wakes.woken_at is 'Time of the request.';
alter table pay.relay_wakes enable row level security;
alter table pay.relay_wakes force row level security;
create policy relay_wakes_of_worker on pay.relay_wakes as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- table pay.requests
create table pay.requests (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  api_key_id text collate "C" not null,
  method text collate "C" not null,
  path text collate "C" not null,
  query text collate "C",
  status smallint not null,
  error_code text collate "C",
  idempotency_key text collate "C",
  is_replay boolean not null,
  duration_us integer not null,
  created_at timestamp with time zone not null,
  source text collate "C" default 'program'::text not null,
  constraint requests_pkey PRIMARY KEY (environment_id, id),
  constraint requests_source_known CHECK ((source = ANY (ARRAY['program'::text, 'web_page'::text])))
);
alter table pay.requests owner to pay_owner;
comment on table pay.requests is 'The log of the requests of sandboxes: 30 days, and the last 1 000 of each sandbox.';
comment on column pay.requests.environment_id is 'The sandbox.';
comment on column pay.requests.id is 'The id of the request (req_…), which begins with its time.';
comment on column pay.requests.api_key_id is 'The API key of the request.';
comment on column pay.requests.method is 'The HTTP method.';
comment on column pay.requests.path is 'The path from the name of the function on, without the client''s own text.';
comment on column pay.requests.query is 'The query with the values of known parameters that are no free text; null: none.';
comment on column pay.requests.status is 'HTTP status of the answer.';
comment on column pay.requests.error_code is 'The code of the error; null: the answer is no error.';
comment on column pay.requests.idempotency_key is 'The Idempotency-Key header; null: none, or not valid.';
comment on column pay.requests.is_replay is 'True: the answer is that of an earlier request.';
comment on column pay.requests.duration_us is 'Microseconds from the arrival of the request to its answer.';
comment on column pay.requests.created_at is 'Time at which the request arrived.';
comment on column pay.requests.source is 'web_page: a browser sent the request for a page such as the console. program: everything else.';
alter table pay.requests enable row level security;
alter table pay.requests force row level security;
create policy requests_of_environment on pay.requests as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.sandbox_settings
create table pay.sandbox_settings (
  environment_id text collate "C" not null,
  version bigint not null,
  offset_ms bigint default 0 not null,
  frozen_at timestamp with time zone,
  target_at timestamp with time zone,
  runs_after boolean default false not null,
  is_stopping boolean default false not null,
  did jsonb default '{}'::jsonb not null,
  fault_kinds text[] default '{}'::text[] not null,
  seed text,
  seed_root text collate "C",
  requests bigint default 0 not null,
  transcript_bytes bigint default 0 not null,
  constraint sandbox_settings_pkey PRIMARY KEY (environment_id),
  constraint sandbox_settings_below_ceiling CHECK ((GREATEST(frozen_at, target_at) <= '2200-01-01 00:00:00+00'::timestamp with time zone)),
  constraint sandbox_settings_offset_ms_range CHECK ((offset_ms >= 0)),
  constraint sandbox_settings_requests_counted CHECK (((requests >= 0) AND ((requests = 0) OR (seed IS NOT NULL)))),
  constraint sandbox_settings_runs_after_target CHECK (((NOT runs_after) OR (target_at IS NOT NULL))),
  constraint sandbox_settings_seed_length CHECK (((length(seed) >= 1) AND (length(seed) <= 100))),
  constraint sandbox_settings_seed_root_form CHECK (((seed_root ~ '^[0-9a-f]{64}$'::text) AND ((seed_root IS NULL) = (seed IS NULL)))),
  constraint sandbox_settings_target_stands CHECK (((target_at IS NULL) OR ((frozen_at IS NOT NULL) AND (frozen_at <= target_at)))),
  constraint sandbox_settings_transcript_bytes_not_negative CHECK ((transcript_bytes >= 0)),
  constraint sandbox_settings_version_positive CHECK ((version > 0))
);
alter table pay.sandbox_settings owner to pay_owner;
comment on table pay.sandbox_settings is 'The settings of a sandbox that uses special features. Other environments have no row.';
comment on column pay.sandbox_settings.environment_id is 'The sandbox.';
comment on column pay.sandbox_settings.version is 'Changes with each change of the row. A request is decided with the settings of one version.';
comment on column pay.sandbox_settings.offset_ms is 'How far a clock that runs is ahead of the real time, in milliseconds; of one that stands and starts again soon, how far it will be.';
comment on column pay.sandbox_settings.frozen_at is 'The time at which the clock stands; null: it runs.';
comment on column pay.sandbox_settings.target_at is 'The end of an advance that is not complete; null: none is under way.';
comment on column pay.sandbox_settings.runs_after is 'Whether the clock runs again when it reaches target_at.';
comment on column pay.sandbox_settings.is_stopping is 'Whether deliveries or calls can still wait by the real time while the clock stands. The next step of an advance stops them.';
comment on column pay.sandbox_settings.did is 'What the advance under way has done: numbers by name.';
comment on column pay.sandbox_settings.fault_kinds is 'The kinds of declared faults that can still happen: request, provider. The relay finds those of deliveries itself.';
comment on column pay.sandbox_settings.seed is 'The seed of a seeded sandbox; null: its ids are random.';
comment on column pay.sandbox_settings.seed_root is 'Hex SHA-256 of the account and the seed, from which ids and secrets are derived.';
comment on column pay.sandbox_settings.requests is 'Number of requests of a seeded sandbox so far.';
comment on column pay.sandbox_settings.transcript_bytes is 'Length of the transcript so far.';
CREATE INDEX sandbox_settings_seed_root ON pay.sandbox_settings USING btree (seed_root) WHERE (seed_root IS NOT NULL);
alter table pay.sandbox_settings enable row level security;
alter table pay.sandbox_settings force row level security;
create policy sandbox_settings_of_environment on pay.sandbox_settings as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- view pay.sandbox_times
create view pay.sandbox_times with (security_invoker=true) (
  environment_id text collate "C",
  now timestamp with time zone,
  recent_suffix text
);
alter view pay.sandbox_times owner to pay_owner;
comment on view pay.sandbox_times is 'Internal: the time of each sandbox with a clock of its own.';

-- table pay.sandboxes
create table pay.sandboxes (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  account text not null,
  name text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  seed text,
  constraint sandboxes_pkey PRIMARY KEY (environment_id, id),
  constraint sandboxes_id_form CHECK ((id ~ '^env_[0-9a-z]{26}$'::text)),
  constraint sandboxes_name_length CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint sandboxes_seed_length CHECK (((length(seed) >= 1) AND (length(seed) <= 100)))
);
alter table pay.sandboxes owner to pay_owner;
comment on table pay.sandboxes is 'A disposable sandbox, for the sandbox that made it. The row outlives its data by a day.';
comment on column pay.sandboxes.environment_id is 'The sandbox whose key made it; resets of that one move the row.';
comment on column pay.sandboxes.id is 'The public id of the disposable sandbox.';
comment on column pay.sandboxes.account is 'The account of both sandboxes.';
comment on column pay.sandboxes.name is 'Name for people; null: none.';
comment on column pay.sandboxes.created_at is 'Time of creation.';
comment on column pay.sandboxes.expires_at is 'Time at which it ends or has ended.';
comment on column pay.sandboxes.seed is 'The seed; null: the ids of the sandbox are random.';
CREATE INDEX sandboxes_alive ON pay.sandboxes USING btree (account, expires_at);
CREATE INDEX sandboxes_ended ON pay.sandboxes USING btree (expires_at);
alter table pay.sandboxes enable row level security;
alter table pay.sandboxes force row level security;
create policy sandboxes_of_environment on pay.sandboxes as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.settings
create table pay.settings (
  name text collate "C" not null,
  value text not null,
  constraint settings_pkey PRIMARY KEY (name),
  constraint settings_name_known CHECK ((name = ANY (ARRAY['relay_url'::text, 'relay_token'::text, 'books_checked_at'::text])))
);
alter table pay.settings owner to pay_owner;
comment on table pay.settings is 'The address and token of the relay (pay.configure_relay), and the time of the last check of the books, in seconds since 1970 (pay.note_findings).';
comment on column pay.settings.name is 'Name of the setting.';
comment on column pay.settings.value is 'Value of the setting, as text.';
alter table pay.settings enable row level security;
alter table pay.settings force row level security;
create policy settings_of_worker on pay.settings as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- table pay.signer_nonces
create table pay.signer_nonces (
  chain_id bigint not null,
  signer text collate "C" not null,
  next_nonce bigint not null,
  constraint signer_nonces_pkey PRIMARY KEY (chain_id, signer),
  constraint signer_nonces_in_range CHECK ((next_nonce >= 0))
);
alter table pay.signer_nonces owner to pay_owner;
comment on table pay.signer_nonces is 'The next nonce of each signer of payouts. Rows are never deleted, so no nonce is assigned twice.';
comment on column pay.signer_nonces.chain_id is 'The chain.';
comment on column pay.signer_nonces.signer is 'The address of the signer, EIP-55. Accounts can share it.';
comment on column pay.signer_nonces.next_nonce is 'The nonce of the next payout.';
alter table pay.signer_nonces enable row level security;
alter table pay.signer_nonces force row level security;
create policy signer_nonces_of_worker on pay.signer_nonces as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- view pay.subject_accounts
create view pay.subject_accounts with (security_invoker=true) (
  environment_id text collate "C",
  subject_id text collate "C",
  currency text collate "C",
  available numeric,
  processor numeric,
  chargebacks numeric,
  in_transit numeric,
  external numeric,
  unapplied numeric,
  fees numeric
);
alter view pay.subject_accounts owner to pay_owner;
comment on view pay.subject_accounts is 'Internal: the sums of each account over the movements of a subject.';

-- table pay.transcript_lines
create table pay.transcript_lines (
  environment_id text collate "C" not null,
  n bigint not null,
  line text not null,
  constraint transcript_lines_pkey PRIMARY KEY (environment_id, n),
  constraint transcript_lines_n_positive CHECK ((n > 0))
);
alter table pay.transcript_lines owner to pay_owner;
comment on table pay.transcript_lines is 'The run of a seeded sandbox: one line for each request.';
comment on column pay.transcript_lines.environment_id is 'The sandbox.';
comment on column pay.transcript_lines.n is 'Number of the request in the run.';
comment on column pay.transcript_lines.line is 'The request and its answer as JSON text, without card numbers and API keys.';
alter table pay.transcript_lines enable row level security;
alter table pay.transcript_lines force row level security;
create policy transcript_lines_of_environment on pay.transcript_lines as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.transfers
create table pay.transfers (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  status text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  sequence integer not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  body text not null,
  constraint transfers_pkey PRIMARY KEY (environment_id, id),
  constraint transfers_amount_minor_in_range CHECK (((amount_minor >= 1) AND (amount_minor <= '999999999999'::bigint))),
  constraint transfers_sequence_positive CHECK ((sequence > 0)),
  constraint transfers_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'completed'::text, 'failed'::text, 'cancelled'::text])))
) with (fillfactor=90);
alter table pay.transfers owner to pay_owner;
comment on table pay.transfers is 'A transfer as it stands now.';
comment on column pay.transfers.environment_id is 'The environment of the row.';
comment on column pay.transfers.id is 'The id in answers; sorts by time.';
comment on column pay.transfers.status is 'Status, as in answers.';
comment on column pay.transfers.amount_minor is 'Amount in minor units.';
comment on column pay.transfers.currency is 'ISO 4217 code.';
comment on column pay.transfers.sequence is 'Number of the transfer''s newest event. A change compares it and sets it.';
comment on column pay.transfers.created_at is 'Time of creation.';
comment on column pay.transfers.updated_at is 'Time of the last change.';
comment on column pay.transfers.body is 'The transfer as JSON text, as it is answered.';
CREATE INDEX transfers_status ON pay.transfers USING btree (status, environment_id, id);
alter table pay.transfers enable row level security;
alter table pay.transfers force row level security;
create policy transfers_of_environment on pay.transfers as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.webhook_deliveries
create table pay.webhook_deliveries (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  event_id text collate "C" not null,
  event_type text collate "C" not null,
  endpoint_id text collate "C" not null,
  subject_id text collate "C" not null,
  sequence integer,
  status text collate "C" not null,
  attempt_count integer default 0 not null,
  attempts text default ''::text not null,
  next_attempt_at timestamp with time zone,
  leased_until timestamp with time zone,
  lost_claims smallint default 0 not null,
  created_at timestamp with time zone not null,
  due_at timestamp with time zone,
  fault text collate "C",
  fault_attempt integer,
  constraint webhook_deliveries_pkey PRIMARY KEY (environment_id, id),
  constraint webhook_deliveries_fault_has_attempt CHECK (((fault IS NULL) = (fault_attempt IS NULL))),
  constraint webhook_deliveries_fault_known CHECK ((fault = ANY (ARRAY['duplicate'::text, 'delay'::text, 'reorder'::text, 'wrong_signature'::text, 'drop_until_recovered'::text]))),
  constraint webhook_deliveries_lost_claims_not_negative CHECK ((lost_claims >= 0)),
  constraint webhook_deliveries_pending_has_next CHECK ((((status = 'pending'::text) = (next_attempt_at IS NOT NULL)) AND ((status = 'pending'::text) OR (leased_until IS NULL)))),
  constraint webhook_deliveries_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'available'::text, 'delivered'::text, 'failed'::text, 'cancelled'::text])))
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=10000);
alter table pay.webhook_deliveries owner to pay_owner;
comment on table pay.webhook_deliveries is 'The outbox: an event on its way to one endpoint.';
comment on column pay.webhook_deliveries.environment_id is 'The environment of the row.';
comment on column pay.webhook_deliveries.id is 'The id in answers; sorts by time.';
comment on column pay.webhook_deliveries.event_id is 'The event that is delivered.';
comment on column pay.webhook_deliveries.event_type is 'The type of the event.';
comment on column pay.webhook_deliveries.endpoint_id is 'The endpoint that receives it.';
comment on column pay.webhook_deliveries.subject_id is 'The subject of the event; its events arrive in order.';
comment on column pay.webhook_deliveries.sequence is 'Sequence of the event; null for a triggered event, which waits for no other.';
comment on column pay.webhook_deliveries.status is 'pending, available (in an inbox and not acknowledged), delivered, failed or cancelled.';
comment on column pay.webhook_deliveries.attempt_count is 'Attempts begun; also the number of the one under way. In an inbox: how often it was added.';
comment on column pay.webhook_deliveries.attempts is 'Recorded attempts as JSON objects, joined by commas: the first and the newest.';
comment on column pay.webhook_deliveries.next_attempt_at is 'Time of the next attempt, unless the row is leased.';
comment on column pay.webhook_deliveries.leased_until is 'End of the lease of the relay that has the row; another may take it then. In no index.';
comment on column pay.webhook_deliveries.lost_claims is 'Claims since the last recorded attempt that expired without a record. From 3 on the delivery has crashed and the count stays.';
comment on column pay.webhook_deliveries.created_at is 'Time of creation.';
comment on column pay.webhook_deliveries.due_at is 'Time of the next attempt by the clock of the sandbox; null: it has no clock of its own.';
comment on column pay.webhook_deliveries.fault is 'The declared fault that changed this delivery; null: none did.';
comment on column pay.webhook_deliveries.fault_attempt is 'The number of the attempt that has the fault; null without a fault.';
CREATE INDEX webhook_deliveries_clock ON pay.webhook_deliveries USING btree (environment_id, due_at) WHERE (next_attempt_at = 'infinity'::timestamp with time zone);
CREATE INDEX webhook_deliveries_due ON pay.webhook_deliveries USING btree (endpoint_id, next_attempt_at, subject_id, sequence) WHERE ((next_attempt_at IS NOT NULL) AND (lost_claims = 0));
CREATE INDEX webhook_deliveries_endpoint ON pay.webhook_deliveries USING btree (endpoint_id, environment_id, id);
CREATE INDEX webhook_deliveries_order ON pay.webhook_deliveries USING btree (endpoint_id, subject_id, sequence) WHERE (status = 'pending'::text);
CREATE INDEX webhook_deliveries_subject ON pay.webhook_deliveries USING btree (subject_id, environment_id, id);
CREATE INDEX webhook_deliveries_suspect ON pay.webhook_deliveries USING btree (endpoint_id, lost_claims, next_attempt_at, subject_id, sequence) WHERE ((next_attempt_at IS NOT NULL) AND (lost_claims > 0));
alter table pay.webhook_deliveries enable row level security;
alter table pay.webhook_deliveries force row level security;
create policy webhook_deliveries_of_environment on pay.webhook_deliveries as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.webhook_endpoints
create table pay.webhook_endpoints (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  slot smallint not null,
  url text,
  events text[] not null,
  status text collate "C" not null,
  secrets json not null,
  failing_since timestamp with time zone,
  revision integer not null,
  created_at timestamp with time zone not null,
  body text not null,
  delivery text collate "C" default 'url'::text not null,
  inbox_position bigint default 0 not null,
  inbox_acknowledged bigint default 0 not null,
  constraint webhook_endpoints_pkey PRIMARY KEY (environment_id, id),
  constraint webhook_endpoints_slot_key UNIQUE (environment_id, slot),
  constraint webhook_endpoints_delivery_known CHECK ((delivery = ANY (ARRAY['url'::text, 'inbox'::text]))),
  constraint webhook_endpoints_inbox_acknowledged_in_range CHECK (((inbox_acknowledged >= 0) AND (inbox_acknowledged <= inbox_position))),
  constraint webhook_endpoints_slot_in_range CHECK (((slot >= 0) AND (slot <= 63))),
  constraint webhook_endpoints_status_known CHECK ((status = ANY (ARRAY['enabled'::text, 'disabled'::text]))),
  constraint webhook_endpoints_url_agrees_with_delivery CHECK (((delivery = 'url'::text) = (url IS NOT NULL))),
  constraint webhook_endpoints_url_length CHECK ((length(url) <= 2048))
);
alter table pay.webhook_endpoints owner to pay_owner;
comment on table pay.webhook_endpoints is 'A merchant''s address for events.';
comment on column pay.webhook_endpoints.environment_id is 'The environment of the row.';
comment on column pay.webhook_endpoints.id is 'The id in answers; sorts by time.';
comment on column pay.webhook_endpoints.slot is '0 to 15, in a sandbox 0 to 63; the ids of its deliveries encode it.';
comment on column pay.webhook_endpoints.url is 'The address that receives the events; null if the receiver reads them.';
comment on column pay.webhook_endpoints.events is 'Event types, or patterns: *, payment.*';
comment on column pay.webhook_endpoints.status is 'enabled or disabled.';
comment on column pay.webhook_endpoints.secrets is '[{version, salt, expires_at}], newest first. The functions derive each secret from these and the master secret, which is not in the database.';
comment on column pay.webhook_endpoints.failing_since is 'The first failure since the last success; null when the last attempt succeeded.';
comment on column pay.webhook_endpoints.revision is 'Number of changes. An update compares it and sets it.';
comment on column pay.webhook_endpoints.created_at is 'Time of creation.';
comment on column pay.webhook_endpoints.body is 'The endpoint as JSON text, without its secret.';
comment on column pay.webhook_endpoints.delivery is 'url: the relay sends the events. inbox: the receiver reads them.';
comment on column pay.webhook_endpoints.inbox_position is 'The position of the newest delivery in the inbox. A transaction that adds one locks the endpoint.';
comment on column pay.webhook_endpoints.inbox_acknowledged is 'The receiver has acknowledged the deliveries up to this position.';
alter table pay.webhook_endpoints enable row level security;
alter table pay.webhook_endpoints force row level security;
create policy webhook_endpoints_of_environment on pay.webhook_endpoints as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.xpub_counters
create table pay.xpub_counters (
  xpub text collate "C" not null,
  next_index bigint not null,
  constraint xpub_counters_pkey PRIMARY KEY (xpub),
  constraint xpub_counters_in_range CHECK (((next_index >= 0) AND (next_index <= '2147483648'::bigint)))
);
alter table pay.xpub_counters owner to pay_owner;
comment on table pay.xpub_counters is 'The next index of each extended public key. Rows are never deleted, so no index is used twice.';
comment on column pay.xpub_counters.xpub is 'The extended public key. Accounts of several networks can share it.';
comment on column pay.xpub_counters.next_index is 'The index of the next address.';
alter table pay.xpub_counters enable row level security;
alter table pay.xpub_counters force row level security;
create policy xpub_counters_of_worker on pay.xpub_counters as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- function pay.account_sums(text)
CREATE OR REPLACE FUNCTION pay.account_sums(p_environment_id text)
 RETURNS TABLE(currency text, account text, debits_minor numeric, credits_minor numeric)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.account_sums(text) owner to pay_owner;

-- function pay.acknowledge_inbox(text,text,bigint,bigint)
CREATE OR REPLACE FUNCTION pay.acknowledge_inbox(p_environment_id text, p_endpoint_id text, p_from bigint, p_to bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.acknowledge_inbox(text,text,bigint,bigint) owner to pay_owner;

-- function pay.add_api_key_secret(text,timestamp with time zone,text,text,text,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.add_api_key_secret(p_id text, p_at timestamp with time zone, p_secret_hash text, p_prefix text, p_last_four text, p_older_expire_at timestamp with time zone, p_ahead interval)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.add_api_key_secret(text,timestamp with time zone,text,text,text,timestamp with time zone,interval) owner to pay_owner;

-- function pay.add_provider_account(text,text,text,text[],text,text,text[])
CREATE OR REPLACE FUNCTION pay.add_provider_account(p_id text, p_environment_id text, p_connector text, p_method_kinds text[], p_settings text, p_secret_name text, p_notification_secret_names text[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.add_provider_account(text,text,text,text[],text,text,text[]) owner to pay_owner;
grant execute on function pay.add_provider_account(text,text,text,text[],text,text,text[]) to pay_operator;

-- function pay.add_requests(text,text,timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.add_requests(p_environment_id text, p_api_key_id text, p_at timestamp with time zone, p_requests integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off';
alter function pay.add_requests(text,text,timestamp with time zone,integer) owner to pay_owner;

-- function pay.add_to_inbox(text,text,bigint,integer,timestamp with time zone,text[])
CREATE OR REPLACE FUNCTION pay.add_to_inbox(p_environment_id text, p_endpoint_id text, p_position bigint, p_most integer, p_at timestamp with time zone, p_checked text[])
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.add_to_inbox(text,text,bigint,integer,timestamp with time zone,text[]) owner to pay_owner;

-- function pay.add_to_total(text,text,text,text,numeric)
CREATE OR REPLACE FUNCTION pay.add_to_total(p_environment_id text, p_currency text, p_debit_account text, p_credit_account text, p_amount_minor numeric)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.add_to_total(text,text,text,text,numeric) owner to pay_owner;

-- function pay.admit(json,text,boolean)
CREATE OR REPLACE FUNCTION pay.admit(p_requests json, p_hold text, p_is_read boolean)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.admit(json,text,boolean) owner to pay_owner;

-- function pay.admit_alone(text)
CREATE OR REPLACE FUNCTION pay.admit_alone(p_request text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.admit_alone(text) owner to pay_owner;

-- function pay.admit_one(text,text)
CREATE OR REPLACE FUNCTION pay.admit_one(p_request text, p_hold text DEFAULT 'shared'::text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.admit_one(text,text) owner to pay_owner;

-- function pay.allocate_deposits(json,jsonb,pay.admission[])
CREATE OR REPLACE FUNCTION pay.allocate_deposits(p_calls json, p_providers jsonb, p_found pay.admission[])
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.allocate_deposits(json,jsonb,pay.admission[]) owner to pay_owner;

-- function pay.api_key_body(pay.api_keys,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.api_key_body(p_key pay.api_keys, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.api_key_body(pay.api_keys,timestamp with time zone) owner to pay_owner;

-- function pay.available_minor(text,text)
CREATE OR REPLACE FUNCTION pay.available_minor(p_environment_id text, p_currency text)
 RETURNS numeric
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.available_minor(text,text) owner to pay_owner;

-- function pay.balance(text)
CREATE OR REPLACE FUNCTION pay.balance(p_request text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.balance(text) owner to pay_owner;
grant execute on function pay.balance(text) to pay_api;

-- function pay.begin_seeded(text,text,text)
CREATE OR REPLACE FUNCTION pay.begin_seeded(p_environment_id text, p_seed text, p_root text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.begin_seeded(text,text,text) owner to pay_owner;

-- function pay.begin_trigger(text,text)
CREATE OR REPLACE FUNCTION pay.begin_trigger(p_request text, p_trigger text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.begin_trigger(text,text) owner to pay_owner;
grant execute on function pay.begin_trigger(text,text) to pay_api;

-- function pay.blocking_delivery(pay.webhook_deliveries)
CREATE OR REPLACE FUNCTION pay.blocking_delivery(p_delivery pay.webhook_deliveries)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.blocking_delivery(pay.webhook_deliveries) owner to pay_owner;

-- function pay.call_off_deliveries(text,text,integer)
CREATE OR REPLACE FUNCTION pay.call_off_deliveries(p_environment_id text, p_endpoint_id text, p_most integer)
 RETURNS boolean
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.call_off_deliveries(text,text,integer) owner to pay_owner;

-- function pay.call_off_inbox(text,text)
CREATE OR REPLACE FUNCTION pay.call_off_inbox(p_environment_id text, p_endpoint_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.call_off_inbox(text,text) owner to pay_owner;

-- function pay.called_off_at_once()
CREATE OR REPLACE FUNCTION pay.called_off_at_once()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.called_off_at_once() owner to pay_owner;

-- function pay.change_api_key(text,text,text,text,text,timestamp with time zone,text)
CREATE OR REPLACE FUNCTION pay.change_api_key(p_request text, p_action text, p_id text, p_key text, p_secret text, p_older_expire_at timestamp with time zone, p_refusal text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.change_api_key(text,text,text,text,text,timestamp with time zone,text) owner to pay_owner;
grant execute on function pay.change_api_key(text,text,text,text,text,timestamp with time zone,text) to pay_api;

-- function pay.change_provider_settings(text,text,text,text)
CREATE OR REPLACE FUNCTION pay.change_provider_settings(p_id text, p_before text, p_settings text, p_secret_name text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.change_provider_settings(text,text,text,text) owner to pay_owner;
grant execute on function pay.change_provider_settings(text,text,text,text) to pay_operator;

-- function pay.change_webhook_endpoint(text,text,integer,text)
CREATE OR REPLACE FUNCTION pay.change_webhook_endpoint(p_request text, p_id text, p_expects_revision integer, p_endpoint text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.change_webhook_endpoint(text,text,integer,text) owner to pay_owner;
grant execute on function pay.change_webhook_endpoint(text,text,integer,text) to pay_api;

-- function pay.changed_inboxes(text)
CREATE OR REPLACE FUNCTION pay.changed_inboxes(p_waiting text)
 RETURNS TABLE(endpoint_id text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.changed_inboxes(text) owner to pay_owner;
grant execute on function pay.changed_inboxes(text) to pay_api;

-- function pay.check_books()
CREATE OR REPLACE FUNCTION pay.check_books()
 RETURNS TABLE(oracle text, promise text, findings bigint, examples text[])
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.check_books() owner to pay_owner;
grant execute on function pay.check_books() to pay_operator;

-- function pay.check_transfers(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.check_transfers(p_records json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.check_transfers(json,pay.admission[]) owner to pay_owner;

-- function pay.claim(json,pay.admission[],json)
CREATE OR REPLACE FUNCTION pay.claim(p_requests json, p_found pay.admission[], p_payments json DEFAULT '[]'::json)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim(json,pay.admission[],json) owner to pay_owner;

-- function pay.claim_calls(integer,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.claim_calls(p_limit integer, p_at timestamp with time zone, p_leased_until timestamp with time zone)
 RETURNS SETOF pay.provider_work
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_calls(integer,timestamp with time zone,timestamp with time zone) owner to pay_owner;

-- function pay.claim_due(pay.due_delivery[],jsonb,integer,integer,integer,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.claim_due(p_due pay.due_delivery[], p_rooms jsonb, p_limit integer, p_per_environment integer, p_per_account integer, p_leased_until timestamp with time zone, p_ahead interval)
 RETURNS SETOF pay.claimed_delivery
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_due(pay.due_delivery[],jsonb,integer,integer,integer,timestamp with time zone,interval) owner to pay_owner;

-- function pay.claim_facts(integer,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.claim_facts(p_limit integer, p_at timestamp with time zone, p_leased_until timestamp with time zone)
 RETURNS SETOF pay.provider_work
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_facts(integer,timestamp with time zone,timestamp with time zone) owner to pay_owner;

-- function pay.claim_first_suspect(pay.due_delivery[],timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.claim_first_suspect(p_due pay.due_delivery[], p_leased_until timestamp with time zone, p_ahead interval)
 RETURNS SETOF pay.claimed_delivery
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_first_suspect(pay.due_delivery[],timestamp with time zone,interval) owner to pay_owner;

-- function pay.claim_looks(integer,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.claim_looks(p_limit integer, p_at timestamp with time zone)
 RETURNS SETOF pay.provider_work
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_looks(integer,timestamp with time zone) owner to pay_owner;

-- function pay.claim_one(text,pay.admission)
CREATE OR REPLACE FUNCTION pay.claim_one(p_request text, p_access pay.admission)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_one(text,pay.admission) owner to pay_owner;

-- function pay.claim_provider_work(integer,integer,integer,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.claim_provider_work(p_limit integer, p_asking_limit integer, p_lease_ms integer, p_at timestamp with time zone)
 RETURNS SETOF pay.provider_work
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.claim_provider_work(integer,integer,integer,timestamp with time zone) owner to pay_owner;
grant execute on function pay.claim_provider_work(integer,integer,integer,timestamp with time zone) to pay_api;

-- function pay.claim_readings(integer,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.claim_readings(p_limit integer, p_at timestamp with time zone, p_leased_until timestamp with time zone)
 RETURNS SETOF pay.provider_work
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_readings(integer,timestamp with time zone,timestamp with time zone) owner to pay_owner;

-- function pay.claim_suspect(jsonb,timestamp with time zone,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.claim_suspect(p_suspects_ahead jsonb, p_at timestamp with time zone, p_leased_until timestamp with time zone, p_ahead interval)
 RETURNS SETOF pay.claimed_delivery
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.claim_suspect(jsonb,timestamp with time zone,timestamp with time zone,interval) owner to pay_owner;

-- function pay.clock_batch()
CREATE OR REPLACE FUNCTION pay.clock_batch()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.clock_batch() owner to pay_owner;

-- function pay.clock_body(pay.sandbox_settings,boolean)
CREATE OR REPLACE FUNCTION pay.clock_body(p_settings pay.sandbox_settings, p_is_advance boolean)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.clock_body(pay.sandbox_settings,boolean) owner to pay_owner;

-- function pay.clock_ceiling()
CREATE OR REPLACE FUNCTION pay.clock_ceiling()
 RETURNS timestamp with time zone
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.clock_ceiling() owner to pay_owner;

-- function pay.clock_target(json,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.clock_target(p_command json, p_now timestamp with time zone, p_pending timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.clock_target(json,timestamp with time zone,timestamp with time zone) owner to pay_owner;

-- function pay.commit(text,text,text,text,text,text,text,integer,text)
CREATE OR REPLACE FUNCTION pay.commit(p_changes text, p_payments text, p_transfers text, p_refunds text, p_ledger text, p_events text, p_calls text DEFAULT '[]'::text, p_patience_ms integer DEFAULT NULL::integer, p_disputes text DEFAULT '[]'::text)
 RETURNS TABLE(n integer, outcome text, api_key_id text, environment_id text, remaining integer, status smallint, body text, detail text, deliveries bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.commit(text,text,text,text,text,text,text,integer,text) owner to pay_owner;
grant execute on function pay.commit(text,text,text,text,text,text,text,integer,text) to pay_api;

-- function pay.configure_relay(text,text)
CREATE OR REPLACE FUNCTION pay.configure_relay(p_url text, p_token text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.configure_relay(text,text) owner to pay_owner;
grant execute on function pay.configure_relay(text,text) to pay_operator;

-- function pay.count_attempts(text)
CREATE OR REPLACE FUNCTION pay.count_attempts(p_results text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.count_attempts(text) owner to pay_owner;

-- function pay.count_did(text,text,bigint)
CREATE OR REPLACE FUNCTION pay.count_did(p_environment_id text, p_name text, p_count bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.count_did(text,text,bigint) owner to pay_owner;

-- function pay.count_faults(json,integer[],text[])
CREATE OR REPLACE FUNCTION pay.count_faults(p_changes json, p_won integer[], p_environments text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.count_faults(json,integer[],text[]) owner to pay_owner;

-- function pay.count_ignored_notification(text)
CREATE OR REPLACE FUNCTION pay.count_ignored_notification(p_account_id text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.count_ignored_notification(text) owner to pay_owner;
grant execute on function pay.count_ignored_notification(text) to pay_api;

-- function pay.count_requests(pay.admission[])
CREATE OR REPLACE FUNCTION pay.count_requests(p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.count_requests(pay.admission[]) owner to pay_owner;

-- function pay.count_results(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.count_results(p_records json, p_found pay.admission[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.count_results(json,pay.admission[]) owner to pay_owner;

-- function pay.create_api_key(text,text,text,text[],text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.create_api_key(p_id text, p_environment_id text, p_name text, p_scopes text[], p_secret_hash text, p_prefix text, p_last_four text, p_expires_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.create_api_key(text,text,text,text[],text,text,text,timestamp with time zone) owner to pay_owner;
grant execute on function pay.create_api_key(text,text,text,text[],text,text,text,timestamp with time zone) to pay_operator;

-- function pay.create_environment(text,text,boolean,text)
CREATE OR REPLACE FUNCTION pay.create_environment(p_id text, p_account text, p_livemode boolean, p_name text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.create_environment(text,text,boolean,text) owner to pay_owner;
grant execute on function pay.create_environment(text,text,boolean,text) to pay_operator;

-- function pay.create_fault(text,text,integer)
CREATE OR REPLACE FUNCTION pay.create_fault(p_request text, p_fault text, p_limit integer)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.create_fault(text,text,integer) owner to pay_owner;
grant execute on function pay.create_fault(text,text,integer) to pay_api;

-- function pay.delay_delivery(text,text,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.delay_delivery(p_environment_id text, p_id text, p_at timestamp with time zone, p_wait interval)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.delay_delivery(text,text,timestamp with time zone,interval) owner to pay_owner;

-- function pay.delete_fault(text,text)
CREATE OR REPLACE FUNCTION pay.delete_fault(p_request text, p_id text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.delete_fault(text,text) owner to pay_owner;
grant execute on function pay.delete_fault(text,text) to pay_api;

-- function pay.delete_keys(text[])
CREATE OR REPLACE FUNCTION pay.delete_keys(p_ids text[])
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.delete_keys(text[]) owner to pay_owner;

-- function pay.delete_pending(text)
CREATE OR REPLACE FUNCTION pay.delete_pending(p_environment_id text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.delete_pending(text) owner to pay_owner;

-- function pay.delivery_id(text,smallint)
CREATE OR REPLACE FUNCTION pay.delivery_id(p_stem text, p_slot smallint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.delivery_id(text,smallint) owner to pay_owner;

-- function pay.disable_provider_account(text)
CREATE OR REPLACE FUNCTION pay.disable_provider_account(p_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.disable_provider_account(text) owner to pay_owner;
grant execute on function pay.disable_provider_account(text) to pay_operator;

-- function pay.disable_webhook_endpoint(text,text,integer,timestamp with time zone,text,text,text,text)
CREATE OR REPLACE FUNCTION pay.disable_webhook_endpoint(p_environment_id text, p_id text, p_expects_revision integer, p_at timestamp with time zone, p_endpoint_body text, p_event_id text, p_event_body text, p_delivery_id text)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.disable_webhook_endpoint(text,text,integer,timestamp with time zone,text,text,text,text) owner to pay_owner;
grant execute on function pay.disable_webhook_endpoint(text,text,integer,timestamp with time zone,text,text,text,text) to pay_api;

-- function pay.dismiss_fact(text,text,text)
CREATE OR REPLACE FUNCTION pay.dismiss_fact(p_account_id text, p_reference text, p_reason text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.dismiss_fact(text,text,text) owner to pay_owner;
grant execute on function pay.dismiss_fact(text,text,text) to pay_operator;

-- function pay.dispute_body(text,text,text)
CREATE OR REPLACE FUNCTION pay.dispute_body(p_environment_id text, p_payment_id text, p_object_id text)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.dispute_body(text,text,text) owner to pay_owner;

-- function pay.done_so_far(pay.sandbox_settings)
CREATE OR REPLACE FUNCTION pay.done_so_far(p_settings pay.sandbox_settings)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.done_so_far(pay.sandbox_settings) owner to pay_owner;

-- function pay.drop_ended_secrets(text[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.drop_ended_secrets(p_ids text[], p_at timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.drop_ended_secrets(text[],timestamp with time zone) owner to pay_owner;

-- function pay.due_relay()
CREATE OR REPLACE FUNCTION pay.due_relay()
 RETURNS TABLE(url text, token text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.due_relay() owner to pay_owner;
grant execute on function pay.due_relay() to pay_operator;

-- function pay.empty_inbox(text,text)
CREATE OR REPLACE FUNCTION pay.empty_inbox(p_environment_id text, p_endpoint_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.empty_inbox(text,text) owner to pay_owner;

-- function pay.end_api_key(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.end_api_key(p_id text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.end_api_key(text,timestamp with time zone) owner to pay_owner;

-- function pay.end_sandbox(text,text)
CREATE OR REPLACE FUNCTION pay.end_sandbox(p_request text, p_id text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.end_sandbox(text,text) owner to pay_owner;
grant execute on function pay.end_sandbox(text,text) to pay_api;

-- function pay.end_trigger(text,text,boolean,text,text)
CREATE OR REPLACE FUNCTION pay.end_trigger(p_request text, p_delivery_id text, p_delivered boolean, p_attempt text, p_exchange text DEFAULT NULL::text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.end_trigger(text,text,boolean,text,text) owner to pay_owner;
grant execute on function pay.end_trigger(text,text,boolean,text,text) to pay_api;

-- function pay.end_watches(timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.end_watches(p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.end_watches(timestamp with time zone,integer) owner to pay_owner;

-- function pay.environment_time(text)
CREATE OR REPLACE FUNCTION pay.environment_time(p_environment_id text)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.environment_time(text) owner to pay_owner;

-- function pay.exchange_retention()
CREATE OR REPLACE FUNCTION pay.exchange_retention()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.exchange_retention() owner to pay_owner;

-- function pay.export_payouts(text,boolean)
CREATE OR REPLACE FUNCTION pay.export_payouts(p_account_id text, p_again boolean)
 RETURNS SETOF json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.export_payouts(text,boolean) owner to pay_owner;
grant execute on function pay.export_payouts(text,boolean) to pay_operator;

-- function pay.fault_body(pay.faults)
CREATE OR REPLACE FUNCTION pay.fault_body(p_fault pay.faults)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.fault_body(pay.faults) owner to pay_owner;

-- function pay.fault_matches(jsonb,jsonb)
CREATE OR REPLACE FUNCTION pay.fault_matches(p_filter jsonb, p_thing jsonb)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.fault_matches(jsonb,jsonb) owner to pay_owner;

-- function pay.fill_inbox(text,text,integer)
CREATE OR REPLACE FUNCTION pay.fill_inbox(p_environment_id text, p_endpoint_id text, p_most integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.fill_inbox(text,text,integer) owner to pay_owner;

-- function pay.fill_inboxes(text[],text[])
CREATE OR REPLACE FUNCTION pay.fill_inboxes(p_environments text[], p_endpoints text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.fill_inboxes(text[],text[]) owner to pay_owner;

-- function pay.filtered_page(text,timestamp with time zone,json)
CREATE OR REPLACE FUNCTION pay.filtered_page(p_environment_id text, p_at timestamp with time zone, p_request json, OUT outcome text, OUT data text, OUT has_more boolean, OUT next_cursor text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_hashjoin TO 'off'
 SET enable_sort TO 'off'
 SET enable_incremental_sort TO 'off'
 SET jit TO 'off';
alter function pay.filtered_page(text,timestamp with time zone,json) owner to pay_owner;

-- function pay.final_minor(text,text)
CREATE OR REPLACE FUNCTION pay.final_minor(p_environment_id text, p_payment_id text)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.final_minor(text,text) owner to pay_owner;

-- function pay.find_answers(json,pay.admission[],boolean)
CREATE OR REPLACE FUNCTION pay.find_answers(p_requests json, p_found pay.admission[], p_is_read boolean)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.find_answers(json,pay.admission[],boolean) owner to pay_owner;

-- function pay.find_breaches(text)
CREATE OR REPLACE FUNCTION pay.find_breaches(p_oracle text)
 RETURNS TABLE(environment_id text, subject_id text, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.find_breaches(text) owner to pay_owner;

-- function pay.find_environment(text,boolean)
CREATE OR REPLACE FUNCTION pay.find_environment(p_account text, p_livemode boolean)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.find_environment(text,boolean) owner to pay_owner;
grant execute on function pay.find_environment(text,boolean) to pay_operator;

-- function pay.find_fact_subject(text,text,text)
CREATE OR REPLACE FUNCTION pay.find_fact_subject(p_environment_id text, p_account_id text, p_provider_reference text)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.find_fact_subject(text,text,text) owner to pay_owner;

-- function pay.find_providers(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.find_providers(p_calls json, INOUT p_found pay.admission[], OUT providers jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.find_providers(json,pay.admission[]) owner to pay_owner;

-- function pay.find_room(jsonb,integer,integer,integer,integer)
CREATE OR REPLACE FUNCTION pay.find_room(p_rooms jsonb, p_limit integer, p_per_endpoint integer, p_per_environment integer, p_per_account integer, OUT endpoints text[], OUT rooms integer[], OUT shares integer[], OUT reads integer[], OUT off_environment text, OUT off_endpoint text, OUT inbox_environments text[], OUT inbox_endpoints text[])
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.find_room(jsonb,integer,integer,integer,integer) owner to pay_owner;

-- function pay.forget_findings()
CREATE OR REPLACE FUNCTION pay.forget_findings()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.forget_findings() owner to pay_owner;
grant execute on function pay.forget_findings() to pay_operator;

-- function pay.free_seed(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.free_seed(p_root text, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.free_seed(text,timestamp with time zone) owner to pay_owner;

-- function pay.give_faults(pay.due_delivery[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.give_faults(p_due pay.due_delivery[], p_at timestamp with time zone)
 RETURNS pay.due_delivery[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.give_faults(pay.due_delivery[],timestamp with time zone) owner to pay_owner;

-- function pay.give_inbox_faults(text,text,integer,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.give_inbox_faults(p_environment_id text, p_endpoint_id text, p_most integer, p_at timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.give_inbox_faults(text,text,integer,timestamp with time zone) owner to pay_owner;

-- function pay.give_nonce(text,text,bigint,text,bigint)
CREATE OR REPLACE FUNCTION pay.give_nonce(p_account_id text, p_call_id text, p_chain_id bigint, p_signer text, p_count bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.give_nonce(text,text,bigint,text,bigint) owner to pay_owner;
grant execute on function pay.give_nonce(text,text,bigint,text,bigint) to pay_api;

-- function pay.give_real_times(pay.sandbox_settings,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.give_real_times(p_clock pay.sandbox_settings, p_to timestamp with time zone, OUT changed bigint, OUT reached timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.give_real_times(pay.sandbox_settings,timestamp with time zone) owner to pay_owner;

-- function pay.handle_facts(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.handle_facts(p_records json, p_found pay.admission[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off';
alter function pay.handle_facts(json,pay.admission[]) owner to pay_owner;

-- function pay.has_backlog(text)
CREATE OR REPLACE FUNCTION pay.has_backlog(p_environment_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.has_backlog(text) owner to pay_owner;

-- function pay.has_due_work(text,boolean)
CREATE OR REPLACE FUNCTION pay.has_due_work(p_environment_id text, p_sends boolean)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.has_due_work(text,boolean) owner to pay_owner;

-- function pay.has_entries(text)
CREATE OR REPLACE FUNCTION pay.has_entries(p_endpoint_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.has_entries(text) owner to pay_owner;

-- function pay.has_fact_call(text,text,text,text)
CREATE OR REPLACE FUNCTION pay.has_fact_call(p_environment_id text, p_account_id text, p_subject_id text, p_provider_reference text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.has_fact_call(text,text,text,text) owner to pay_owner;

-- function pay.has_ledger_entry(text,text)
CREATE OR REPLACE FUNCTION pay.has_ledger_entry(p_environment_id text, p_id text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.has_ledger_entry(text,text) owner to pay_owner;

-- function pay.hold_environment(text,boolean)
CREATE OR REPLACE FUNCTION pay.hold_environment(p_public_id text, p_is_alone boolean DEFAULT false)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.hold_environment(text,boolean) owner to pay_owner;

-- function pay.id_floor(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.id_floor(p_prefix text, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.id_floor(text,timestamp with time zone) owner to pay_owner;

-- function pay.idempotency_key_body(text,text,text)
CREATE OR REPLACE FUNCTION pay.idempotency_key_body(p_environment_id text, p_api_key_id text, p_key text)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.idempotency_key_body(text,text,text) owner to pay_owner;

-- function pay.idempotency_retention()
CREATE OR REPLACE FUNCTION pay.idempotency_retention()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.idempotency_retention() owner to pay_owner;

-- function pay.inbox_fill()
CREATE OR REPLACE FUNCTION pay.inbox_fill()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.inbox_fill() owner to pay_owner;

-- function pay.inbox_page(pay.webhook_endpoints,bigint,integer)
CREATE OR REPLACE FUNCTION pay.inbox_page(p_endpoint pay.webhook_endpoints, p_after bigint, p_most integer)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.inbox_page(pay.webhook_endpoints,bigint,integer) owner to pay_owner;

-- function pay.inbox_positions(text)
CREATE OR REPLACE FUNCTION pay.inbox_positions(p_environment_id text)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.inbox_positions(text) owner to pay_owner;

-- function pay.insert_webhook_endpoint(pay.webhook_endpoints)
CREATE OR REPLACE FUNCTION pay.insert_webhook_endpoint(p_endpoint pay.webhook_endpoints)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.insert_webhook_endpoint(pay.webhook_endpoints) owner to pay_owner;

-- function pay.is_held_back(pay.webhook_deliveries,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.is_held_back(p_delivery pay.webhook_deliveries, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.is_held_back(pay.webhook_deliveries,timestamp with time zone) owner to pay_owner;

-- function pay.is_reordered(text,text,text)
CREATE OR REPLACE FUNCTION pay.is_reordered(p_environment_id text, p_endpoint_id text, p_subject_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.is_reordered(text,text,text) owner to pay_owner;

-- function pay.judge_ended_keys(pay.admission[],bytea[],bigint[])
CREATE OR REPLACE FUNCTION pay.judge_ended_keys(p_found pay.admission[], p_hashes bytea[], p_versions bigint[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.judge_ended_keys(pay.admission[],bytea[],bigint[]) owner to pay_owner;

-- function pay.judge_key_change(text,pay.api_keys,pay.api_keys,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.judge_key_change(p_action text, p_caller pay.api_keys, p_key pay.api_keys, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.judge_key_change(text,pay.api_keys,pay.api_keys,timestamp with time zone) owner to pay_owner;

-- function pay.keep_answer(text,pay.admission)
CREATE OR REPLACE FUNCTION pay.keep_answer(p_request text, p_access pay.admission)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.keep_answer(text,pay.admission) owner to pay_owner;

-- function pay.keep_exchanges(text)
CREATE OR REPLACE FUNCTION pay.keep_exchanges(p_results text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.keep_exchanges(text) owner to pay_owner;

-- function pay.keep_facts(json)
CREATE OR REPLACE FUNCTION pay.keep_facts(p_facts json)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.keep_facts(json) owner to pay_owner;

-- function pay.keep_payout(text,text,text)
CREATE OR REPLACE FUNCTION pay.keep_payout(p_account_id text, p_call_id text, p_destination text)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.keep_payout(text,text,text) owner to pay_owner;
grant execute on function pay.keep_payout(text,text,text) to pay_api;

-- function pay.keep_transcript_line(text,bigint,text)
CREATE OR REPLACE FUNCTION pay.keep_transcript_line(p_key_hash text, p_n bigint, p_line text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.keep_transcript_line(text,bigint,text) owner to pay_owner;
grant execute on function pay.keep_transcript_line(text,bigint,text) to pay_api;

-- function pay.kept_exchanges()
CREATE OR REPLACE FUNCTION pay.kept_exchanges()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.kept_exchanges() owner to pay_owner;

-- function pay.kept_requests()
CREATE OR REPLACE FUNCTION pay.kept_requests()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.kept_requests() owner to pay_owner;

-- function pay.key_has_ended(pay.api_keys,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.key_has_ended(p_key pay.api_keys, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.key_has_ended(pay.api_keys,timestamp with time zone) owner to pay_owner;

-- function pay.last_due(text,timestamp with time zone,timestamp with time zone,boolean)
CREATE OR REPLACE FUNCTION pay.last_due(p_environment_id text, p_first timestamp with time zone, p_last timestamp with time zone, p_sends boolean)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.last_due(text,timestamp with time zone,timestamp with time zone,boolean) owner to pay_owner;

-- function pay.ledger_entry_id(text,smallint,text)
CREATE OR REPLACE FUNCTION pay.ledger_entry_id(p_transaction_id text, p_leg smallint, p_direction text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.ledger_entry_id(text,smallint,text) owner to pay_owner;

-- function pay.ledger_page(text,integer,text,jsonb)
CREATE OR REPLACE FUNCTION pay.ledger_page(p_environment_id text, p_limit integer, p_starting_after text, p_filters jsonb, OUT data text, OUT has_more boolean, OUT next_cursor text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.ledger_page(text,integer,text,jsonb) owner to pay_owner;

-- function pay.limit_list(json,pay.admission[],integer[],integer[],boolean)
CREATE OR REPLACE FUNCTION pay.limit_list(p_requests json, p_found pay.admission[], p_key_rates integer[], p_environment_rates integer[], p_is_read boolean)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.limit_list(json,pay.admission[],integer[],integer[],boolean) owner to pay_owner;

-- function pay.limit_requests(pay.admission[],integer[],integer[],boolean)
CREATE OR REPLACE FUNCTION pay.limit_requests(p_found pay.admission[], p_key_rates integer[], p_environment_rates integer[], p_counts boolean)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.limit_requests(pay.admission[],integer[],integer[],boolean) owner to pay_owner;

-- function pay.list(text)
CREATE OR REPLACE FUNCTION pay.list(p_requests text)
 RETURNS TABLE(n integer, outcome text, api_key_id text, environment_id text, remaining integer, data text, has_more boolean, next_cursor text, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.list(text) owner to pay_owner;
grant execute on function pay.list(text) to pay_api;

-- function pay.list_api_keys()
CREATE OR REPLACE FUNCTION pay.list_api_keys()
 RETURNS TABLE(id text, environment_id text, account text, environment_name text, livemode boolean, name text, scopes text[], prefix text, last_four text, secrets integer, last_used_at timestamp with time zone, created_at timestamp with time zone, expires_at timestamp with time zone, revoked_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_api_keys() owner to pay_owner;
grant execute on function pay.list_api_keys() to pay_operator;

-- function pay.list_column(text,jsonb)
CREATE OR REPLACE FUNCTION pay.list_column(p_kind text, p_filters jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_column(text,jsonb) owner to pay_owner;

-- function pay.list_final_facts(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.list_final_facts(p_account_id text, p_since timestamp with time zone)
 RETURNS TABLE(reference text, payment_id text, address text, amount_minor bigint, currency text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_final_facts(text,timestamp with time zone) owner to pay_owner;
grant execute on function pay.list_final_facts(text,timestamp with time zone) to pay_operator;

-- function pay.list_oracles()
CREATE OR REPLACE FUNCTION pay.list_oracles()
 RETURNS TABLE(oracle text, promise text)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_oracles() owner to pay_owner;

-- function pay.list_page(text,timestamp with time zone,text,integer,text,jsonb)
CREATE OR REPLACE FUNCTION pay.list_page(p_environment_id text, p_at timestamp with time zone, p_kind text, p_limit integer, p_starting_after text, p_filters jsonb, OUT data text, OUT has_more boolean, OUT next_cursor text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_page(text,timestamp with time zone,text,integer,text,jsonb) owner to pay_owner;

-- function pay.list_provider_accounts()
CREATE OR REPLACE FUNCTION pay.list_provider_accounts()
 RETURNS TABLE(id text, environment_id text, account text, connector text, method_kinds text[], settings json, secret_name text, notification_secret_names text[], status text, created_at timestamp with time zone, disabled_at timestamp with time zone, ignored_notifications bigint, polled_at timestamp with time zone, unsettled_calls bigint, stalled_since timestamp with time zone, last_error text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_provider_accounts() owner to pay_owner;
grant execute on function pay.list_provider_accounts() to pay_operator;

-- function pay.list_query(text,text,text[],text,text)
CREATE OR REPLACE FUNCTION pay.list_query(p_source text, p_range text, p_columns text[], p_match text, p_body text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_query(text,text,text[],text,text) owner to pay_owner;

-- function pay.list_range(text,text)
CREATE OR REPLACE FUNCTION pay.list_range(p_kind text, p_column text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_range(text,text) owner to pay_owner;

-- function pay.list_reported_facts()
CREATE OR REPLACE FUNCTION pay.list_reported_facts()
 RETURNS TABLE(account_id text, reference text, environment_id text, account text, outcome text, op text, state text, subject_id text, refund_id text, provider_reference text, amount_minor bigint, currency text, booked_minor bigint, happened_at timestamp with time zone, received_at timestamp with time zone, reason text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_reported_facts() owner to pay_owner;
grant execute on function pay.list_reported_facts() to pay_operator;

-- function pay.list_subject(text,text,jsonb)
CREATE OR REPLACE FUNCTION pay.list_subject(p_environment_id text, p_kind text, p_filters jsonb)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_subject(text,text,jsonb) owner to pay_owner;

-- function pay.list_unsettled_calls()
CREATE OR REPLACE FUNCTION pay.list_unsettled_calls()
 RETURNS TABLE(id text, environment_id text, account text, account_id text, op text, subject_id text, refund_id text, amount_minor bigint, currency text, state text, attempts integer, may_repeat boolean, created_at timestamp with time zone, next_attempt_at timestamp with time zone, provider_reference text, last_reply text, subject_status text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_unsettled_calls() owner to pay_owner;
grant execute on function pay.list_unsettled_calls() to pay_operator;

-- function pay.list_value(text,text)
CREATE OR REPLACE FUNCTION pay.list_value(p_kind text, p_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.list_value(text,text) owner to pay_owner;

-- function pay.load(text)
CREATE OR REPLACE FUNCTION pay.load(p_requests text)
 RETURNS TABLE(n integer, outcome text, api_key_id text, environment_id text, remaining integer, status smallint, body text, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.load(text) owner to pay_owner;
grant execute on function pay.load(text) to pay_api;

-- function pay.load_webhook_endpoint(text,text)
CREATE OR REPLACE FUNCTION pay.load_webhook_endpoint(p_environment_id text, p_id text)
 RETURNS TABLE(revision integer, status text, body text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.load_webhook_endpoint(text,text) owner to pay_owner;
grant execute on function pay.load_webhook_endpoint(text,text) to pay_api;

-- function pay.lock_calls(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.lock_calls(p_records json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.lock_calls(json,pay.admission[]) owner to pay_owner;

-- function pay.lock_due(text[],integer[],integer[],integer[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.lock_due(p_endpoints text[], p_rooms integer[], p_shares integer[], p_reads integer[], p_at timestamp with time zone)
 RETURNS pay.due_delivery[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.lock_due(text[],integer[],integer[],integer[],timestamp with time zone) owner to pay_owner;

-- function pay.lock_facts(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.lock_facts(p_records json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off';
alter function pay.lock_facts(json,pay.admission[]) owner to pay_owner;

-- function pay.lock_faults(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.lock_faults(p_changes json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.lock_faults(json,pay.admission[]) owner to pay_owner;

-- function pay.lock_funds(json,json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.lock_funds(p_changes json, p_transfers json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.lock_funds(json,json,pay.admission[]) owner to pay_owner;

-- function pay.lock_subjects(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.lock_subjects(p_changes json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.lock_subjects(json,pay.admission[]) owner to pay_owner;

-- function pay.lock_suspects(jsonb,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.lock_suspects(p_ahead jsonb, p_at timestamp with time zone)
 RETURNS pay.due_delivery[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.lock_suspects(jsonb,timestamp with time zone) owner to pay_owner;

-- function pay.longest_advance()
CREATE OR REPLACE FUNCTION pay.longest_advance()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.longest_advance() owner to pay_owner;

-- function pay.make_sandbox(text,text,text)
CREATE OR REPLACE FUNCTION pay.make_sandbox(p_request text, p_sandbox text, p_secret text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.make_sandbox(text,text,text) owner to pay_owner;
grant execute on function pay.make_sandbox(text,text,text) to pay_api;

-- function pay.match_fault(text,text,text,boolean)
CREATE OR REPLACE FUNCTION pay.match_fault(p_request text, p_kind text, p_thing text, p_takes boolean)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.match_fault(text,text,text,boolean) owner to pay_owner;
grant execute on function pay.match_fault(text,text,text,boolean) to pay_api;

-- function pay.max_active_keys()
CREATE OR REPLACE FUNCTION pay.max_active_keys()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_active_keys() owner to pay_owner;

-- function pay.max_kept_sandboxes()
CREATE OR REPLACE FUNCTION pay.max_kept_sandboxes()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_kept_sandboxes() owner to pay_owner;

-- function pay.max_live_secrets()
CREATE OR REPLACE FUNCTION pay.max_live_secrets()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_live_secrets() owner to pay_owner;

-- function pay.max_pending_deliveries()
CREATE OR REPLACE FUNCTION pay.max_pending_deliveries()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_pending_deliveries() owner to pay_owner;

-- function pay.max_sandboxes()
CREATE OR REPLACE FUNCTION pay.max_sandboxes()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_sandboxes() owner to pay_owner;

-- function pay.max_transcript_bytes()
CREATE OR REPLACE FUNCTION pay.max_transcript_bytes()
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_transcript_bytes() owner to pay_owner;

-- function pay.max_transcript_lines()
CREATE OR REPLACE FUNCTION pay.max_transcript_lines()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_transcript_lines() owner to pay_owner;

-- function pay.max_windows_ahead()
CREATE OR REPLACE FUNCTION pay.max_windows_ahead()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.max_windows_ahead() owner to pay_owner;

-- function pay.missed_deliveries(text,text,text,text,text,text[],integer)
CREATE OR REPLACE FUNCTION pay.missed_deliveries(p_environment_id text, p_endpoint_id text, p_from text, p_before text, p_after text, p_statuses text[], p_most_read integer, OUT ids text[], OUT cursor text)
 RETURNS record
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.missed_deliveries(text,text,text,text,text,text[],integer) owner to pay_owner;

-- function pay.most_counted()
CREATE OR REPLACE FUNCTION pay.most_counted()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.most_counted() owner to pay_owner;

-- function pay.move_clock(pay.sandbox_settings,boolean)
CREATE OR REPLACE FUNCTION pay.move_clock(p_clock pay.sandbox_settings, p_sends boolean)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.move_clock(pay.sandbox_settings,boolean) owner to pay_owner;

-- function pay.move_environment(text,text,timestamp with time zone,boolean)
CREATE OR REPLACE FUNCTION pay.move_environment(p_old text, p_new text, p_at timestamp with time zone, p_with_endpoints boolean)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.move_environment(text,text,timestamp with time zone,boolean) owner to pay_owner;

-- function pay.new_settings_version()
CREATE OR REPLACE FUNCTION pay.new_settings_version()
 RETURNS bigint
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.new_settings_version() owner to pay_owner;

-- function pay.next_due(text,boolean)
CREATE OR REPLACE FUNCTION pay.next_due(p_environment_id text, p_sends boolean)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.next_due(text,boolean) owner to pay_owner;

-- function pay.next_fault(text,text,jsonb,boolean,text)
CREATE OR REPLACE FUNCTION pay.next_fault(p_environment_id text, p_kind text, p_thing jsonb, p_takes boolean, p_without text DEFAULT NULL::text)
 RETURNS pay.faults
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.next_fault(text,text,jsonb,boolean,text) owner to pay_owner;

-- function pay.next_xpub_index(text)
CREATE OR REPLACE FUNCTION pay.next_xpub_index(p_xpub text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.next_xpub_index(text) owner to pay_owner;

-- function pay.note_calls(text)
CREATE OR REPLACE FUNCTION pay.note_calls(p_calls text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.note_calls(text) owner to pay_owner;
grant execute on function pay.note_calls(text) to pay_api;

-- function pay.note_failing_endpoints(text[],text[],boolean[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.note_failing_endpoints(p_environments text[], p_ids text[], p_to_success boolean[], p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.note_failing_endpoints(text[],text[],boolean[],timestamp with time zone) owner to pay_owner;

-- function pay.note_fault_kinds(text)
CREATE OR REPLACE FUNCTION pay.note_fault_kinds(p_environment_id text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.note_fault_kinds(text) owner to pay_owner;

-- function pay.note_findings()
CREATE OR REPLACE FUNCTION pay.note_findings()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.note_findings() owner to pay_owner;
grant execute on function pay.note_findings() to pay_operator;

-- function pay.note_payout_fees(text,text,bigint,bigint)
CREATE OR REPLACE FUNCTION pay.note_payout_fees(p_account_id text, p_call_id text, p_max_fee bigint, p_priority_fee bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.note_payout_fees(text,text,bigint,bigint) owner to pay_owner;
grant execute on function pay.note_payout_fees(text,text,bigint,bigint) to pay_api;

-- function pay.note_payout_hash(text,text,text)
CREATE OR REPLACE FUNCTION pay.note_payout_hash(p_account_id text, p_call_id text, p_tx_hash text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.note_payout_hash(text,text,text) owner to pay_owner;
grant execute on function pay.note_payout_hash(text,text,text) to pay_api;

-- function pay.note_requests(text,text,text)
CREATE OR REPLACE FUNCTION pay.note_requests(p_keys text, p_requests text, p_replays text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.note_requests(text,text,text) owner to pay_owner;
grant execute on function pay.note_requests(text,text,text) to pay_api;

-- function pay.note_use(bytea[],pay.admission[])
CREATE OR REPLACE FUNCTION pay.note_use(p_hashes bytea[], p_found pay.admission[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.note_use(bytea[],pay.admission[]) owner to pay_owner;

-- function pay.note_wake(bigint)
CREATE OR REPLACE FUNCTION pay.note_wake(p_request_id bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.note_wake(bigint) owner to pay_owner;
grant execute on function pay.note_wake(bigint) to pay_operator;

-- function pay.number_request(text)
CREATE OR REPLACE FUNCTION pay.number_request(p_key_hash text)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.number_request(text) owner to pay_owner;
grant execute on function pay.number_request(text) to pay_api;

-- function pay.open_by_hash(text)
CREATE OR REPLACE FUNCTION pay.open_by_hash(p_key_hash text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.open_by_hash(text) owner to pay_owner;

-- function pay.open_payouts(text)
CREATE OR REPLACE FUNCTION pay.open_payouts(p_account_id text)
 RETURNS SETOF json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.open_payouts(text) owner to pay_owner;
grant execute on function pay.open_payouts(text) to pay_api;
grant execute on function pay.open_payouts(text) to pay_operator;

-- function pay.open_records(json)
CREATE OR REPLACE FUNCTION pay.open_records(p_records json)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.open_records(json) owner to pay_owner;

-- function pay.page_bytes()
CREATE OR REPLACE FUNCTION pay.page_bytes()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.page_bytes() owner to pay_owner;

-- function pay.page_movements(text,text,text,text,text,integer)
CREATE OR REPLACE FUNCTION pay.page_movements(p_environment_id text, p_subject_id text, p_transaction_id text, p_account text, p_before text, p_limit integer)
 RETURNS TABLE(movement pay.ledger_movements, n bigint)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.page_movements(text,text,text,text,text,integer) owner to pay_owner;

-- function pay.page_rows()
CREATE OR REPLACE FUNCTION pay.page_rows()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.page_rows() owner to pay_owner;

-- function pay.paid_payouts(text,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.paid_payouts(p_account_id text, p_from timestamp with time zone, p_to timestamp with time zone)
 RETURNS SETOF json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.paid_payouts(text,timestamp with time zone,timestamp with time zone) owner to pay_owner;
grant execute on function pay.paid_payouts(text,timestamp with time zone,timestamp with time zone) to pay_api;

-- function pay.patterns_of(text)
CREATE OR REPLACE FUNCTION pay.patterns_of(p_type text)
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.patterns_of(text) owner to pay_owner;

-- function pay.pause_reading(text)
CREATE OR REPLACE FUNCTION pay.pause_reading(p_account_id text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.pause_reading(text) owner to pay_owner;
grant execute on function pay.pause_reading(text) to pay_api;

-- function pay.payout_json(pay.chain_payouts)
CREATE OR REPLACE FUNCTION pay.payout_json(p_payout pay.chain_payouts)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.payout_json(pay.chain_payouts) owner to pay_owner;

-- function pay.planned_clock(pay.sandbox_settings,json,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.planned_clock(p_before pay.sandbox_settings, p_command json, p_now timestamp with time zone)
 RETURNS pay.sandbox_settings
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.planned_clock(pay.sandbox_settings,json,timestamp with time zone) owner to pay_owner;

-- function pay.provider_account_json(text,text)
CREATE OR REPLACE FUNCTION pay.provider_account_json(p_environment_id text, p_account_id text)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.provider_account_json(text,text) owner to pay_owner;

-- function pay.provider_call_json(pay.provider_calls)
CREATE OR REPLACE FUNCTION pay.provider_call_json(p_call pay.provider_calls)
 RETURNS json
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.provider_call_json(pay.provider_calls) owner to pay_owner;

-- function pay.provider_fact_json(pay.provider_facts)
CREATE OR REPLACE FUNCTION pay.provider_fact_json(p_fact pay.provider_facts)
 RETURNS json
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.provider_fact_json(pay.provider_facts) owner to pay_owner;

-- function pay.provider_work_is_due()
CREATE OR REPLACE FUNCTION pay.provider_work_is_due()
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.provider_work_is_due() owner to pay_owner;

-- function pay.purge(timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge(p_at timestamp with time zone DEFAULT now(), p_batch integer DEFAULT 1000)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge(timestamp with time zone,integer) owner to pay_owner;
grant execute on function pay.purge(timestamp with time zone,integer) to pay_api;
grant execute on function pay.purge(timestamp with time zone,integer) to pay_operator;

-- function pay.purge_exchanges(timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge_exchanges(p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge_exchanges(timestamp with time zone,integer) owner to pay_owner;

-- function pay.purge_idempotency_keys(text,timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge_idempotency_keys(p_environment_id text, p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge_idempotency_keys(text,timestamp with time zone,integer) owner to pay_owner;

-- function pay.purge_keys(text,timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge_keys(p_environment_id text, p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge_keys(text,timestamp with time zone,integer) owner to pay_owner;

-- function pay.purge_old(text,boolean,timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge_old(p_environment_id text, p_livemode boolean, p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge_old(text,boolean,timestamp with time zone,integer) owner to pay_owner;

-- function pay.purge_requests(text,timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge_requests(p_environment_id text, p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge_requests(text,timestamp with time zone,integer) owner to pay_owner;

-- function pay.purge_retired(text,integer)
CREATE OR REPLACE FUNCTION pay.purge_retired(p_environment_id text, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.purge_retired(text,integer) owner to pay_owner;

-- function pay.purge_sandbox(text,integer)
CREATE OR REPLACE FUNCTION pay.purge_sandbox(p_environment_id text, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge_sandbox(text,integer) owner to pay_owner;

-- function pay.purge_sandboxes(timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge_sandboxes(p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.purge_sandboxes(timestamp with time zone,integer) owner to pay_owner;

-- function pay.put_after_next(text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.put_after_next(p_environment_id text, p_id text, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.put_after_next(text,text,timestamp with time zone) owner to pay_owner;

-- function pay.put_off_behind_held(text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.put_off_behind_held(p_environment_id text, p_endpoint_id text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.put_off_behind_held(text,text,timestamp with time zone) owner to pay_owner;

-- function pay.put_off_deliveries(pay.due_delivery[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.put_off_deliveries(p_due pay.due_delivery[], p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.put_off_deliveries(pay.due_delivery[],timestamp with time zone) owner to pay_owner;

-- function pay.read_books()
CREATE OR REPLACE FUNCTION pay.read_books()
 RETURNS TABLE(oracle_findings bigint, books_checked_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_books() owner to pay_owner;
grant execute on function pay.read_books() to pay_operator;

-- function pay.read_challenge(text)
CREATE OR REPLACE FUNCTION pay.read_challenge(p_token text)
 RETURNS TABLE(environment_id text, account text, body text, settings text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.read_challenge(text) owner to pay_owner;
grant execute on function pay.read_challenge(text) to pay_api;

-- function pay.read_clock(text)
CREATE OR REPLACE FUNCTION pay.read_clock(p_request text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.read_clock(text) owner to pay_owner;
grant execute on function pay.read_clock(text) to pay_api;

-- function pay.read_cron()
CREATE OR REPLACE FUNCTION pay.read_cron()
 RETURNS TABLE(last_relay_wake_at timestamp with time zone, last_retention_at timestamp with time zone, failed_cron_runs bigint)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_cron() owner to pay_owner;
grant execute on function pay.read_cron() to pay_operator;

-- function pay.read_inbox(text,text,bigint,integer)
CREATE OR REPLACE FUNCTION pay.read_inbox(p_request text, p_id text, p_after bigint, p_most integer)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.read_inbox(text,text,bigint,integer) owner to pay_owner;
grant execute on function pay.read_inbox(text,text,bigint,integer) to pay_api;

-- function pay.read_outbox()
CREATE OR REPLACE FUNCTION pay.read_outbox()
 RETURNS TABLE(due_deliveries bigint, oldest_due_seconds double precision, pending_deliveries bigint, failed_deliveries_last_hour bigint, failing_endpoints bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_outbox() owner to pay_owner;
grant execute on function pay.read_outbox() to pay_operator;

-- function pay.read_provider_account(text)
CREATE OR REPLACE FUNCTION pay.read_provider_account(p_id text)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off';
alter function pay.read_provider_account(text) owner to pay_owner;
grant execute on function pay.read_provider_account(text) to pay_api;

-- function pay.read_provider_call(text)
CREATE OR REPLACE FUNCTION pay.read_provider_call(p_id text)
 RETURNS SETOF pay.provider_work
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_provider_call(text) owner to pay_owner;
grant execute on function pay.read_provider_call(text) to pay_operator;

-- function pay.read_provider_subject(text,text,text,text,text)
CREATE OR REPLACE FUNCTION pay.read_provider_subject(p_environment_id text, p_subject_id text, p_refund_id text, p_account_id text, p_reference text)
 RETURNS TABLE(subject_body text, refund_body text, dispute_body text, booked_minor bigint, transfers json)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.read_provider_subject(text,text,text,text,text) owner to pay_owner;
grant execute on function pay.read_provider_subject(text,text,text,text,text) to pay_api;
grant execute on function pay.read_provider_subject(text,text,text,text,text) to pay_operator;

-- function pay.read_providers()
CREATE OR REPLACE FUNCTION pay.read_providers()
 RETURNS TABLE(unsettled_calls bigint, oldest_unsettled_call_seconds double precision, unmatched_facts bigint, stalled_readings bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_providers() owner to pay_owner;
grant execute on function pay.read_providers() to pay_operator;

-- function pay.read_reported_facts(text,text,text,text)
CREATE OR REPLACE FUNCTION pay.read_reported_facts(p_account_id text, p_reference text, p_subject_id text, p_refund_id text)
 RETURNS SETOF pay.provider_work
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_reported_facts(text,text,text,text) owner to pay_owner;
grant execute on function pay.read_reported_facts(text,text,text,text) to pay_operator;

-- function pay.read_resource(text,text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.read_resource(p_environment_id text, p_api_key_id text, p_kind text, p_id text, p_at timestamp with time zone, OUT body text, OUT detail text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_resource(text,text,text,text,timestamp with time zone) owner to pay_owner;

-- function pay.read_service()
CREATE OR REPLACE FUNCTION pay.read_service()
 RETURNS TABLE(is_retention_behind boolean, test_keys bigint, live_keys bigint, is_relay_configured boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_service() owner to pay_owner;
grant execute on function pay.read_service() to pay_operator;

-- function pay.read_totals(text)
CREATE OR REPLACE FUNCTION pay.read_totals(p_environment_id text)
 RETURNS TABLE(currency text, debit_account text, credit_account text, amount_minor numeric)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off';
alter function pay.read_totals(text) owner to pay_owner;

-- function pay.read_wakes()
CREATE OR REPLACE FUNCTION pay.read_wakes()
 RETURNS TABLE(last_relay_status integer, failed_relay_wakes_last_hour bigint)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.read_wakes() owner to pay_owner;
grant execute on function pay.read_wakes() to pay_operator;

-- function pay.real_due(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.real_due(p_environment_id text, p_due_at timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.real_due(text,timestamp with time zone) owner to pay_owner;

-- function pay.real_due_at(pay.sandbox_settings,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.real_due_at(p_settings pay.sandbox_settings, p_due_at timestamp with time zone)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.real_due_at(pay.sandbox_settings,timestamp with time zone) owner to pay_owner;

-- function pay.recent_suffix()
CREATE OR REPLACE FUNCTION pay.recent_suffix()
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.recent_suffix() owner to pay_owner;

-- function pay.recent_wakes()
CREATE OR REPLACE FUNCTION pay.recent_wakes()
 RETURNS TABLE(request_id bigint, woken_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.recent_wakes() owner to pay_owner;
grant execute on function pay.recent_wakes() to pay_operator;

-- function pay.reconcile()
CREATE OR REPLACE FUNCTION pay.reconcile()
 RETURNS TABLE(oracle text, environment_id text, subject_id text, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.reconcile() owner to pay_owner;
grant execute on function pay.reconcile() to pay_operator;

-- function pay.record(text,text,text,text,text,text,text,text)
CREATE OR REPLACE FUNCTION pay.record(p_records text, p_payments text, p_transfers text, p_refunds text, p_ledger text, p_events text, p_calls text, p_disputes text DEFAULT '[]'::text)
 RETURNS TABLE(n integer, outcome text, is_settled boolean, deliveries bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_hashjoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.record(text,text,text,text,text,text,text,text) owner to pay_owner;
grant execute on function pay.record(text,text,text,text,text,text,text,text) to pay_api;
grant execute on function pay.record(text,text,text,text,text,text,text,text) to pay_operator;

-- function pay.record_attempts(text,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.record_attempts(p_results text, p_at timestamp with time zone, p_ahead interval)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.record_attempts(text,timestamp with time zone,interval) owner to pay_owner;

-- function pay.record_movements(json,integer[],text[])
CREATE OR REPLACE FUNCTION pay.record_movements(p_ledger json, p_changes integer[], p_environments text[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.record_movements(json,integer[],text[]) owner to pay_owner;

-- function pay.record_results(text,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.record_results(p_results text, p_at timestamp with time zone, p_ahead interval, OUT next_environments text[], OUT next_ids text[], OUT turned_environments text[], OUT turned_ids text[], OUT turned_to_success boolean[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.record_results(text,timestamp with time zone,interval) owner to pay_owner;

-- function pay.recover_deliveries(text,text,text,text,text,text[],text)
CREATE OR REPLACE FUNCTION pay.recover_deliveries(p_request text, p_id text, p_from text, p_before text, p_after text, p_statuses text[], p_refusal text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.recover_deliveries(text,text,text,text,text,text[],text) owner to pay_owner;
grant execute on function pay.recover_deliveries(text,text,text,text,text,text[],text) to pay_api;

-- function pay.redeliver(text,text,text)
CREATE OR REPLACE FUNCTION pay.redeliver(p_request text, p_id text, p_refusal text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.redeliver(text,text,text) owner to pay_owner;
grant execute on function pay.redeliver(text,text,text) to pay_api;

-- function pay.refuse_backlog(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.refuse_backlog(p_events json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.refuse_backlog(json,pay.admission[]) owner to pay_owner;

-- function pay.relay_turn(text,text,integer,integer,integer,integer,text,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.relay_turn(p_results text, p_rooms text, p_limit integer, p_per_endpoint integer, p_per_environment integer, p_per_account integer, p_suspects_ahead text, p_at timestamp with time zone, p_leased_until timestamp with time zone)
 RETURNS SETOF pay.claimed_delivery
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.relay_turn(text,text,integer,integer,integer,integer,text,timestamp with time zone,timestamp with time zone) owner to pay_owner;
grant execute on function pay.relay_turn(text,text,integer,integer,integer,integer,text,timestamp with time zone,timestamp with time zone) to pay_api;

-- function pay.release_key(text,pay.admission)
CREATE OR REPLACE FUNCTION pay.release_key(p_request text, p_access pay.admission)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.release_key(text,pay.admission) owner to pay_owner;

-- function pay.release_next_deliveries(text[],text[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.release_next_deliveries(p_environments text[], p_ids text[], p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.release_next_deliveries(text[],text[],timestamp with time zone) owner to pay_owner;

-- function pay.release_overtaken(text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.release_overtaken(p_environment_id text, p_endpoint_id text, p_subject_id text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.release_overtaken(text,text,text,timestamp with time zone) owner to pay_owner;

-- function pay.release_reordered(text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.release_reordered(p_environment_id text, p_endpoint_id text, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.release_reordered(text,text,timestamp with time zone) owner to pay_owner;

-- function pay.reopen_facts(json)
CREATE OR REPLACE FUNCTION pay.reopen_facts(p_calls json)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.reopen_facts(json) owner to pay_owner;

-- function pay.request_body(pay.requests)
CREATE OR REPLACE FUNCTION pay.request_body(p_request pay.requests)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.request_body(pay.requests) owner to pay_owner;

-- function pay.requests_used(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.requests_used(p_environment_id text, p_at timestamp with time zone)
 RETURNS TABLE(api_key_id text, used numeric)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off';
alter function pay.requests_used(text,timestamp with time zone) owner to pay_owner;

-- function pay.reread_account(text,text)
CREATE OR REPLACE FUNCTION pay.reread_account(p_account_id text, p_cursor text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.reread_account(text,text) owner to pay_owner;
grant execute on function pay.reread_account(text,text) to pay_operator;

-- function pay.reset_sandbox(text,text,boolean)
CREATE OR REPLACE FUNCTION pay.reset_sandbox(p_request text, p_environment_id text, p_with_endpoints boolean DEFAULT false)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.reset_sandbox(text,text,boolean) owner to pay_owner;
grant execute on function pay.reset_sandbox(text,text,boolean) to pay_api;

-- function pay.restart_seeded(text,text)
CREATE OR REPLACE FUNCTION pay.restart_seeded(p_old text, p_new text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.restart_seeded(text,text) owner to pay_owner;

-- function pay.retire_sandbox(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.retire_sandbox(p_public_id text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.retire_sandbox(text,timestamp with time zone) owner to pay_owner;

-- function pay.revoke_api_key(text)
CREATE OR REPLACE FUNCTION pay.revoke_api_key(p_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.revoke_api_key(text) owner to pay_owner;
grant execute on function pay.revoke_api_key(text) to pay_operator;

-- function pay.rotate_api_key(text,text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.rotate_api_key(p_id text, p_secret_hash text, p_prefix text, p_last_four text, p_older_expire_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.rotate_api_key(text,text,text,text,timestamp with time zone) owner to pay_owner;
grant execute on function pay.rotate_api_key(text,text,text,text,timestamp with time zone) to pay_operator;

-- function pay.sandbox_body(pay.sandboxes)
CREATE OR REPLACE FUNCTION pay.sandbox_body(p_sandbox pay.sandboxes)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.sandbox_body(pay.sandboxes) owner to pay_owner;

-- function pay.sandbox_reset_body(text,boolean,boolean)
CREATE OR REPLACE FUNCTION pay.sandbox_reset_body(p_environment_id text, p_with_endpoints boolean, p_has_claim boolean)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET max_parallel_workers_per_gather TO '0';
alter function pay.sandbox_reset_body(text,boolean,boolean) owner to pay_owner;

-- function pay.save_cursor(text,text,boolean)
CREATE OR REPLACE FUNCTION pay.save_cursor(p_account_id text, p_cursor text, p_is_done boolean)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.save_cursor(text,text,boolean) owner to pay_owner;
grant execute on function pay.save_cursor(text,text,boolean) to pay_api;

-- function pay.save_totals_cursor(text,date,text)
CREATE OR REPLACE FUNCTION pay.save_totals_cursor(p_account_id text, p_day date, p_cursor text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.save_totals_cursor(text,date,text) owner to pay_owner;
grant execute on function pay.save_totals_cursor(text,date,text) to pay_api;

-- function pay.seed_root(text,text)
CREATE OR REPLACE FUNCTION pay.seed_root(p_account text, p_seed text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.seed_root(text,text) owner to pay_owner;

-- function pay.server_time()
CREATE OR REPLACE FUNCTION pay.server_time()
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.server_time() owner to pay_owner;
comment on function pay.server_time() is 'Internal.';

-- function pay.set_clock(text,text)
CREATE OR REPLACE FUNCTION pay.set_clock(p_request text, p_command text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.set_clock(text,text) owner to pay_owner;
grant execute on function pay.set_clock(text,text) to pay_api;

-- function pay.settle_calls(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.settle_calls(p_records json, p_found pay.admission[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.settle_calls(json,pay.admission[]) owner to pay_owner;

-- function pay.stall_reading(text,text)
CREATE OR REPLACE FUNCTION pay.stall_reading(p_account_id text, p_error text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.stall_reading(text,text) owner to pay_owner;
grant execute on function pay.stall_reading(text,text) to pay_api;

-- function pay.step_answer(pay.sandbox_settings,json,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.step_answer(p_clock pay.sandbox_settings, p_answer json, p_target timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.step_answer(pay.sandbox_settings,json,timestamp with time zone) owner to pay_owner;

-- function pay.step_clock(text,text,boolean)
CREATE OR REPLACE FUNCTION pay.step_clock(p_environment_id text, p_answer text, p_sends boolean)
 RETURNS TABLE(state text, body text, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s';
alter function pay.step_clock(text,text,boolean) owner to pay_owner;
grant execute on function pay.step_clock(text,text,boolean) to pay_api;

-- function pay.stop_waiting(pay.sandbox_settings)
CREATE OR REPLACE FUNCTION pay.stop_waiting(p_clock pay.sandbox_settings)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_sort TO 'off'
 SET enable_bitmapscan TO 'off';
alter function pay.stop_waiting(pay.sandbox_settings) owner to pay_owner;

-- function pay.store_facts(text,text)
CREATE OR REPLACE FUNCTION pay.store_facts(p_account_id text, p_facts text)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.store_facts(text,text) owner to pay_owner;
grant execute on function pay.store_facts(text,text) to pay_api;

-- function pay.store_totals(text,date,text)
CREATE OR REPLACE FUNCTION pay.store_totals(p_account_id text, p_day date, p_totals text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.store_totals(text,date,text) owner to pay_owner;
grant execute on function pay.store_totals(text,date,text) to pay_api;

-- function pay.take_key_place(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.take_key_place(p_environment_id text, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.take_key_place(text,timestamp with time zone) owner to pay_owner;

-- function pay.take_places(pay.due_delivery[],jsonb,integer,integer,integer)
CREATE OR REPLACE FUNCTION pay.take_places(p_due pay.due_delivery[], p_rooms jsonb, p_limit integer, p_per_environment integer, p_per_account integer)
 RETURNS TABLE(environment_id text, id text, endpoint_id text, subject_id text, sequence integer, event_id text, rank_of_endpoint bigint, url text, secrets text, failing_since timestamp with time zone, livemode boolean, public_id text, account text)
 LANGUAGE plpgsql
 STABLE ROWS 10
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.take_places(pay.due_delivery[],jsonb,integer,integer,integer) owner to pay_owner;

-- function pay.take_sandbox_place(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.take_sandbox_place(p_account text, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.take_sandbox_place(text,timestamp with time zone) owner to pay_owner;

-- function pay.taken_transfers(text,text)
CREATE OR REPLACE FUNCTION pay.taken_transfers(p_account_id text, p_transfers text)
 RETURNS SETOF text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.taken_transfers(text,text) owner to pay_owner;
grant execute on function pay.taken_transfers(text,text) to pay_api;

-- function pay.time_ahead(pay.sandbox_settings)
CREATE OR REPLACE FUNCTION pay.time_ahead(p_settings pay.sandbox_settings)
 RETURNS interval
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.time_ahead(pay.sandbox_settings) owner to pay_owner;

-- function pay.transcript(text)
CREATE OR REPLACE FUNCTION pay.transcript(p_request text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan';
alter function pay.transcript(text) owner to pay_owner;
grant execute on function pay.transcript(text) to pay_api;

-- function pay.transfer_reports(text,text,text)
CREATE OR REPLACE FUNCTION pay.transfer_reports(p_environment_id text, p_account_id text, p_reference text)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.transfer_reports(text,text,text) owner to pay_owner;

-- function pay.transfers_json(pay.provider_facts,text)
CREATE OR REPLACE FUNCTION pay.transfers_json(p_fact pay.provider_facts, p_payment_id text)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.transfers_json(pay.provider_facts,text) owner to pay_owner;

-- function pay.unread_deliveries(text,text)
CREATE OR REPLACE FUNCTION pay.unread_deliveries(p_environment_id text, p_endpoint_id text)
 RETURNS text[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.unread_deliveries(text,text) owner to pay_owner;

-- function pay.update_calls(json)
CREATE OR REPLACE FUNCTION pay.update_calls(p_calls json)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.update_calls(json) owner to pay_owner;

-- function pay.waits_for_fault(pay.webhook_deliveries)
CREATE OR REPLACE FUNCTION pay.waits_for_fault(p_delivery pay.webhook_deliveries)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.waits_for_fault(pay.webhook_deliveries) owner to pay_owner;

-- function pay.wake_relay()
CREATE OR REPLACE FUNCTION pay.wake_relay()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.wake_relay() owner to pay_owner;
grant execute on function pay.wake_relay() to pay_operator;

-- function pay.watched_deposits(text,bigint,integer)
CREATE OR REPLACE FUNCTION pay.watched_deposits(p_account_id text, p_after bigint, p_limit integer)
 RETURNS TABLE(xpub_index bigint, payment_id text, address text, currency text, expires_at text, is_open boolean, has_open_facts boolean, unfinal json)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_sort TO 'off';
alter function pay.watched_deposits(text,bigint,integer) owner to pay_owner;
grant execute on function pay.watched_deposits(text,bigint,integer) to pay_api;

-- function pay.webhook_delivery_body(pay.webhook_deliveries)
CREATE OR REPLACE FUNCTION pay.webhook_delivery_body(p_delivery pay.webhook_deliveries)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.webhook_delivery_body(pay.webhook_deliveries) owner to pay_owner;

-- function pay.webhook_endpoint_body(pay.webhook_endpoints)
CREATE OR REPLACE FUNCTION pay.webhook_endpoint_body(p_endpoint pay.webhook_endpoints)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.webhook_endpoint_body(pay.webhook_endpoints) owner to pay_owner;

-- function pay.whole_delivery_body(pay.webhook_deliveries)
CREATE OR REPLACE FUNCTION pay.whole_delivery_body(p_delivery pay.webhook_deliveries)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.whole_delivery_body(pay.webhook_deliveries) owner to pay_owner;

-- function pay.wire_time(timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.wire_time(p_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.wire_time(timestamp with time zone) owner to pay_owner;

-- function pay.without_second_attempt(text)
CREATE OR REPLACE FUNCTION pay.without_second_attempt(p_attempts text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.without_second_attempt(text) owner to pay_owner;

-- function pay.write_calls(json,jsonb,json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.write_calls(p_calls json, p_providers jsonb, p_changes json, p_found pay.admission[])
 RETURNS text[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_calls(json,jsonb,json,pay.admission[]) owner to pay_owner;

-- function pay.write_clock(pay.sandbox_settings)
CREATE OR REPLACE FUNCTION pay.write_clock(p_settings pay.sandbox_settings)
 RETURNS pay.sandbox_settings
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_clock(pay.sandbox_settings) owner to pay_owner;

-- function pay.write_disputes(json,integer[],text[])
CREATE OR REPLACE FUNCTION pay.write_disputes(p_disputes json, p_won integer[], p_environments text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_disputes(json,integer[],text[]) owner to pay_owner;

-- function pay.write_events(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.write_events(p_events json, p_found pay.admission[])
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_events(json,pay.admission[]) owner to pay_owner;

-- function pay.write_key_change(pay.api_keys,pay.api_keys,text,timestamp with time zone,json,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.write_key_change(p_caller pay.api_keys, p_key pay.api_keys, p_action text, p_at timestamp with time zone, p_secret json, p_older_expire_at timestamp with time zone, p_ahead interval)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_key_change(pay.api_keys,pay.api_keys,text,timestamp with time zone,json,timestamp with time zone,interval) owner to pay_owner;

-- function pay.write_later_calls(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.write_later_calls(p_calls json, p_found pay.admission[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_later_calls(json,pay.admission[]) owner to pay_owner;

-- function pay.write_payments(json,integer[],text[],integer[])
CREATE OR REPLACE FUNCTION pay.write_payments(p_payments json, p_won integer[], p_environments text[], p_moved integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_payments(json,integer[],text[],integer[]) owner to pay_owner;

-- function pay.write_refunds(json,integer[],text[])
CREATE OR REPLACE FUNCTION pay.write_refunds(p_refunds json, p_won integer[], p_environments text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_refunds(json,integer[],text[]) owner to pay_owner;

-- function pay.write_sandbox(pay.sandboxes,json)
CREATE OR REPLACE FUNCTION pay.write_sandbox(p_sandbox pay.sandboxes, p_secret json)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_sandbox(pay.sandboxes,json) owner to pay_owner;

-- function pay.write_step(pay.sandbox_settings)
CREATE OR REPLACE FUNCTION pay.write_step(p_clock pay.sandbox_settings)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_step(pay.sandbox_settings) owner to pay_owner;

-- function pay.write_transfers(json,integer[],text[],integer[])
CREATE OR REPLACE FUNCTION pay.write_transfers(p_transfers json, p_won integer[], p_environments text[], p_moved integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_transfers(json,integer[],text[],integer[]) owner to pay_owner;

-- function pay.write_webhook_endpoint(text,text,pay.webhook_endpoints,pay.webhook_endpoints)
CREATE OR REPLACE FUNCTION pay.write_webhook_endpoint(p_environment_id text, p_id text, p_before pay.webhook_endpoints, p_endpoint pay.webhook_endpoints)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp';
alter function pay.write_webhook_endpoint(text,text,pay.webhook_endpoints,pay.webhook_endpoints) owner to pay_owner;
