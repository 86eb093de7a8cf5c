-- The database as the migrations make it: written by "deno task schema", compared by
-- "deno task schema --check" and by the tests. A description: do not edit it, do not run it.

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
  body text
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
comment on table pay.api_key_secrets is 'What a client presents, as a hash. Rotation adds one and lets the older expire.';
comment on column pay.api_key_secrets.hash is 'SHA-256 of the whole key text; the text itself is stored nowhere.';
comment on column pay.api_key_secrets.prefix is 'Shown to tell keys apart: sk_test_ or sk_live_. Agrees with livemode.';
comment on column pay.api_key_secrets.expires_at is 'When the secret ends: at the end of its overlap or of the key, whichever is earlier.';
comment on column pay.api_key_secrets.last_used_at is 'Coarse: written at most once an hour.';
CREATE INDEX api_key_secrets_api_key ON pay.api_key_secrets USING btree (api_key_id);
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
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_environment_fkey FOREIGN KEY (environment_id, livemode) REFERENCES pay.environments(id, livemode),
  constraint api_keys_id_form CHECK ((id ~ '^key_[0-9a-z]{26}$'::text)),
  constraint api_keys_name_length CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint api_keys_scopes_known CHECK ((scopes <@ ARRAY['payments:read'::text, 'payments:write'::text, 'refunds:write'::text, 'transfers:read'::text, 'transfers:write'::text, 'webhooks:read'::text, 'webhooks:write'::text, 'events:read'::text, 'ledger:read'::text, 'keys:write'::text, 'sandbox:write'::text]))
);
alter table pay.api_keys owner to pay_owner;
comment on table pay.api_keys is 'An API key: a name, its scopes, and one or more secrets. The scope of idempotency.';
comment on column pay.api_keys.scopes is 'What the key may do; null: everything.';
comment on column pay.api_keys.expires_at is 'When the key ends, with all its secrets; null: never.';
comment on column pay.api_keys.last_used_at is 'Last use of the secrets that have been deleted; exact to the hour.';
CREATE INDEX api_keys_environment ON pay.api_keys USING btree (environment_id, id);
alter table pay.api_keys enable row level security;
alter table pay.api_keys force row level security;
create policy api_keys_of_environment on pay.api_keys as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.environments
create table pay.environments (
  id text collate "C" not null,
  public_id text collate "C" not null,
  account text not null,
  livemode boolean not null,
  name text not null,
  created_at timestamp with time zone default now() not null,
  retired_at timestamp with time zone,
  constraint environments_pkey PRIMARY KEY (id),
  constraint environments_id_livemode_key UNIQUE (id, livemode),
  constraint environments_account_length CHECK (((length(account) >= 1) AND (length(account) <= 100))),
  constraint environments_id_form CHECK ((id ~ '^env_[0-9a-z]{26}$'::text)),
  constraint environments_live_stays CHECK (((NOT livemode) OR ((retired_at IS NULL) AND (id = public_id)))),
  constraint environments_name_length CHECK (((length(name) >= 1) AND (length(name) <= 100)))
);
alter table pay.environments owner to pay_owner;
comment on table pay.environments is 'A data space: one live and any number of sandboxes per account.';
comment on column pay.environments.id is 'What its rows begin with. A reset opens a new one to the keys.';
comment on column pay.environments.public_id is 'What operators know it by, before and after resets.';
comment on column pay.environments.account is 'Whose environment this is; the operator''s own name for it.';
comment on column pay.environments.livemode is 'Whether real money moves. Never changes.';
comment on column pay.environments.retired_at is 'When a reset took its place; no key opens it, and retention empties it.';
CREATE UNIQUE INDEX environments_one_live_per_account ON pay.environments USING btree (account) WHERE livemode;
CREATE UNIQUE INDEX environments_public_id ON pay.environments USING btree (public_id) WHERE (retired_at IS NULL);
alter table pay.environments enable row level security;
alter table pay.environments force row level security;
create policy environments_change on pay.environments as permissive for update to pay_owner
  using ((id = ANY (( SELECT (NULLIF(s.ids, ''::text))::text[] AS "nullif"
   FROM ( SELECT current_setting('pay.environment_ids'::text, true) AS ids) s)::text[])));
create policy environments_delete on pay.environments as permissive for delete to pay_owner
  using ((id = ANY (( SELECT (NULLIF(s.ids, ''::text))::text[] AS "nullif"
   FROM ( SELECT current_setting('pay.environment_ids'::text, true) AS ids) s)::text[])));
create policy environments_read on pay.environments as permissive for select to pay_owner
  using (((id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));
create policy environments_write on pay.environments as permissive for insert to pay_owner
  with check ((id = ANY (( SELECT (NULLIF(s.ids, ''::text))::text[] AS "nullif"
   FROM ( SELECT current_setting('pay.environment_ids'::text, true) AS ids) s)::text[])));

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
comment on table pay.events is 'An immutable fact, written in the transaction of the change it tells of.';
comment on column pay.events.subject_id is 'What changed; events of one subject are ordered by sequence.';
comment on column pay.events.sequence is 'Null for a triggered event, which changes nothing.';
comment on column pay.events.body is 'The payload as JSON text, as it is signed and sent.';
alter table pay.events enable row level security;
alter table pay.events force row level security;
create policy events_of_environment on pay.events as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- view pay.health
create view pay.health with (security_invoker=true) as
 SELECT h.due_deliveries,
    h.oldest_due_seconds,
    h.pending_deliveries,
    h.failed_deliveries_last_hour,
    h.failing_endpoints,
    h.unbalanced_transactions_last_hour,
    h.unbalanced_totals,
    h.oracle_findings,
    h.books_checked_at,
    h.unrolled_ledger_transactions,
    h.is_retention_behind,
    h.test_keys,
    h.live_keys,
    h.is_relay_configured,
    c.last_relay_wake_at,
    c.last_retention_at,
    c.failed_cron_runs,
    w.last_relay_status,
    w.failed_relay_wakes_last_hour
   FROM ((pay.read_health() h(due_deliveries, oldest_due_seconds, pending_deliveries, failed_deliveries_last_hour, failing_endpoints, unbalanced_transactions_last_hour, unbalanced_totals, oracle_findings, books_checked_at, unrolled_ledger_transactions, is_retention_behind, test_keys, live_keys, is_relay_configured)
     CROSS JOIN pay.read_cron() c(last_relay_wake_at, last_retention_at, failed_cron_runs))
     CROSS JOIN pay.read_wakes() w(last_relay_status, failed_relay_wakes_last_hour));
alter table pay.health owner to pay_owner;
comment on table pay.health is 'How the service is: one row.';
comment on column pay.health.due_deliveries is 'That could be sent now, up to 100 000.';
comment on column pay.health.oldest_due_seconds is 'How long the first of them has been due; 0: none is.';
comment on column pay.health.pending_deliveries is 'Due, under way, or waiting for a retry; up to 100 000.';
comment on column pay.health.failing_endpoints is 'Enabled ones whose last delivery did not arrive.';
comment on column pay.health.unbalanced_transactions_last_hour is 'Always 0.';
comment on column pay.health.unbalanced_totals is 'Currencies of environments; always 0.';
comment on column pay.health.oracle_findings is 'What the check of the books has found; always 0. Null: it has never run.';
comment on column pay.health.books_checked_at is 'When pay.note_findings ran last.';
comment on column pay.health.unrolled_ledger_transactions is 'Not in the totals yet; up to 100 000.';
comment on column pay.health.is_retention_behind is 'There are events older than 31 days.';
comment on column pay.health.failed_cron_runs is 'Of our jobs, among the last 1000 runs of all.';
comment on column pay.health.last_relay_status is 'Status of the functions'' answer to the last wake of the relay; null: there is none.';
comment on column pay.health.failed_relay_wakes_last_hour is 'Wakes without a 2xx answer. Null: pg_net is not installed, or its answers are not readable.';
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
  constraint idempotency_keys_pkey PRIMARY KEY (environment_id, api_key_id, key),
  constraint idempotency_keys_fingerprint_length CHECK ((length(fingerprint) = 32)),
  constraint idempotency_keys_key_length CHECK (((length(key) >= 1) AND (length(key) <= 255)))
);
alter table pay.idempotency_keys owner to pay_owner;
comment on table pay.idempotency_keys is 'The first answer to a keyed request, replayed for 24 hours.';
comment on column pay.idempotency_keys.fingerprint is 'SHA-256 of method, path and canonical body.';
comment on column pay.idempotency_keys.request_id is 'The first request; tells the winner of twins apart.';
comment on column pay.idempotency_keys.status is 'Of the answer; 102 while a triggered attempt is under way.';
CREATE INDEX idempotency_keys_created_at ON pay.idempotency_keys USING btree (created_at);
alter table pay.idempotency_keys enable row level security;
alter table pay.idempotency_keys force row level security;
create policy idempotency_keys_of_environment on pay.idempotency_keys as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.ledger_deltas
create table pay.ledger_deltas (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  currency text collate "C" not null,
  debit_account text collate "C" not null,
  credit_account text collate "C" not null,
  amount_minor bigint not null,
  constraint ledger_deltas_pkey PRIMARY KEY (environment_id, id)
);
alter table pay.ledger_deltas owner to pay_owner;
comment on table pay.ledger_deltas is 'Ledger transactions that are not in the totals yet.';
comment on column pay.ledger_deltas.id is 'The ledger transaction''s.';
alter table pay.ledger_deltas enable row level security;
alter table pay.ledger_deltas force row level security;
create policy ledger_deltas_of_environment on pay.ledger_deltas as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.ledger_entries
create table pay.ledger_entries (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  transaction_id text collate "C" not null,
  subject_id text collate "C" not null,
  refund_id text collate "C",
  account text collate "C" not null,
  direction text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  created_at timestamp with time zone not null,
  constraint ledger_entries_pkey PRIMARY KEY (environment_id, id),
  constraint ledger_entries_account_known CHECK ((account = ANY (ARRAY['processor'::text, 'available'::text, 'chargebacks'::text, 'in_transit'::text, 'external'::text]))),
  constraint ledger_entries_amount_minor_positive CHECK ((amount_minor > 0)),
  constraint ledger_entries_direction_known CHECK ((direction = ANY (ARRAY['debit'::text, 'credit'::text])))
);
alter table pay.ledger_entries owner to pay_owner;
comment on table pay.ledger_entries is 'One side of a ledger transaction. Append-only.';
CREATE INDEX ledger_entries_subject ON pay.ledger_entries USING btree (environment_id, subject_id, transaction_id);
alter table pay.ledger_entries enable row level security;
alter table pay.ledger_entries force row level security;
create policy ledger_entries_delete_in_sandbox on pay.ledger_entries as permissive for delete to pay_owner
  using ((environment_id IN ( SELECT e.id
   FROM pay.environments e
  WHERE (NOT e.livemode))));
create policy ledger_entries_read on pay.ledger_entries as permissive for select to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));
create policy ledger_entries_write on pay.ledger_entries as permissive for insert to pay_owner
  with check ((environment_id = ANY (( SELECT (NULLIF(s.ids, ''::text))::text[] AS "nullif"
   FROM ( SELECT current_setting('pay.environment_ids'::text, true) AS ids) s)::text[])));
CREATE TRIGGER ledger_entries_sum_to_zero AFTER INSERT ON pay.ledger_entries REFERENCING NEW TABLE AS new_entries FOR EACH STATEMENT EXECUTE FUNCTION pay.check_ledger_transactions();

-- table pay.ledger_totals
create table pay.ledger_totals (
  environment_id text collate "C" not null,
  currency text collate "C" not null,
  account text collate "C" not null,
  debits_minor numeric not null,
  credits_minor numeric not null,
  constraint ledger_totals_pkey PRIMARY KEY (environment_id, currency, account)
);
alter table pay.ledger_totals owner to pay_owner;
comment on table pay.ledger_totals is 'Sums of the ledger entries that have been rolled up.';
alter table pay.ledger_totals enable row level security;
alter table pay.ledger_totals force row level security;
create policy ledger_totals_of_environment on pay.ledger_totals as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.ledger_transactions
create table pay.ledger_transactions (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  kind text collate "C" not null,
  subject_id text collate "C" not null,
  refund_id text collate "C",
  created_at timestamp with time zone not null,
  constraint ledger_transactions_pkey PRIMARY KEY (environment_id, id),
  constraint ledger_transactions_kind_known CHECK ((kind = ANY (ARRAY['capture'::text, 'capture_reversal'::text, 'refund'::text, 'chargeback'::text, 'transfer'::text, 'transfer_completed'::text, 'transfer_reversed'::text])))
);
alter table pay.ledger_transactions owner to pay_owner;
comment on table pay.ledger_transactions is 'One movement of money; its entries sum to zero.';
comment on column pay.ledger_transactions.subject_id is 'The payment or transfer whose money moves.';
alter table pay.ledger_transactions enable row level security;
alter table pay.ledger_transactions force row level security;
create policy ledger_transactions_delete_in_sandbox on pay.ledger_transactions as permissive for delete to pay_owner
  using ((environment_id IN ( SELECT e.id
   FROM pay.environments e
  WHERE (NOT e.livemode))));
create policy ledger_transactions_read on pay.ledger_transactions as permissive for select to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));
create policy ledger_transactions_write on pay.ledger_transactions as permissive for insert to pay_owner
  with check ((environment_id = ANY (( SELECT (NULLIF(s.ids, ''::text))::text[] AS "nullif"
   FROM ( SELECT current_setting('pay.environment_ids'::text, true) AS ids) s)::text[])));

-- view pay.oracle_bodies
create view pay.oracle_bodies with (security_invoker=true) as
 SELECT x.environment_id,
    x.id AS subject_id,
    'row, body and newest event differ'::text AS detail
   FROM (( SELECT payments.environment_id,
            payments.id,
            payments.status,
            payments.sequence,
            payments.amount_minor,
            payments.amount_refunded,
            payments.currency,
            payments.updated_at,
            payments.body,
            'payment.'::text AS kind
           FROM pay.payments
        UNION ALL
         SELECT transfers.environment_id,
            transfers.id,
            transfers.status,
            transfers.sequence,
            transfers.amount_minor,
            NULL::bigint,
            transfers.currency,
            transfers.updated_at,
            transfers.body,
            'transfer.'::text
           FROM pay.transfers) x
     LEFT JOIN pay.events e ON (((e.environment_id = x.environment_id) AND (e.subject_id = x.id) AND (e.sequence = x.sequence))))
  WHERE ((("right"(x.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (x.environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))) AND (
        CASE
            WHEN (e.id IS NOT NULL) THEN ((e.type <> (x.kind ||
            CASE x.status
                WHEN 'pending'::text THEN 'created'::text
                ELSE x.status
            END)) OR (POSITION(((('"data":{"object":'::text || x.body) || '}'::text)) IN (e.body)) = 0))
            ELSE (("right"(x.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (x.updated_at >= (now() - '29 days'::interval)))
        END OR (NOT starts_with(x.body, (('{"id":"'::text || x.id) || '",'::text))) OR (POSITION(((('"status":"'::text || x.status) || '",'::text)) IN (x.body)) = 0) OR (POSITION(((('"sequence":'::text || x.sequence) || ','::text)) IN (x.body)) = 0) OR (POSITION(((('"amount_minor":'::text || x.amount_minor) || ','::text)) IN (x.body)) = 0) OR (POSITION(((('"amount_refunded":'::text || x.amount_refunded) || ','::text)) IN (x.body)) = 0) OR (POSITION(((('"currency":"'::text || x.currency) || '",'::text)) IN (x.body)) = 0)));
alter table pay.oracle_bodies owner to pay_owner;
comment on table pay.oracle_bodies is 'R5: what is answered of a payment or transfer is what its row and its newest event say';

-- view pay.oracle_delivery_order
create view pay.oracle_delivery_order with (security_invoker=true) as
 SELECT environment_id,
    id AS subject_id,
    ('came before '::text || before) AS detail
   FROM ( SELECT w.environment_id,
            w.id,
            w.attempt_count,
            a.first_at,
            lag(w.id) OVER earlier AS before,
            lag(w.status) OVER earlier AS status_before,
            lag(w.attempt_count) OVER earlier AS attempt_count_before,
            lag(a.first_at) OVER earlier AS first_at_before
           FROM ((pay.webhook_deliveries w
             JOIN pay.webhook_endpoints t ON (((t.environment_id = w.environment_id) AND (t.id = w.endpoint_id) AND (t.revision = 1))))
             CROSS JOIN LATERAL ( SELECT (((((('['::text || w.attempts) || ']'::text))::json -> 0) ->> 'at'::text))::timestamp with time zone AS first_at) a)
          WHERE (w.sequence IS NOT NULL)
          WINDOW earlier AS (PARTITION BY w.environment_id, w.endpoint_id, w.subject_id ORDER BY w.sequence)) d
  WHERE ((first_at_before > (first_at + '00:00:01'::interval)) OR ((status_before = 'pending'::text) AND (attempt_count_before = 0) AND (attempt_count > 0)));
alter table pay.oracle_delivery_order owner to pay_owner;
comment on table pay.oracle_delivery_order is 'R7: per endpoint and payment, the first attempts come in the order of sequence';

-- view pay.oracle_effects
create view pay.oracle_effects with (security_invoker=true) as
 SELECT environment_id,
    id AS subject_id,
    (((type || ' of '::text) || subject_id) || ': its request is not the one whose answer is kept'::text) AS detail
   FROM ( SELECT events.environment_id,
            events.id,
            events.type,
            events.subject_id,
            split_part(events.body, '"request":{"id":"'::text, '-1'::integer) AS request
           FROM pay.events
          WHERE ((events.sequence IS NOT NULL) AND (events.id >= ( SELECT pay.id_floor('evt_'::text, (now() - '23:00:00'::interval)) AS id_floor)))
         OFFSET 0) e
  WHERE (("right"(request, 24) <> '"idempotency_key":null}}'::text) AND (NOT (EXISTS ( SELECT
           FROM ( SELECT idempotency_keys.environment_id,
                    (((idempotency_keys.request_id || '","idempotency_key":'::text) || to_json(idempotency_keys.key)) || '}}'::text) AS request,
                        CASE
                            WHEN starts_with(idempotency_keys.body, '{"id":"tr_'::text) THEN substr(idempotency_keys.body, 8, 29)
                            ELSE ('pay_'::text || "left"(split_part(idempotency_keys.body, '"pay_'::text, 2), 26))
                        END AS subject_id
                   FROM pay.idempotency_keys
                 OFFSET 0) k
          WHERE ((k.environment_id = e.environment_id) AND (k.request = e.request) AND (k.subject_id = e.subject_id))))));
alter table pay.oracle_effects owner to pay_owner;
comment on table pay.oracle_effects is 'R2, R3: whatever a keyed request has done, its answer is kept, so that no twin can do it again';

-- view pay.oracle_endless_deliveries
create view pay.oracle_endless_deliveries with (security_invoker=true) as
 SELECT d.environment_id,
    d.id AS subject_id,
    ('next looked at '::text || GREATEST(d.next_attempt_at, d.leased_until)) AS detail
   FROM pay.webhook_deliveries d
  WHERE ((d.status = 'pending'::text) AND ((d.next_attempt_at > (now() + '58:00:00'::interval)) OR (d.leased_until > (now() + '01:00:00'::interval))))
UNION ALL
 SELECT d.environment_id,
    d.id AS subject_id,
    ('due since '::text || d.next_attempt_at) AS detail
   FROM pay.webhook_deliveries d
  WHERE ((d.status = 'pending'::text) AND (GREATEST(d.next_attempt_at, d.leased_until) < (now() - '01:00:00'::interval)) AND (NOT ((d.environment_id, d.endpoint_id) IN ( SELECT o.environment_id,
            o.endpoint_id
           FROM (pay.webhook_deliveries o
             CROSS JOIN ( SELECT (('%"at":"'::text || to_char((now() AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:'::text)) || '%'::text) AS this_hour,
                    (('%"at":"'::text || to_char(((now() - '01:00:00'::interval) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:'::text)) || '%'::text) AS last_hour) h)
          WHERE ((o.leased_until > (now() - '01:00:00'::interval)) OR (o.attempts ~~ h.this_hour) OR (o.attempts ~~ h.last_hour))))));
alter table pay.oracle_endless_deliveries owner to pay_owner;
comment on table pay.oracle_endless_deliveries is 'R6: no delivery waits for ever';

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
comment on table pay.oracle_findings is 'What the hourly check has found, until pay.forget_findings. Empty for as long as every promise is kept.';
comment on column pay.oracle_findings.oracle is 'The view that found it.';
comment on column pay.oracle_findings.found_at is 'When it was found first.';
alter table pay.oracle_findings enable row level security;
alter table pay.oracle_findings force row level security;
create policy oracle_findings_of_worker on pay.oracle_findings as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- view pay.oracle_kept_answers
create view pay.oracle_kept_answers with (security_invoker=true) as
 SELECT k.environment_id,
    k.request_id AS subject_id,
    ((('answered '::text || k.status) || ' with '::text) || COALESCE((k.id ||
        CASE
            WHEN (x.id IS NULL) THEN ', which is not there'::text
            ELSE ', which has never been so'::text
        END), 'what nobody answers'::text)) AS detail
   FROM (( SELECT o.environment_id,
            o.request_id,
            o.status,
            o.body,
            o.object,
            v.livemode,
                CASE
                    WHEN (starts_with(o.object, '{"id":"pay_'::text) OR starts_with(o.object, '{"id":"tr_'::text) OR starts_with(o.object, '{"id":"re_'::text)) THEN split_part(o.object, '"'::text, 4)
                    ELSE NULL::text
                END AS id
           FROM (( SELECT a.environment_id,
                    a.request_id,
                    a.status,
                    a.body,
                        CASE
                            WHEN (a.status <> 402) THEN a.body
                            ELSE "left"(substr(a.body, (POSITION(('"payment":{'::text) IN (a.body)) + 10)), '-2'::integer)
                        END AS object
                   FROM pay.idempotency_keys a
                  WHERE (a.created_at > (now() - '23:00:00'::interval))) o
             JOIN pay.environments v ON ((v.id = o.environment_id)))
         OFFSET 0) k
     LEFT JOIN ( SELECT payments.environment_id,
            payments.id,
            payments.body
           FROM pay.payments
        UNION ALL
         SELECT transfers.environment_id,
            transfers.id,
            transfers.body
           FROM pay.transfers
        UNION ALL
         SELECT refunds.environment_id,
            refunds.id,
            refunds.body
           FROM pay.refunds) x ON (((x.environment_id = k.environment_id) AND (x.id = k.id))))
  WHERE
        CASE
            WHEN (k.status = 102) THEN (k.body <> ''::text)
            WHEN (k.id IS NULL) THEN
            CASE
                WHEN (k.status = ANY (ARRAY[200, 201])) THEN (k.body !~ '^\{("id":"(whe|whd|key)_[0-9a-z]{26}",|"object":"sandbox_reset",)'::text)
                WHEN (k.status = ANY (ARRAY[402, 409])) THEN (k.body !~~ '{"error":{"type":"%'::text)
                ELSE true
            END
            WHEN (("right"(k.id, 26) < ( SELECT pay.recent_suffix() AS recent_suffix)) AND (NOT k.livemode)) THEN false
            WHEN (k.status <> ALL (ARRAY[200, 201, 402])) THEN true
            WHEN (x.id IS NULL) THEN true
            ELSE ((x.body <> k.object) AND (NOT (EXISTS ( SELECT
               FROM pay.events e
              WHERE ((e.environment_id = k.environment_id) AND (e.subject_id = k.id) AND (POSITION(((('"data":{"object":'::text || k.object) || '}'::text)) IN (e.body)) > 0))))))
        END;
alter table pay.oracle_kept_answers owner to pay_owner;
comment on table pay.oracle_kept_answers is 'R1, R2: what the answer to a keyed request tells of is there, and was as it tells';

-- view pay.oracle_ledger_deltas
create view pay.oracle_ledger_deltas with (security_invoker=true) as
 SELECT d.environment_id,
    d.id AS subject_id,
    (((((((d.amount_minor || ' '::text) || d.currency) || ' from '::text) || d.debit_account) || ' to '::text) || d.credit_account) || ' is not what the entries say'::text) AS detail
   FROM (pay.ledger_deltas d
     LEFT JOIN ( SELECT ledger_entries.environment_id,
            ledger_entries.transaction_id,
            min(ledger_entries.currency) AS currency,
            max(ledger_entries.currency) AS last_currency,
            max(ledger_entries.account) FILTER (WHERE (ledger_entries.direction = 'debit'::text)) AS debit_account,
            max(ledger_entries.account) FILTER (WHERE (ledger_entries.direction = 'credit'::text)) AS credit_account,
            sum(ledger_entries.amount_minor) FILTER (WHERE (ledger_entries.direction = 'debit'::text)) AS amount_minor
           FROM pay.ledger_entries
          GROUP BY ledger_entries.environment_id, ledger_entries.transaction_id) e ON (((e.environment_id = d.environment_id) AND (e.transaction_id = d.id))))
  WHERE ((("right"(d.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (d.environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))) AND ((e.currency IS DISTINCT FROM d.currency) OR (e.last_currency IS DISTINCT FROM d.currency) OR (e.debit_account IS DISTINCT FROM d.debit_account) OR (e.credit_account IS DISTINCT FROM d.credit_account) OR (e.amount_minor IS DISTINCT FROM (d.amount_minor)::numeric)));
alter table pay.oracle_ledger_deltas owner to pay_owner;
comment on table pay.oracle_ledger_deltas is 'R4: what is yet to be rolled up is what the entries say';

-- view pay.oracle_ledger_totals
create view pay.oracle_ledger_totals with (security_invoker=true) as
 SELECT environment_id,
    ((currency || ' '::text) || account) AS subject_id,
    ('balance off by '::text || sum((credits_minor - debits_minor))) AS detail
   FROM ( SELECT ledger_totals.environment_id,
            ledger_totals.currency,
            ledger_totals.account,
            ledger_totals.debits_minor,
            ledger_totals.credits_minor
           FROM pay.ledger_totals
        UNION ALL
         SELECT ledger_deltas.environment_id,
            ledger_deltas.currency,
            ledger_deltas.debit_account,
            ledger_deltas.amount_minor,
            0
           FROM pay.ledger_deltas
        UNION ALL
         SELECT ledger_deltas.environment_id,
            ledger_deltas.currency,
            ledger_deltas.credit_account,
            0,
            ledger_deltas.amount_minor
           FROM pay.ledger_deltas
        UNION ALL
         SELECT ledger_entries.environment_id,
            ledger_entries.currency,
            ledger_entries.account,
                CASE ledger_entries.direction
                    WHEN 'debit'::text THEN (- ledger_entries.amount_minor)
                    ELSE (0)::bigint
                END AS "case",
                CASE ledger_entries.direction
                    WHEN 'credit'::text THEN (- ledger_entries.amount_minor)
                    ELSE (0)::bigint
                END AS "case"
           FROM pay.ledger_entries) x
  WHERE (environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE (v.livemode OR (v.created_at > (now() - '29 days'::interval)))))
  GROUP BY environment_id, currency, account
 HAVING ((sum(debits_minor) <> (0)::numeric) OR (sum(credits_minor) <> (0)::numeric));
alter table pay.oracle_ledger_totals owner to pay_owner;
comment on table pay.oracle_ledger_totals is 'R4: the balance of each account is the sum of its entries';

-- view pay.oracle_ledger_transactions
create view pay.oracle_ledger_transactions with (security_invoker=true) as
 SELECT COALESCE(t.environment_id, e.environment_id) AS environment_id,
    COALESCE(t.id, e.transaction_id) AS subject_id,
    COALESCE(((('off by '::text || e.total) || ' '::text) || e.currency), 'no entries'::text) AS detail
   FROM (pay.ledger_transactions t
     FULL JOIN ( SELECT ledger_entries.environment_id,
            ledger_entries.transaction_id,
            ledger_entries.currency,
            sum(
                CASE ledger_entries.direction
                    WHEN 'debit'::text THEN ledger_entries.amount_minor
                    ELSE (- ledger_entries.amount_minor)
                END) AS total
           FROM pay.ledger_entries
          WHERE (("right"(ledger_entries.transaction_id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (ledger_entries.environment_id IN ( SELECT v.id
                   FROM pay.environments v
                  WHERE v.livemode)))
          GROUP BY ledger_entries.environment_id, ledger_entries.transaction_id, ledger_entries.currency) e ON (((e.environment_id = t.environment_id) AND (e.transaction_id = t.id))))
  WHERE (((t.id IS NULL) OR (e.total IS NULL) OR (e.total <> (0)::numeric)) AND ((e.transaction_id IS NOT NULL) OR ("right"(t.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (t.environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))));
alter table pay.oracle_ledger_transactions owner to pay_owner;
comment on table pay.oracle_ledger_transactions is 'R4: a ledger transaction sums to zero in every currency, and has entries';

-- view pay.oracle_moves
create view pay.oracle_moves with (security_invoker=true) as
 SELECT environment_id,
    subject_id,
    ((((sequence || ': '::text) || COALESCE(before, 'nothing'::text)) || ', then '::text) || type) AS detail
   FROM ( SELECT e.environment_id,
            e.subject_id,
            e.sequence,
            e.type,
            lag(e.type) OVER (PARTITION BY e.environment_id, e.subject_id ORDER BY e.sequence) AS before
           FROM pay.events e
          WHERE ((e.sequence IS NOT NULL) AND (("right"(e.subject_id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (e.environment_id IN ( SELECT v.id
                   FROM pay.environments v
                  WHERE v.livemode))) AND ((e.subject_id ~~ 'pay\_%'::text) OR (e.subject_id ~~ 'tr\_%'::text)))) m
  WHERE (((before IS NOT NULL) OR (sequence = 1) OR ("right"(subject_id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix))) AND (NOT (EXISTS ( SELECT
           FROM ( VALUES (NULL::text,'{payment.created,transfer.created}'::text[]), ('payment.created'::text,'{payment.requires_action,payment.processing,payment.completed,payment.declined,payment.failed,payment.cancelled}'::text[]), ('payment.requires_action'::text,'{payment.completed,payment.declined,payment.failed,payment.cancelled}'::text[]), ('payment.processing'::text,'{payment.completed,payment.declined,payment.failed}'::text[]), ('payment.completed'::text,'{refund.completed,payment.chargeback,payment.failed}'::text[]), ('payment.partially_refunded'::text,'{refund.completed,payment.chargeback}'::text[]), ('refund.completed'::text,'{payment.partially_refunded,payment.refunded}'::text[]), ('transfer.created'::text,'{transfer.completed,transfer.failed,transfer.cancelled}'::text[])) legal(before, types)
          WHERE ((NOT (legal.before IS DISTINCT FROM m.before)) AND (m.type = ANY (legal.types)))))));
alter table pay.oracle_moves owner to pay_owner;
comment on table pay.oracle_moves is 'R5: a payment or transfer has made legal moves only';

-- view pay.oracle_orphans
create view pay.oracle_orphans with (security_invoker=true) as
 SELECT environment_id,
    id AS subject_id,
    (('belongs to '::text || owner_id) || ', which is not there'::text) AS detail
   FROM ( SELECT refunds.environment_id,
            refunds.id,
            refunds.payment_id AS owner_id
           FROM pay.refunds
        UNION ALL
         SELECT ledger_transactions.environment_id,
            ledger_transactions.id,
            ledger_transactions.subject_id
           FROM pay.ledger_transactions
        UNION ALL
         SELECT ledger_entries.environment_id,
            ledger_entries.id,
            ledger_entries.subject_id
           FROM pay.ledger_entries
        UNION ALL
         SELECT events.environment_id,
            events.id,
            events.subject_id
           FROM pay.events
        UNION ALL
         SELECT webhook_deliveries.environment_id,
            webhook_deliveries.id,
            webhook_deliveries.subject_id
           FROM pay.webhook_deliveries) x
  WHERE (((owner_id ~~ 'pay\_%'::text) OR (owner_id ~~ 'tr\_%'::text)) AND (("right"(owner_id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))) AND (NOT (EXISTS ( SELECT
           FROM pay.payments p
          WHERE ((p.environment_id = x.environment_id) AND (p.id = x.owner_id))))) AND (NOT (EXISTS ( SELECT
           FROM pay.transfers t
          WHERE ((t.environment_id = x.environment_id) AND (t.id = x.owner_id))))));
alter table pay.oracle_orphans owner to pay_owner;
comment on table pay.oracle_orphans is 'R1, R9: a payment or transfer is there with all that belongs to it, or gone with all of it';

-- view pay.oracle_outbox
create view pay.oracle_outbox with (security_invoker=true) as
 SELECT e.environment_id,
    e.id AS subject_id,
    ((e.type || ' has no delivery to '::text) || t.id) AS detail
   FROM (pay.events e
     JOIN pay.webhook_endpoints t ON (((t.environment_id = e.environment_id) AND (t.events && pay.patterns_of(e.type)) AND (t.revision = 1) AND (e.created_at > (t.created_at + '00:00:10'::interval)))))
  WHERE ((e.sequence IS NOT NULL) AND ("right"(e.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) AND (NOT (EXISTS ( SELECT
           FROM pay.webhook_deliveries d
          WHERE ((d.environment_id = e.environment_id) AND (d.event_id = e.id) AND (d.endpoint_id = t.id) AND (d.subject_id = e.subject_id))))));
alter table pay.oracle_outbox owner to pay_owner;
comment on table pay.oracle_outbox is 'R6: every event is on its way to, or was delivered to, every endpoint that wanted it';

-- view pay.oracle_payment_money
create view pay.oracle_payment_money with (security_invoker=true) as
 SELECT p.environment_id,
    p.id AS subject_id,
    ((((((p.status || ': available '::text) || a.available) || ', charged back '::text) || a.chargebacks) || ', processor '::text) || a.processor) AS detail
   FROM (((pay.payments p
     LEFT JOIN pay.subject_accounts s ON (((s.environment_id = p.environment_id) AND (s.subject_id = p.id) AND (s.currency = p.currency))))
     CROSS JOIN LATERAL ( SELECT COALESCE(s.available, (0)::numeric) AS available,
            COALESCE(s.processor, (0)::numeric) AS processor,
            COALESCE(s.chargebacks, (0)::numeric) AS chargebacks) a)
     CROSS JOIN LATERAL ( SELECT
                CASE
                    WHEN (p.status = ANY (ARRAY['completed'::text, 'partially_refunded'::text])) THEN (p.amount_minor - p.amount_refunded)
                    ELSE (0)::bigint
                END AS available,
                CASE p.status
                    WHEN 'chargeback'::text THEN (p.amount_minor - p.amount_refunded)
                    ELSE (0)::bigint
                END AS chargebacks) must)
  WHERE ((("right"(p.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (p.environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))) AND ((a.available <> (must.available)::numeric) OR (a.chargebacks <> (must.chargebacks)::numeric) OR ((- a.processor) <> ((must.available + must.chargebacks))::numeric)));
alter table pay.oracle_payment_money owner to pay_owner;
comment on table pay.oracle_payment_money is 'R4: the money of a payment is where its status says';

-- view pay.oracle_refund_bodies
create view pay.oracle_refund_bodies with (security_invoker=true) as
 SELECT environment_id,
    id AS subject_id,
    'row, body and event differ'::text AS detail
   FROM pay.refunds r
  WHERE ((("right"(id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))) AND ((NOT starts_with(body, (('{"id":"'::text || id) || '",'::text))) OR (POSITION(((('"payment_id":"'::text || payment_id) || '",'::text)) IN (body)) = 0) OR (POSITION(((('"amount_minor":'::text || amount_minor) || ','::text)) IN (body)) = 0) OR (POSITION(((('"currency":"'::text || currency) || '",'::text)) IN (body)) = 0) OR (("right"(id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) AND (NOT (EXISTS ( SELECT
           FROM pay.events e
          WHERE ((e.environment_id = r.environment_id) AND (e.subject_id = r.payment_id) AND (e.type = 'refund.completed'::text) AND (POSITION(((('"data":{"object":'::text || r.body) || '}'::text)) IN (e.body)) > 0))))))));
alter table pay.oracle_refund_bodies owner to pay_owner;
comment on table pay.oracle_refund_bodies is 'R5: what is answered of a refund is what its row and its event say';

-- view pay.oracle_refunds
create view pay.oracle_refunds with (security_invoker=true) as
 SELECT p.environment_id,
    p.id AS subject_id,
    ((((('refunds '::text || COALESCE(r.total, (0)::numeric)) || ', amount_refunded '::text) || p.amount_refunded) || ' of '::text) || p.amount_minor) AS detail
   FROM (pay.payments p
     LEFT JOIN ( SELECT refunds.environment_id,
            refunds.payment_id,
            sum(refunds.amount_minor) AS total
           FROM pay.refunds
          GROUP BY refunds.environment_id, refunds.payment_id) r ON (((r.environment_id = p.environment_id) AND (r.payment_id = p.id))))
  WHERE ((("right"(p.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (p.environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))) AND ((COALESCE(r.total, (0)::numeric) <> (p.amount_refunded)::numeric) OR (p.amount_refunded > p.amount_minor)));
alter table pay.oracle_refunds owner to pay_owner;
comment on table pay.oracle_refunds is 'R5: the refunds of a payment are what it says, and no more than its amount';

-- view pay.oracle_sequences
create view pay.oracle_sequences with (security_invoker=true) as
 SELECT x.environment_id,
    x.id AS subject_id,
    (((((('at '::text || x.sequence) || ', events '::text) || COALESCE(((e.first || ' to '::text) || e.last), 'none'::text)) || ', '::text) || COALESCE(e.events, (0)::bigint)) || ' of them'::text) AS detail
   FROM (( SELECT payments.environment_id,
            payments.id,
            payments.sequence,
            payments.updated_at
           FROM pay.payments
        UNION ALL
         SELECT transfers.environment_id,
            transfers.id,
            transfers.sequence,
            transfers.updated_at
           FROM pay.transfers) x
     LEFT JOIN ( SELECT events.environment_id,
            events.subject_id,
            min(events.sequence) AS first,
            max(events.sequence) AS last,
            count(*) AS events
           FROM pay.events
          WHERE (events.sequence IS NOT NULL)
          GROUP BY events.environment_id, events.subject_id) e ON (((e.environment_id = x.environment_id) AND (e.subject_id = x.id))))
  WHERE
        CASE
            WHEN ("right"(x.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) THEN ((e.first IS DISTINCT FROM 1) OR (e.last IS DISTINCT FROM x.sequence) OR (e.events IS DISTINCT FROM (x.sequence)::bigint))
            WHEN (x.environment_id IN ( SELECT v.id
               FROM pay.environments v
              WHERE v.livemode)) THEN COALESCE(((e.last <> x.sequence) OR (e.events <> ((e.last - e.first) + 1))), (x.updated_at >= (now() - '29 days'::interval)))
            ELSE false
        END;
alter table pay.oracle_sequences owner to pay_owner;
comment on table pay.oracle_sequences is 'R5: the events of a payment or transfer are numbered 1, 2, 3 … without a gap, up to where it stands';

-- view pay.oracle_transfer_money
create view pay.oracle_transfer_money with (security_invoker=true) as
 SELECT t.environment_id,
    t.id AS subject_id,
    ((((((t.status || ': taken '::text) || a.taken) || ', in transit '::text) || a.in_transit) || ', paid out '::text) || a.external) AS detail
   FROM ((pay.transfers t
     LEFT JOIN pay.subject_accounts s ON (((s.environment_id = t.environment_id) AND (s.subject_id = t.id) AND (s.currency = t.currency))))
     CROSS JOIN LATERAL ( SELECT (- COALESCE(s.available, (0)::numeric)) AS taken,
            COALESCE(s.in_transit, (0)::numeric) AS in_transit,
            COALESCE(s.external, (0)::numeric) AS external) a)
  WHERE ((("right"(t.id, 26) >= ( SELECT pay.recent_suffix() AS recent_suffix)) OR (t.environment_id IN ( SELECT v.id
           FROM pay.environments v
          WHERE v.livemode))) AND ((a.taken <> (
        CASE
            WHEN (t.status = ANY (ARRAY['pending'::text, 'completed'::text])) THEN t.amount_minor
            ELSE (0)::bigint
        END)::numeric) OR (a.in_transit <> (
        CASE t.status
            WHEN 'pending'::text THEN t.amount_minor
            ELSE (0)::bigint
        END)::numeric) OR (a.external <> (
        CASE t.status
            WHEN 'completed'::text THEN t.amount_minor
            ELSE (0)::bigint
        END)::numeric)));
alter table pay.oracle_transfer_money owner to pay_owner;
comment on table pay.oracle_transfer_money is 'R4: the money of a transfer is where its status says';

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
  constraint payments_pkey PRIMARY KEY (environment_id, id),
  constraint payments_amount_minor_in_range CHECK (((amount_minor >= 1) AND (amount_minor <= '999999999999'::bigint))),
  constraint payments_amount_refunded_in_range CHECK (((amount_refunded >= 0) AND (amount_refunded <= amount_minor))),
  constraint payments_method_kind_known CHECK ((method_kind = ANY (ARRAY['card'::text, 'sepa'::text, 'swift'::text, 'stablecoin'::text]))),
  constraint payments_refunded_agrees_with_status CHECK (
CASE status
    WHEN 'partially_refunded'::text THEN ((amount_refunded > 0) AND (amount_refunded < amount_minor))
    WHEN 'refunded'::text THEN (amount_refunded = amount_minor)
    WHEN 'chargeback'::text THEN (amount_refunded < amount_minor)
    ELSE (amount_refunded = 0)
END),
  constraint payments_sequence_positive CHECK ((sequence > 0)),
  constraint payments_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'requires_action'::text, 'processing'::text, 'completed'::text, 'declined'::text, 'failed'::text, 'cancelled'::text, 'partially_refunded'::text, 'refunded'::text, 'chargeback'::text])))
) with (fillfactor=90);
alter table pay.payments owner to pay_owner;
comment on table pay.payments is 'A payment as it stands now.';
comment on column pay.payments.amount_refunded is 'Sum of the payment''s refunds, minor units.';
comment on column pay.payments.reference is 'The merchant''s own reference, here because lists filter by it.';
comment on column pay.payments.sequence is 'Number of the payment''s newest event; what a change compares and sets.';
comment on column pay.payments.body is 'The payment as JSON text, as it is answered.';
CREATE INDEX payments_reference ON pay.payments USING btree (reference, environment_id, id) WHERE (reference IS NOT NULL);
CREATE INDEX payments_status ON pay.payments USING btree (status, environment_id, id) WHERE (status <> 'completed'::text);
alter table pay.payments enable row level security;
alter table pay.payments force row level security;
create policy payments_of_environment on pay.payments as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

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
CREATE INDEX rate_counters_recent ON pay.rate_counters USING btree (environment_id, window_number);
alter table pay.rate_counters enable row level security;
alter table pay.rate_counters force row level security;
create policy rate_counters_of_environment on pay.rate_counters as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(s.ids, ''::text))::text[] AS "nullif"
   FROM ( SELECT current_setting('pay.environment_ids'::text, true) AS ids) s)::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- table pay.refunds
create table pay.refunds (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  payment_id text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  created_at timestamp with time zone not null,
  body text not null,
  constraint refunds_pkey PRIMARY KEY (environment_id, id),
  constraint refunds_amount_minor_positive CHECK ((amount_minor > 0))
);
alter table pay.refunds owner to pay_owner;
comment on table pay.refunds is 'Money given back on a payment. Never changes.';
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
alter table pay.relay_wakes enable row level security;
alter table pay.relay_wakes force row level security;
create policy relay_wakes_of_worker on pay.relay_wakes as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- table pay.settings
create table pay.settings (
  name text collate "C" not null,
  value text not null,
  constraint settings_pkey PRIMARY KEY (name),
  constraint settings_name_known CHECK ((name = ANY (ARRAY['relay_url'::text, 'relay_token'::text, 'books_checked_at'::text])))
);
alter table pay.settings owner to pay_owner;
comment on table pay.settings is 'Where the relay is and the token that wakes it (pay.configure_relay), and when the books were checked last, in seconds since 1970 (pay.note_findings).';
alter table pay.settings enable row level security;
alter table pay.settings force row level security;
create policy settings_of_worker on pay.settings as permissive for all to pay_owner
  using ((( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text));

-- view pay.subject_accounts
create view pay.subject_accounts with (security_invoker=true) as
 SELECT e.environment_id,
    e.subject_id,
    e.currency,
    COALESCE(sum(s.amount) FILTER (WHERE (e.account = 'available'::text)), (0)::numeric) AS available,
    COALESCE(sum(s.amount) FILTER (WHERE (e.account = 'processor'::text)), (0)::numeric) AS processor,
    COALESCE(sum(s.amount) FILTER (WHERE (e.account = 'chargebacks'::text)), (0)::numeric) AS chargebacks,
    COALESCE(sum(s.amount) FILTER (WHERE (e.account = 'in_transit'::text)), (0)::numeric) AS in_transit,
    COALESCE(sum(s.amount) FILTER (WHERE (e.account = 'external'::text)), (0)::numeric) AS external
   FROM (pay.ledger_entries e
     CROSS JOIN LATERAL ( SELECT
                CASE e.direction
                    WHEN 'credit'::text THEN e.amount_minor
                    ELSE (- e.amount_minor)
                END AS amount) s)
  GROUP BY e.environment_id, e.subject_id, e.currency;
alter table pay.subject_accounts owner to pay_owner;

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
comment on column pay.transfers.sequence is 'Number of the transfer''s newest event; what a change compares and sets.';
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
  constraint webhook_deliveries_pkey PRIMARY KEY (environment_id, id),
  constraint webhook_deliveries_lost_claims_not_negative CHECK ((lost_claims >= 0)),
  constraint webhook_deliveries_pending_has_next CHECK ((((status = 'pending'::text) = (next_attempt_at IS NOT NULL)) AND ((status = 'pending'::text) OR (leased_until IS NULL)))),
  constraint webhook_deliveries_status_known CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text, 'cancelled'::text])))
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=10000);
alter table pay.webhook_deliveries owner to pay_owner;
comment on table pay.webhook_deliveries is 'The outbox: an event on its way to one endpoint.';
comment on column pay.webhook_deliveries.sequence is 'The event''s; null for a triggered event, which waits for nothing.';
comment on column pay.webhook_deliveries.attempt_count is 'Attempts begun; the number of the one under way.';
comment on column pay.webhook_deliveries.attempts is 'Recorded attempts as JSON objects, joined by commas: the first and the newest.';
comment on column pay.webhook_deliveries.next_attempt_at is 'When the relay is to look, unless the row is leased.';
comment on column pay.webhook_deliveries.leased_until is 'Set while a relay has the row; once it is over another may take it. In no index.';
comment on column pay.webhook_deliveries.lost_claims is 'Claims that expired without a record since the last one. From 3 on it has crashed: the count stays.';
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
  url text not null,
  events text[] not null,
  status text collate "C" not null,
  secrets json not null,
  failing_since timestamp with time zone,
  revision integer not null,
  created_at timestamp with time zone not null,
  body text not null,
  constraint webhook_endpoints_pkey PRIMARY KEY (environment_id, id),
  constraint webhook_endpoints_slot_key UNIQUE (environment_id, slot),
  constraint webhook_endpoints_slot_in_range CHECK (((slot >= 0) AND (slot <= 15))),
  constraint webhook_endpoints_status_known CHECK ((status = ANY (ARRAY['enabled'::text, 'disabled'::text]))),
  constraint webhook_endpoints_url_length CHECK ((length(url) <= 2048))
);
alter table pay.webhook_endpoints owner to pay_owner;
comment on table pay.webhook_endpoints is 'Where a merchant wants events delivered.';
comment on column pay.webhook_endpoints.slot is '0 to 15; the last character of the ids of its deliveries.';
comment on column pay.webhook_endpoints.events is 'Event types, or patterns: *, payment.*';
comment on column pay.webhook_endpoints.secrets is '[{version, salt, expires_at}], newest first: what secrets are derived from, with the master secret that is not here.';
comment on column pay.webhook_endpoints.failing_since is 'The first failure since the last success; null when the last attempt succeeded.';
comment on column pay.webhook_endpoints.revision is 'Counts changes; what an update compares and sets.';
comment on column pay.webhook_endpoints.body is 'The endpoint as JSON text, without its secret.';
alter table pay.webhook_endpoints enable row level security;
alter table pay.webhook_endpoints force row level security;
create policy webhook_endpoints_of_environment on pay.webhook_endpoints as permissive for all to pay_owner
  using (((environment_id = ANY (( SELECT (NULLIF(current_setting('pay.environment_ids'::text, true), ''::text))::text[] AS "nullif")::text[])) OR (( SELECT current_setting('pay.worker'::text, true) AS current_setting) = 'on'::text)));

-- function pay.account_sums(text)
CREATE OR REPLACE FUNCTION pay.account_sums(p_environment_id text)
 RETURNS TABLE(currency text, account text, debits_minor numeric, credits_minor numeric)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select x.currency, x.account, sum(x.debits_minor), sum(x.credits_minor)
  from (
    select t.currency, t.account, t.debits_minor, t.credits_minor
    from pay.ledger_totals t where t.environment_id = p_environment_id
    union all
    select d.currency, side.account, side.debits_minor, side.credits_minor
    from (
      select d.currency, d.debit_account, d.credit_account, sum(d.amount_minor) as amount_minor
      from pay.ledger_deltas d where d.environment_id = p_environment_id
      group by d.currency, d.debit_account, d.credit_account
    ) d
    cross join lateral (
      values (d.debit_account, d.amount_minor, 0::numeric), (d.credit_account, 0::numeric, d.amount_minor)
    ) as side (account, debits_minor, credits_minor)
  ) x
  group by x.currency, x.account
$function$;
alter function pay.account_sums(text) owner to pay_owner;

-- function pay.add_api_key_secret(text,timestamp with time zone,text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.add_api_key_secret(p_id text, p_at timestamp with time zone, p_secret_hash text, p_prefix text, p_last_four text, p_older_expire_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  update pay.api_key_secrets s
  set expires_at = case
    when live.rank >= pay.max_live_secrets() then p_at
    else p_older_expire_at
  end
  from (
    select o.hash, row_number() over (order by o.created_at desc, o.hash desc) as rank
    from pay.api_key_secrets o
    where o.api_key_id = p_id and o.revoked_at is null
      and (o.expires_at is null or o.expires_at > p_at)
  ) live
  where s.hash = live.hash
    and (live.rank >= pay.max_live_secrets()
      or s.expires_at is null or s.expires_at > p_older_expire_at);
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, livemode, prefix, last_four, created_at, expires_at)
  select decode(p_secret_hash, 'hex'), k.id, k.environment_id, k.livemode, p_prefix, p_last_four,
    p_at, k.expires_at
  from pay.api_keys k where k.id = p_id;
  perform pay.drop_ended_secrets(array[p_id], least(p_at, pay.server_time()));
end
$function$;
alter function pay.add_api_key_secret(text,timestamp with time zone,text,text,text,timestamp with time zone) owner to pay_owner;

-- function pay.add_requests(text,text,timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.add_requests(p_environment_id text, p_api_key_id text, p_at timestamp with time zone, p_requests integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_window bigint := floor(extract(epoch from p_at) / 2);
  v_stripe smallint;
begin
  select c.stripe into v_stripe
  from pay.rate_counters c
  where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
  order by c.stripe limit 1
  for update skip locked;
  if v_stripe is not null then
    update pay.rate_counters c
    set window_number = case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.window_number
        else v_window
      end,
      current_count = p_requests + case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.current_count
        else 0
      end,
      previous_count = case
        when c.window_number between v_window and v_window + pay.max_windows_ahead()
          then c.previous_count
        when c.window_number = v_window - 1 then c.current_count
        else 0
      end
    where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
      and c.stripe = v_stripe;
    return;
  end if;
  -- All stripes are locked: insert another. If 64 are locked, these requests are not counted.
  for v_stripe in
    select free.n from generate_series(0, 63) as free (n)
    where not exists (
      select from pay.rate_counters c
      where c.environment_id = p_environment_id and c.api_key_id = p_api_key_id
        and c.stripe = free.n
    )
    order by free.n
  loop
    continue when not pg_try_advisory_xact_lock(
      hashtextextended('stripe ' || p_api_key_id, v_stripe));
    insert into pay.rate_counters
      (environment_id, api_key_id, stripe, window_number, current_count, previous_count)
    values (p_environment_id, p_api_key_id, v_stripe, v_window, p_requests, 0)
    on conflict on constraint rate_counters_pkey do nothing;
    exit when found;
  end loop;
end
$function$;
alter function pay.add_requests(text,text,timestamp with time zone,integer) owner to pay_owner;

-- function pay.admit(json,text,boolean)
CREATE OR REPLACE FUNCTION pay.admit(p_requests json, p_hold text, p_is_read boolean)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_found pay.admission[];
  v_hashes bytea[];
  v_ats timestamptz[];
  v_scopes text[];
  v_has_keys boolean;
  v_key_rates integer[];
  v_environment_rates integer[];
  v_api_keys text[];
  v_environments text[];
  v_opened text[];
  v_idle bytea[];
  v_set text;
begin
  select array_agg(decode(r.key_hash, 'hex') order by r.n), array_agg(r.at order by r.n),
    array_agg(r.scope order by r.n), bool_or(r.idempotency_key is not null),
    array_agg(r.rate[1] order by r.n), array_agg(r.rate[2] order by r.n)
  into v_hashes, v_ats, v_scopes, v_has_keys, v_key_rates, v_environment_rates
  from json_to_recordset(p_requests) as r (
    n integer, key_hash text, at timestamptz, scope text, idempotency_key text, rate integer[]);
  v_set := set_config('pay.key_hashes', v_hashes::text, true);
  select array_agg(s.api_key_id order by a.n), array_agg(s.environment_id order by a.n),
    array_agg(distinct s.environment_id) filter (where s.is_held),
    array_agg(s.hash) filter (where s.last_used_at is null or s.last_used_at < now() - interval '1 hour')
  into v_api_keys, v_environments, v_opened, v_idle
  from unnest(v_hashes, v_ats) with ordinality as a (hash, at, n)
  left join lateral (
    select s.*, s.livemode or case p_hold
        when 'shared' then pg_try_advisory_xact_lock_shared(
          hashtextextended('environment ' || s.environment_id, 0))
        when 'alone' then pg_advisory_xact_lock(
          hashtextextended('environment ' || s.environment_id, 0)) is not null
        else true
      end as is_held
    from pay.api_key_secrets s
    where s.hash = a.hash
      and s.revoked_at is null
      and (s.expires_at is null or s.expires_at > a.at)
    limit 1
  ) s on true;
  v_set := set_config('pay.environment_ids', coalesce(v_opened, '{}')::text, true);
  -- A new snapshot under the locks. A key that is not there is in an environment that is not open, or a
  -- reset has moved it since.
  v_found := array(
    select row(a.n, case
        when a.api_key_id is null then 'unauthorized'
        when k.id is null then 'resetting'
        when a.scope is null or k.scopes is null or a.scope = any (k.scopes) then 'ok'
        else 'forbidden'
      end, a.api_key_id, a.environment_id, a.at, null, null, null)::pay.admission
    from unnest(v_scopes, v_ats, v_api_keys, v_environments) with ordinality
      as a (scope, at, api_key_id, environment_id, n)
    left join lateral (
      select k.id, k.scopes from pay.api_keys k
      where k.id = a.api_key_id and k.environment_id = a.environment_id limit 1
    ) k on true
    order by a.n);
  if v_idle is not null then
    perform pay.note_use(v_idle, now());
  end if;
  if p_is_read and v_has_keys then
    v_found := pay.find_answers(p_requests, v_found, true);
  end if;
  if 0 < any (v_key_rates) or 0 < any (v_environment_rates) then
    v_found := pay.limit_requests(v_found, v_key_rates, v_environment_rates, p_is_read);
  end if;
  return v_found;
end
$function$;
alter function pay.admit(json,text,boolean) owner to pay_owner;

-- function pay.admit_one(text,text)
CREATE OR REPLACE FUNCTION pay.admit_one(p_request text, p_hold text DEFAULT 'shared'::text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_found pay.admission[] := pay.admit(p_request::json, p_hold, false);
begin
  return v_found[1];
end
$function$;
alter function pay.admit_one(text,text) owner to pay_owner;

-- function pay.api_key_body(pay.api_keys,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.api_key_body(k pay.api_keys, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select row_to_json(t)::text from (
    select
      k.id,
      'api_key' as object,
      k.name,
      k.scopes,
      k.livemode,
      (
        select coalesce(json_agg(json_build_object(
          'prefix', s.prefix,
          'last4', s.last_four,
          'created_at', pay.wire_time(s.created_at),
          'expires_at', pay.wire_time(s.expires_at)
        ) order by s.created_at desc, s.hash desc), '[]'::json)
        from pay.api_key_secrets s
        where s.api_key_id = k.id and s.revoked_at is null
          and (s.expires_at is null or s.expires_at > p_at)
      ) as secrets,
      (
        select pay.wire_time(greatest(k.last_used_at, max(s.last_used_at)))
        from pay.api_key_secrets s where s.api_key_id = k.id
      ) as last_used_at,
      pay.wire_time(k.created_at) as created_at,
      pay.wire_time(k.expires_at) as expires_at,
      pay.wire_time(k.revoked_at) as revoked_at
  ) t
$function$;
alter function pay.api_key_body(pay.api_keys,timestamp with time zone) owner to pay_owner;

-- function pay.available_minor(text,text)
CREATE OR REPLACE FUNCTION pay.available_minor(p_environment_id text, p_currency text)
 RETURNS numeric
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select coalesce(sum(s.credits_minor - s.debits_minor), 0)
  from pay.account_sums(p_environment_id) s
  where s.currency = p_currency and s.account = 'available'
$function$;
alter function pay.available_minor(text,text) owner to pay_owner;

-- function pay.balance(text)
CREATE OR REPLACE FUNCTION pay.balance(p_request text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare
  v_found pay.admission[] := pay.admit(p_request::json, 'shared', true);
  v_access pay.admission := v_found[1];
begin
  if v_access.outcome = 'ok' then
    perform pay.roll_up_if_many(v_access.environment_id);
    select format(
      '{"object":"balance","livemode":%s,"balances":[%s]}',
      (select e.livemode from pay.environments e where e.id = v_access.environment_id)::text,
      string_agg(row_to_json(b)::text, ',' order by b.currency, b.account)
    )
    into v_access.body
    from (
      select s.currency, s.account, s.debits_minor, s.credits_minor,
        s.credits_minor - s.debits_minor as amount_minor
      from pay.account_sums(v_access.environment_id) s
    ) b;
  end if;
  return v_access;
end
$function$;
alter function pay.balance(text) owner to pay_owner;
grant execute on function pay.balance(text) to pay_api;

-- function pay.begin_trigger(text,text)
CREATE OR REPLACE FUNCTION pay.begin_trigger(p_request text, p_trigger text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s'
AS $function$
declare
  v_access pay.admission := pay.admit_one(p_request);
  v_request json := p_request::json -> 0;
    v_trigger record;
  v_leased_until timestamptz;
begin
  select *, t.leased_until - v_access.at as lease into v_trigger
  from json_to_record(p_trigger::json) as t (
    endpoint_id text, event_id text, type text, subject_id text, body text, delivery_id text,
    leased_until timestamptz
  );
  v_leased_until := pay.server_time() + v_trigger.lease;
  if v_access.outcome = 'ok' then
    delete from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
      and k.key = v_request ->> 'idempotency_key' and k.status = 102
      and k.created_at <= pay.server_time() - v_trigger.lease;
    if not exists (
      select from pay.webhook_endpoints t
      where t.environment_id = v_access.environment_id and t.id = v_trigger.endpoint_id
    ) then
      v_access.outcome := 'not_found';
    end if;
  end if;
  v_access := pay.claim_one(p_request, v_access);
  if v_access.outcome = 'ok' then
    insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
    values (v_access.environment_id, v_trigger.event_id, v_trigger.type, v_trigger.subject_id, null,
      v_access.at, v_trigger.body);
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        attempt_count, next_attempt_at, leased_until, created_at)
    values
      (v_access.environment_id, v_trigger.delivery_id, v_trigger.event_id, v_trigger.type,
        v_trigger.endpoint_id, v_trigger.subject_id, null, 'pending', 1, v_leased_until,
        v_leased_until, v_access.at);
    v_access.outcome := 'committed';
  end if;
  return v_access;
end
$function$;
alter function pay.begin_trigger(text,text) owner to pay_owner;
grant execute on function pay.begin_trigger(text,text) to pay_api;

-- function pay.call_off_deliveries(text,text,integer)
CREATE OR REPLACE FUNCTION pay.call_off_deliveries(p_environment_id text, p_endpoint_id text, p_most integer)
 RETURNS boolean
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  with called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from (
      select w.id from pay.webhook_deliveries w
      where w.environment_id = p_environment_id and w.endpoint_id = p_endpoint_id
        and w.status = 'pending'
        and (w.leased_until is null or w.leased_until <= pay.server_time())
      limit p_most
      for update skip locked
    ) waiting
    where d.environment_id = p_environment_id and d.id = waiting.id
    returning d.id
  )
  select count(*) >= p_most from called_off
$function$;
alter function pay.call_off_deliveries(text,text,integer) owner to pay_owner;

-- function pay.called_off_at_once()
CREATE OR REPLACE FUNCTION pay.called_off_at_once()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select 5000 $function$;
alter function pay.called_off_at_once() owner to pay_owner;

-- function pay.change_api_key(text,text,text,text,text,timestamp with time zone,text)
CREATE OR REPLACE FUNCTION pay.change_api_key(p_request text, p_action text, p_id text, p_key text, p_secret text, p_older_expire_at timestamp with time zone, p_refusal text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s'
AS $function$
declare
  v_access pay.admission := pay.claim_one(p_request, pay.admit_one(p_request));
  v_secret json := p_secret::json;
  v_caller pay.api_keys;
  v_key pay.api_keys;
begin
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  select * into v_caller from pay.api_keys k where k.id = v_access.api_key_id;
  if p_action = 'create' then
    v_key := json_populate_record(null::pay.api_keys, p_key::json);
    v_key.id := p_id;
  else
    select * into v_key from pay.api_keys k
    where k.environment_id = v_access.environment_id and k.id = p_id and k.revoked_at is null
    for update;
  end if;
  v_access.outcome := pay.judge_key_change(p_action, v_caller, v_key, v_access.at);
  case v_access.outcome
    when 'ended' then
      v_access.status := 409;
      v_access.body := p_refusal;
    when 'committed' then
      v_access.body := pay.write_key_change(
        v_caller, v_key, p_action, v_access.at, v_secret, p_older_expire_at);
      if v_secret is not null then
        v_access.body := left(v_access.body, -1) || ',"secret":'
          || to_json(v_secret ->> 'reference')::text || '}';
      end if;
    else
      perform pay.release_key(p_request, v_access);
      return v_access;
  end case;
  perform pay.keep_answer(p_request, v_access);
  return v_access;
end
$function$;
alter function pay.change_api_key(text,text,text,text,text,timestamp with time zone,text) owner to pay_owner;
grant execute on function pay.change_api_key(text,text,text,text,text,timestamp with time zone,text) to pay_api;

-- function pay.change_webhook_endpoint(text,text,integer,text)
CREATE OR REPLACE FUNCTION pay.change_webhook_endpoint(p_request text, p_id text, p_expects_revision integer, p_endpoint text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s'
AS $function$
declare
  v_access pay.admission := pay.admit_one(p_request);
  v_revision integer;
  v_status_before text;
  v_endpoint pay.webhook_endpoints;
begin
  if v_access.outcome = 'ok' and p_expects_revision is not null then
    select t.revision, t.status into v_revision, v_status_before from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = p_id
    for update;
    -- Stale also if it is gone: the caller loads it again and is told that it is not there.
    if v_revision is distinct from p_expects_revision then
      v_access.outcome := 'stale';
    end if;
  end if;
  v_access := pay.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  if p_endpoint is not null then
    v_endpoint := json_populate_record(null::pay.webhook_endpoints, p_endpoint::json);
    v_endpoint.environment_id := v_access.environment_id;
  end if;
  v_access.outcome := pay.write_webhook_endpoint(
    v_access.environment_id, p_id, v_status_before, v_endpoint);
  if v_access.outcome <> 'committed' then
    perform pay.release_key(p_request, v_access);
  end if;
  return v_access;
end
$function$;
alter function pay.change_webhook_endpoint(text,text,integer,text) owner to pay_owner;
grant execute on function pay.change_webhook_endpoint(text,text,integer,text) to pay_api;

-- function pay.check_books()
CREATE OR REPLACE FUNCTION pay.check_books()
 RETURNS TABLE(oracle text, promise text, findings bigint, examples text[])
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  perform set_config('pay.worker', 'on', true);
  for oracle, promise in select o.oracle, o.promise from pay.list_oracles() o order by 2, 1 loop
    select count(*), coalesce((array_agg(concat(f.environment_id, ' ', f.subject_id, ': ', f.detail)))[1:3], '{}')
    into findings, examples
    from pay.find_breaches(oracle) f;
    return next;
  end loop;
end
$function$;
alter function pay.check_books() owner to pay_owner;
grant execute on function pay.check_books() to pay_operator;

-- function pay.check_ledger_transactions()
CREATE OR REPLACE FUNCTION pay.check_ledger_transactions()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
AS $function$
declare
  v_unbalanced text;
begin
  select t.transaction_id into v_unbalanced
  from (
    select distinct n.environment_id, n.subject_id, n.transaction_id from new_entries n
  ) t
  cross join lateral (
    select coalesce(bool_or(per_currency.total <> 0), true) as is_unbalanced
    from (
      select sum(case e.direction when 'debit' then e.amount_minor else -e.amount_minor end) as total
      from pay.ledger_entries e
      where e.environment_id = t.environment_id
        and e.subject_id = t.subject_id
        and e.transaction_id = t.transaction_id
      group by e.currency
    ) per_currency
  ) c
  where c.is_unbalanced
  limit 1;
  if found then
    raise exception 'ledger transaction % does not sum to zero', v_unbalanced
      using errcode = 'PAY01';
  end if;
  return null;
end
$function$;
alter function pay.check_ledger_transactions() owner to pay_owner;

-- function pay.claim(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.claim(p_requests json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_now timestamptz := pay.server_time();
  v_lost integer[];
  v_n integer;
  v_are_refused boolean;
  v_are_limited boolean;
begin
  with
  asked as materialized (
    select f.environment_id, f.api_key_id, r.*
    from unnest(p_found) f
    join json_to_recordset(p_requests) as r (
      n integer, request_id text, idempotency_key text, fingerprint text, status smallint, body text
    ) on r.n = f.n
    where f.outcome = 'ok' and r.idempotency_key is not null
  ),
  claimed as (
    insert into pay.idempotency_keys
      (environment_id, api_key_id, key, fingerprint, request_id, status, body, created_at)
    select a.environment_id, a.api_key_id, a.idempotency_key, decode(a.fingerprint, 'hex'),
      a.request_id, a.status, a.body, v_now
    from asked a
    order by a.api_key_id, a.idempotency_key, a.n
    on conflict on constraint idempotency_keys_pkey do nothing
    returning api_key_id, key, request_id
  )
  select coalesce(array_agg(a.n), '{}'),
    (select bool_or(f.outcome <> 'ok') from unnest(p_found) f),
    (select bool_or(f.remaining is not null) from unnest(p_found) f)
  into v_lost, v_are_refused, v_are_limited
  from asked a
  where not exists (
    select from claimed k
    where k.api_key_id = a.api_key_id
      and k.key = a.idempotency_key
      and k.request_id = a.request_id
  );
  -- If no answer is found below, the one that was in the way is gone: the request is sent again.
  foreach v_n in array v_lost loop
    p_found[v_n].outcome := 'expired';
  end loop;
  if v_are_refused or v_lost <> '{}' then
    p_found := pay.find_answers(p_requests, p_found, false);
  end if;
  if v_are_limited then
    p_found := pay.count_requests(p_found);
  end if;
  return p_found;
end
$function$;
alter function pay.claim(json,pay.admission[]) owner to pay_owner;

-- function pay.claim_one(text,pay.admission)
CREATE OR REPLACE FUNCTION pay.claim_one(p_request text, p_access pay.admission)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_found pay.admission[] := pay.claim(p_request::json, array[p_access]);
begin
  return v_found[1];
end
$function$;
alter function pay.claim_one(text,pay.admission) owner to pay_owner;

-- function pay.claim_suspect(jsonb,timestamp with time zone,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.claim_suspect(p_suspects_ahead jsonb, p_at timestamp with time zone, p_leased_until timestamp with time zone, p_ahead interval)
 RETURNS TABLE(environment_id text, public_id text, account text, id text, endpoint_id text, event_id text, subject_id text, attempt integer, url text, secrets text, livemode boolean, failing_since timestamp with time zone, suspect boolean, crashed boolean, body text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  c_most_lost constant integer := 3;
  c_longest_look constant interval := '200 ms';
  v_locked record;
  v_is_claimed boolean;
begin
  loop
    select * into v_locked from pay.lock_suspects(p_suspects_ahead, p_at);
    exit when v_locked.ids is null;
    -- A new statement has a new snapshot, as in pay.relay_turn.
    return query
    with
    chosen as materialized (
      select d.environment_id, d.id, t.url, t.secrets, t.failing_since, e.livemode, e.public_id,
        e.account, d.leased_until is not null as is_lost,
        d.leased_until is not null and d.lost_claims + 1 >= c_most_lost as crashed
      from unnest(v_locked.environments, v_locked.ids) with ordinality as c (environment_id, id, n)
      join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
      join pay.webhook_endpoints t
        on t.environment_id = d.environment_id and t.id = d.endpoint_id and t.status = 'enabled'
      join pay.environments e on e.id = d.environment_id
      where not exists (
        select from pay.webhook_deliveries w
        where w.status = 'pending'
          and w.environment_id is not distinct from d.environment_id
          and w.endpoint_id = d.endpoint_id
          and w.subject_id = d.subject_id
          and w.sequence < d.sequence
      )
      order by c.n
      limit 1
    ),
    claimed as (
      update pay.webhook_deliveries d
      set attempt_count = d.attempt_count + case when c.crashed then 0 else 1 end,
        lost_claims = d.lost_claims + case when c.is_lost then 1 else 0 end,
        leased_until = p_leased_until
      from chosen c
      where d.environment_id = c.environment_id and d.id = c.id
      returning c.*, d.endpoint_id, d.event_id, d.subject_id, d.attempt_count
    )
    select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
      c.attempt_count, c.url, c.secrets::text, c.livemode,
      c.failing_since + p_ahead, true, c.crashed, v.body
    from claimed c
    join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id;
    v_is_claimed := found;
    -- Postpones deliveries that wait for an earlier one, and cancels those of disabled endpoints.
    perform pay.put_off_deliveries(v_locked.environments, v_locked.ids, p_at);
    exit when v_is_claimed or clock_timestamp() > statement_timestamp() + c_longest_look;
  end loop;
end
$function$;
alter function pay.claim_suspect(jsonb,timestamp with time zone,timestamp with time zone,interval) owner to pay_owner;
comment on function pay.claim_suspect(jsonb,timestamp with time zone,timestamp with time zone,interval) is 'Internal.';

-- function pay.commit(text,text,text,text,text,text,integer)
CREATE OR REPLACE FUNCTION pay.commit(p_changes text, p_payments text, p_transfers text, p_refunds text, p_ledger text, p_events text, p_patience_ms integer DEFAULT NULL::integer)
 RETURNS TABLE(n integer, outcome text, api_key_id text, environment_id text, remaining integer, status smallint, body text, deliveries bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s'
AS $function$
#variable_conflict use_column
declare
  v_changes json := p_changes::json;
  v_found pay.admission[];
  v_moved integer[] := '{}';
  v_won integer[];
  v_environments text[];
  v_deliveries bigint := 0;
begin
  if p_patience_ms is not null then
    perform set_config('lock_timeout', p_patience_ms::text, true);
  end if;
  v_found := pay.admit(v_changes, 'shared', false);
  -- Most lists of changes need only some of these steps.
  if strpos(p_changes, '"expects_id"') > 0 then
    v_moved := array(
      select c.n from json_to_recordset(v_changes) as c (n integer, expects_id text)
      where c.expects_id is not null);
    v_found := pay.lock_subjects(v_changes, v_found);
  end if;
  if p_transfers <> '[]' then
    v_found := pay.lock_funds(v_changes, p_transfers::json, v_found);
  end if;
  v_found := pay.claim(v_changes, v_found);

  select array_agg(f.n), array_agg(f.environment_id) into v_won, v_environments
  from unnest(v_found) f where f.outcome = 'ok';
  -- A list of replays writes nothing: its rows are not even read.
  if v_won is not null then
    if p_payments <> '[]' then
      perform pay.write_payments(p_payments::json, v_won, v_environments, v_moved);
    end if;
    if p_transfers <> '[]' then
      perform pay.write_transfers(p_transfers::json, v_won, v_environments, v_moved);
    end if;
    if p_refunds <> '[]' then
      perform pay.write_refunds(p_refunds::json, v_won, v_environments);
    end if;
    if p_ledger <> '[]' then
      perform pay.record_movements(p_ledger::json, v_won, v_environments);
    end if;
    v_deliveries := pay.write_events(p_events::json, v_won, v_environments);
  end if;
  return query
    select f.n, case f.outcome when 'ok' then 'committed' else f.outcome end, f.api_key_id,
      f.environment_id, f.remaining, f.status, f.body, v_deliveries
    from unnest(v_found) f;
end
$function$;
alter function pay.commit(text,text,text,text,text,text,integer) owner to pay_owner;
grant execute on function pay.commit(text,text,text,text,text,text,integer) to pay_api;

-- function pay.configure_relay(text,text)
CREATE OR REPLACE FUNCTION pay.configure_relay(p_url text, p_token text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if p_url !~ '^https?://[^[:space:]]+/api-v1-payments/internal/relay$' then
    raise exception 'relay url must end in /api-v1-payments/internal/relay'
      using errcode = 'invalid_parameter_value';
  end if;
  if p_token !~ '^[!-~]{16,200}$' then
    raise exception 'relay token must be 16 to 200 visible ASCII characters'
      using errcode = 'invalid_parameter_value';
  end if;
  perform set_config('pay.worker', 'on', true);
  insert into pay.settings (name, value)
  values ('relay_url', p_url), ('relay_token', p_token)
  on conflict on constraint settings_pkey do update set value = excluded.value;
end
$function$;
alter function pay.configure_relay(text,text) owner to pay_owner;
grant execute on function pay.configure_relay(text,text) to pay_operator;

-- function pay.count_requests(pay.admission[])
CREATE OR REPLACE FUNCTION pay.count_requests(p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_told record;
begin
  perform pay.add_requests(c.environment_id, c.api_key_id, c.at, c.requests)
  from (
    select f.environment_id, f.api_key_id, max(f.at) as at, count(*)::integer as requests
    from unnest(p_found) f
    where f.remaining >= 0 and f.outcome not in ('replay', 'resetting', 'stale', 'expired')
    group by f.environment_id, f.api_key_id
  ) c;
  for v_told in
    select f.n, f.outcome, f.remaining from unnest(p_found) f
    where f.remaining < 0 or (f.remaining is not null
      and f.outcome in ('replay', 'resetting', 'stale', 'expired'))
  loop
    if v_told.outcome = 'forbidden' then
      p_found[v_told.n].outcome := 'rate_limited';
    end if;
    p_found[v_told.n].remaining := case
      when v_told.outcome in ('resetting', 'stale', 'expired') then null
      when v_told.outcome = 'replay' then greatest(0, v_told.remaining + 1)
      else 0
    end;
  end loop;
  return p_found;
end
$function$;
alter function pay.count_requests(pay.admission[]) owner to pay_owner;

-- function pay.create_api_key(text,text,text,text[],text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.create_api_key(p_id text, p_environment_id text, p_name text, p_scopes text[], p_secret_hash text, p_prefix text, p_last_four text, p_expires_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_environment text := pay.hold_environment(p_environment_id);
  v_livemode boolean;
begin
  perform set_config('pay.environment_ids', array[v_environment]::text, true);
  select livemode into v_livemode from pay.environments where id = v_environment;
  if v_livemode is null then
    raise exception 'no environment %', p_environment_id using errcode = 'foreign_key_violation';
  end if;
  if not pay.take_key_place(v_environment, now()) then
    raise exception 'environment % has % live keys already', p_environment_id, pay.max_live_keys()
      using errcode = 'program_limit_exceeded';
  end if;
  insert into pay.api_keys (id, environment_id, livemode, name, scopes, expires_at)
  values (p_id, v_environment, v_livemode, p_name, p_scopes, p_expires_at);
  insert into pay.api_key_secrets
    (hash, api_key_id, environment_id, livemode, prefix, last_four, expires_at)
  values
    (decode(p_secret_hash, 'hex'), p_id, v_environment, v_livemode, p_prefix, p_last_four, p_expires_at);
end
$function$;
alter function pay.create_api_key(text,text,text,text[],text,text,text,timestamp with time zone) owner to pay_owner;
grant execute on function pay.create_api_key(text,text,text,text[],text,text,text,timestamp with time zone) to pay_operator;

-- function pay.create_environment(text,text,boolean,text)
CREATE OR REPLACE FUNCTION pay.create_environment(p_id text, p_account text, p_livemode boolean, p_name text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.environment_ids', array[p_id]::text, true);
  insert into pay.environments (id, public_id, account, livemode, name)
  values (p_id, p_id, p_account, p_livemode, p_name);
end
$function$;
alter function pay.create_environment(text,text,boolean,text) owner to pay_owner;
grant execute on function pay.create_environment(text,text,boolean,text) to pay_operator;

-- function pay.delete_keys(text[])
CREATE OR REPLACE FUNCTION pay.delete_keys(p_ids text[])
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_rows bigint;
begin
  delete from pay.api_key_secrets s where s.api_key_id = any (p_ids);
  delete from pay.api_keys k where k.id = any (p_ids);
  get diagnostics v_rows = row_count;
  return v_rows;
end
$function$;
alter function pay.delete_keys(text[]) owner to pay_owner;

-- function pay.disable_webhook_endpoint(text,text,integer,timestamp with time zone,text,text,text,text)
CREATE OR REPLACE FUNCTION pay.disable_webhook_endpoint(p_environment_id text, p_id text, p_expects_revision integer, p_at timestamp with time zone, p_endpoint_body text, p_event_id text, p_event_body text, p_delivery_id text)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  update pay.webhook_endpoints t
  set status = 'disabled', revision = t.revision + 1, body = p_endpoint_body
  where t.environment_id = p_environment_id and t.id = p_id
    and t.revision = p_expects_revision and t.status = 'enabled';
  if not found then
    return 'stale';
  end if;
  perform pay.call_off_deliveries(p_environment_id, p_id, pay.called_off_at_once());
  insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
  values (p_environment_id, p_event_id, 'webhook_endpoint.disabled', p_id, p_expects_revision + 1,
    p_at, p_event_body);
  insert into pay.webhook_deliveries
    (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
      next_attempt_at, created_at)
  select p_environment_id, p_delivery_id || pay.slot_character(t.slot), p_event_id,
    'webhook_endpoint.disabled', t.id, p_id, p_expects_revision + 1, 'pending',
    least(p_at, pay.server_time()), p_at
  from pay.webhook_endpoints t
  where t.environment_id = p_environment_id
    and t.status = 'enabled'
    and t.events && pay.patterns_of('webhook_endpoint.disabled');
  return 'committed';
end
$function$;
alter function pay.disable_webhook_endpoint(text,text,integer,timestamp with time zone,text,text,text,text) owner to pay_owner;
grant execute on function pay.disable_webhook_endpoint(text,text,integer,timestamp with time zone,text,text,text,text) to pay_api;

-- function pay.drop_ended_secrets(text[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.drop_ended_secrets(p_ids text[], p_at timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_rows bigint;
begin
  with gone as (
    delete from pay.api_key_secrets s
    where s.api_key_id = any (p_ids) and s.expires_at <= p_at
      and exists (
        select from pay.api_key_secrets newer
        where newer.api_key_id = s.api_key_id
          and (newer.created_at, newer.hash) > (s.created_at, s.hash)
      )
    returning s.api_key_id, s.last_used_at
  ),
  noted as (
    update pay.api_keys k set last_used_at = g.last_used_at
    from (
      select gone.api_key_id, max(gone.last_used_at) as last_used_at from gone group by 1
    ) g
    where k.id = g.api_key_id and g.last_used_at is not null
      and (k.last_used_at is null or k.last_used_at < g.last_used_at)
  )
  select count(*) into v_rows from gone;
  return v_rows;
end
$function$;
alter function pay.drop_ended_secrets(text[],timestamp with time zone) owner to pay_owner;

-- function pay.due_relay()
CREATE OR REPLACE FUNCTION pay.due_relay()
 RETURNS TABLE(url text, token text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  if not exists (
    select from pay.webhook_deliveries d
    where d.status = 'pending' and d.next_attempt_at <= now()
      and (d.leased_until is null or d.leased_until <= now())
  ) then
    return;
  end if;
  return query
    select u.value, t.value
    from pay.settings u
    join pay.settings t on t.name = 'relay_token'
    where u.name = 'relay_url';
end
$function$;
alter function pay.due_relay() owner to pay_owner;
grant execute on function pay.due_relay() to pay_operator;

-- function pay.end_api_key(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.end_api_key(p_id text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  update pay.api_keys k set revoked_at = coalesce(k.revoked_at, p_at) where k.id = p_id;
  update pay.api_key_secrets s set revoked_at = coalesce(s.revoked_at, p_at)
  where s.api_key_id = p_id;
end
$function$;
alter function pay.end_api_key(text,timestamp with time zone) owner to pay_owner;

-- function pay.end_trigger(text,text,boolean,text)
CREATE OR REPLACE FUNCTION pay.end_trigger(p_request text, p_delivery_id text, p_delivered boolean, p_attempt text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare
  v_access pay.admission := pay.admit_one(p_request);
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  update pay.webhook_deliveries d
  set status = case when p_delivered then 'delivered' else 'failed' end,
    attempts = p_attempt, next_attempt_at = null, leased_until = null
  where d.environment_id = v_access.environment_id and d.id = p_delivery_id
  returning * into v_delivery;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    return v_access;
  end if;
  v_access.outcome := 'committed';
  v_access.status := 200;
  v_access.body := pay.webhook_delivery_body(v_delivery);
  perform pay.keep_answer(p_request, v_access);
  return v_access;
end
$function$;
alter function pay.end_trigger(text,text,boolean,text) owner to pay_owner;
grant execute on function pay.end_trigger(text,text,boolean,text) to pay_api;

-- function pay.filtered_page(text,timestamp with time zone,json)
CREATE OR REPLACE FUNCTION pay.filtered_page(p_environment_id text, p_at timestamp with time zone, p_request json, OUT outcome text, OUT data text, OUT has_more boolean, OUT next_cursor text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_hashjoin TO 'off'
 SET enable_sort TO 'off'
 SET enable_incremental_sort TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_kind text := p_request ->> 'kind';
  v_parent_id text := p_request ->> 'parent_id';
  v_starting_after text := p_request ->> 'starting_after';
  v_is_known boolean;
begin
  outcome := 'ok';
  if v_parent_id is not null and not exists (
    select from pay.payments t where t.environment_id = p_environment_id and t.id = v_parent_id
  ) then
    outcome := 'not_found';
    return;
  end if;
  if v_starting_after is not null then
    execute format(
      'select exists (select from pay.%I t where t.environment_id = $1 and t.id = $2)', v_kind
    ) into v_is_known using p_environment_id, v_starting_after;
    if not v_is_known then
      outcome := 'unknown_cursor';
      return;
    end if;
  end if;
  select p.data, p.has_more, p.next_cursor into data, has_more, next_cursor
  from pay.list_page(
    p_environment_id, p_at, v_kind, (p_request ->> 'limit')::integer,
    v_starting_after, coalesce(p_request -> 'filters', '{}')::jsonb
  ) p;
end
$function$;
alter function pay.filtered_page(text,timestamp with time zone,json) owner to pay_owner;

-- function pay.find_answers(json,pay.admission[],boolean)
CREATE OR REPLACE FUNCTION pay.find_answers(p_requests json, p_found pay.admission[], p_is_read boolean)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_now timestamptz := pay.server_time();
  v_kept record;
begin
  -- Looked up one by one, by the whole key: without statistics a join would read all keys of the
  -- environment.
  for v_kept in
    with asked as materialized (
      select f.n, f.environment_id, f.api_key_id, f.outcome, r.idempotency_key as key,
        decode(r.fingerprint, 'hex') as fingerprint
      from unnest(p_found) f
      join json_to_recordset(p_requests) as r (n integer, idempotency_key text, fingerprint text)
        on r.n = f.n
      where r.idempotency_key is not null
        and f.outcome not in ('unauthorized', 'resetting', 'forbidden')
        and (p_is_read or f.outcome <> 'ok')
    )
    select a.n, a.environment_id, a.api_key_id, a.key, i.status, i.body,
      case
        when i.created_at <= v_now - pay.idempotency_retention() then 'expired'
        when i.fingerprint = a.fingerprint and i.status = 102 then 'in_progress'
        when i.fingerprint = a.fingerprint then 'replay'
        when a.outcome = 'rate_limited' then 'rate_limited'
        else 'conflict'
      end as outcome
    from asked a
    cross join lateral (
      select o.fingerprint, o.status, o.body, o.created_at
      from pay.idempotency_keys o
      where o.environment_id = a.environment_id and o.api_key_id = a.api_key_id and o.key = a.key
      limit 1
    ) i
    where not (p_is_read
      and (i.status = 102 or i.created_at <= v_now - pay.idempotency_retention()))
  loop
    p_found[v_kept.n].outcome := v_kept.outcome;
    if v_kept.outcome = 'replay' then
      p_found[v_kept.n].status := v_kept.status;
      p_found[v_kept.n].body := v_kept.body;
    elsif v_kept.outcome = 'expired' then
      delete from pay.idempotency_keys o
      where o.environment_id = v_kept.environment_id
        and o.api_key_id = v_kept.api_key_id
        and o.key = v_kept.key
        -- Not one that a twin has claimed meanwhile.
        and o.created_at <= v_now - pay.idempotency_retention();
    end if;
  end loop;
  return p_found;
end
$function$;
alter function pay.find_answers(json,pay.admission[],boolean) owner to pay_owner;

-- function pay.find_breaches(text)
CREATE OR REPLACE FUNCTION pay.find_breaches(p_oracle text)
 RETURNS TABLE(environment_id text, subject_id text, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  return query execute format(
    'select f.environment_id, f.subject_id, f.detail from pay.%I f
     where f.environment_id not in (
       select e.id from pay.environments e where e.retired_at is not null
     )', p_oracle);
end
$function$;
alter function pay.find_breaches(text) owner to pay_owner;

-- function pay.find_environment(text,boolean)
CREATE OR REPLACE FUNCTION pay.find_environment(p_account text, p_livemode boolean)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  return (
    select e.public_id from pay.environments e
    where e.account = p_account and e.livemode = p_livemode and e.retired_at is null
    order by e.public_id limit 1
  );
end
$function$;
alter function pay.find_environment(text,boolean) owner to pay_owner;
grant execute on function pay.find_environment(text,boolean) to pay_operator;

-- function pay.forget_findings()
CREATE OR REPLACE FUNCTION pay.forget_findings()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_forgotten bigint;
begin
  perform set_config('pay.worker', 'on', true);
  delete from pay.oracle_findings;
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$function$;
alter function pay.forget_findings() owner to pay_owner;
grant execute on function pay.forget_findings() to pay_operator;

-- function pay.hold_environment(text)
CREATE OR REPLACE FUNCTION pay.hold_environment(p_public_id text)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_held text := '';
  v_environment record;
begin
  perform set_config('pay.worker', 'on', true);
  loop
    select e.id, e.livemode into v_environment from pay.environments e
    where e.public_id = p_public_id and e.retired_at is null;
    exit when v_environment.id is null or v_environment.livemode or v_environment.id = v_held;
    v_held := v_environment.id;
    perform pg_advisory_xact_lock_shared(hashtextextended('environment ' || v_held, 0));
  end loop;
  return v_environment.id;
end
$function$;
alter function pay.hold_environment(text) owner to pay_owner;

-- function pay.id_floor(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.id_floor(p_prefix text, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_rest bigint := floor(extract(epoch from p_at) * 1000);
  v_time text := '';
begin
  for v_character in 1..9 loop
    v_time := substr('0123456789abcdefghjkmnpqrstvwxyz', (v_rest % 32)::integer + 1, 1) || v_time;
    v_rest := v_rest / 32;
  end loop;
  return p_prefix || v_time || repeat('0', 17);
end
$function$;
alter function pay.id_floor(text,timestamp with time zone) owner to pay_owner;

-- function pay.idempotency_retention()
CREATE OR REPLACE FUNCTION pay.idempotency_retention()
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select interval '24 hours' $function$;
alter function pay.idempotency_retention() owner to pay_owner;

-- function pay.insert_webhook_endpoint(pay.webhook_endpoints)
CREATE OR REPLACE FUNCTION pay.insert_webhook_endpoint(p_endpoint pay.webhook_endpoints)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_endpoint pay.webhook_endpoints := p_endpoint;
begin
  perform pg_advisory_xact_lock(hashtextextended(v_endpoint.environment_id, 0));
  select min(free.slot) into v_endpoint.slot
  from generate_series(0, 15) as free (slot)
  where not exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_endpoint.environment_id and t.slot = free.slot
  );
  if v_endpoint.slot is null then
    return false;
  end if;
  insert into pay.webhook_endpoints
    (environment_id, id, slot, url, events, status, secrets, revision, created_at, body)
  values
    (v_endpoint.environment_id, v_endpoint.id, v_endpoint.slot, v_endpoint.url, v_endpoint.events,
      v_endpoint.status, v_endpoint.secrets, v_endpoint.revision, v_endpoint.created_at,
      v_endpoint.body);
  return true;
end
$function$;
alter function pay.insert_webhook_endpoint(pay.webhook_endpoints) owner to pay_owner;

-- function pay.judge_key_change(text,pay.api_keys,pay.api_keys,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.judge_key_change(p_action text, p_caller pay.api_keys, p_key pay.api_keys, p_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select case
    when p_key.id is null then 'not_found'
    -- Null is every scope.
    when p_caller.scopes is not null
      and (p_key.scopes is null or not p_key.scopes <@ p_caller.scopes) then 'wider'
    -- The caller learns the new secret, which must not outlive the caller's key.
    when p_action = 'rotate' and p_caller.expires_at < coalesce(p_key.expires_at, 'infinity')
      then 'outlives'
    when p_action = 'rotate' and p_key.expires_at <= p_at then 'ended'
    when p_action = 'create' and not pay.take_key_place(p_caller.environment_id, p_at) then 'full'
    else 'committed'
  end
$function$;
alter function pay.judge_key_change(text,pay.api_keys,pay.api_keys,timestamp with time zone) owner to pay_owner;

-- function pay.keep_answer(text,pay.admission)
CREATE OR REPLACE FUNCTION pay.keep_answer(p_request text, p_access pay.admission)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_request json := p_request::json -> 0;
begin
  update pay.idempotency_keys k set status = coalesce(p_access.status, k.status), body = p_access.body
  where k.environment_id = p_access.environment_id and k.api_key_id = p_access.api_key_id
    and k.key = v_request ->> 'idempotency_key' and k.request_id = v_request ->> 'request_id';
end
$function$;
alter function pay.keep_answer(text,pay.admission) owner to pay_owner;

-- function pay.ledger_entry_body(pay.ledger_entries)
CREATE OR REPLACE FUNCTION pay.ledger_entry_body(e pay.ledger_entries)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select row_to_json(t)::text from (
    select
      e.id,
      'ledger_entry' as object,
      e.transaction_id,
      e.account,
      e.direction,
      e.amount_minor,
      e.currency,
      case when e.subject_id like 'pay\_%' then e.subject_id end as payment_id,
      e.refund_id,
      case when e.subject_id like 'tr\_%' then e.subject_id end as transfer_id,
      pay.wire_time(e.created_at) as created_at
  ) t
$function$;
alter function pay.ledger_entry_body(pay.ledger_entries) owner to pay_owner;

-- function pay.limit_requests(pay.admission[],integer[],integer[],boolean)
CREATE OR REPLACE FUNCTION pay.limit_requests(p_found pay.admission[], p_key_rates integer[], p_environment_rates integer[], p_counts boolean)
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_request record;
  v_environment text := '';
  v_keys text[];
  v_used numeric[];
  v_total numeric;
  v_key integer;
  v_left integer;
begin
  for v_request in
    select f.n, f.environment_id, f.api_key_id, f.outcome, max(f.at) over () as at,
      nullif(p_key_rates[f.n], 0) as key_rate, nullif(p_environment_rates[f.n], 0) as environment_rate
    from unnest(p_found) f
    where f.outcome not in ('unauthorized', 'resetting')
      and (p_key_rates[f.n] > 0 or p_environment_rates[f.n] > 0)
    order by f.environment_id, f.n
  loop
    if v_request.environment_id <> v_environment then
      v_environment := v_request.environment_id;
      select array_agg(u.api_key_id), array_agg(u.used), coalesce(sum(u.used), 0)
      into v_keys, v_used, v_total
      from pay.requests_used(v_environment, v_request.at) u;
    end if;
    v_key := array_position(v_keys, v_request.api_key_id);
    if v_key is null then
      v_keys := v_keys || v_request.api_key_id;
      v_used := v_used || 0::numeric;
      v_key := cardinality(v_keys);
    end if;
    -- least() ignores the null of a limit that is none.
    v_left := floor(least(
      2 * v_request.key_rate - 1 - v_used[v_key], 2 * v_request.environment_rate - 1 - v_total));
    p_found[v_request.n].remaining := v_left;
    continue when v_request.outcome = 'replay';
    if v_left >= 0 then
      v_used[v_key] := v_used[v_key] + 1;
      v_total := v_total + 1;
    elsif v_request.outcome <> 'forbidden' then
      p_found[v_request.n].outcome := 'rate_limited';
    end if;
  end loop;
  return case when p_counts then pay.count_requests(p_found) else p_found end;
end
$function$;
alter function pay.limit_requests(pay.admission[],integer[],integer[],boolean) owner to pay_owner;

-- function pay.list(text)
CREATE OR REPLACE FUNCTION pay.list(p_requests text)
 RETURNS TABLE(n integer, outcome text, api_key_id text, environment_id text, remaining integer, data text, has_more boolean, next_cursor text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  v_requests json := p_requests::json;
  v_found pay.admission[] := pay.admit(v_requests, 'shared', true);
begin
  return query
    with asked as materialized (
      select f.*, r."limit", r.starting_after, r.is_plain,
        -- Every id sorts before 'pay_~'. Computed here: in the comparison, below row-level
        -- security, a coalesce is a filter and not an index condition, and a deep page would read
        -- all rows before it.
        coalesce(r.starting_after, 'pay_~') as before
      from unnest(v_found) f
      join (
        select *, kind = 'payments' and filters is null and parent_id is null as is_plain
        from json_to_recordset(v_requests) as r (
          n integer, kind text, "limit" integer, starting_after text, filters json, parent_id text
        )
      ) r on r.n = f.n
    )
    select a.n, case when c.is_known then coalesce(p.outcome, a.outcome) else 'unknown_cursor' end,
      a.api_key_id, a.environment_id, a.remaining, p.data, p.has_more, p.next_cursor
    from asked a
    cross join lateral (
      select a.outcome <> 'ok' or not a.is_plain or a.starting_after is null or exists (
        select from pay.payments t
        where t.environment_id = a.environment_id and t.id = a.starting_after
      ) as is_known
    ) c
    left join lateral (
      select
        'ok' as outcome,
        coalesce(string_agg(page.body, ',' order by page.id desc) filter (where page.is_shown), '')
          as data,
        coalesce(bool_or(not page.is_shown), false) as has_more,
        case when bool_or(not page.is_shown)
          then min(page.id) filter (where page.is_shown)
        end as next_cursor
      from (
        select t.id, t.body, row_number() over newest = 1 or (
          row_number() over newest <= a."limit"
          and sum(octet_length(t.body)) over newest <= pay.page_bytes()
        ) as is_shown
        from pay.payments t
        where t.environment_id = a.environment_id and t.id < a.before
        window newest as (order by t.id desc rows unbounded preceding)
        order by t.id desc
        limit a."limit" + 1
      ) page
      having a.outcome = 'ok' and a.is_plain and c.is_known
      union all
      select x.outcome, x.data, x.has_more, x.next_cursor
      from pay.filtered_page(a.environment_id, a.at, v_requests -> (a.n - 1)) x
      where a.outcome = 'ok' and not a.is_plain
    ) p on true;
end
$function$;
alter function pay.list(text) owner to pay_owner;
grant execute on function pay.list(text) to pay_api;

-- function pay.list_api_keys()
CREATE OR REPLACE FUNCTION pay.list_api_keys()
 RETURNS TABLE(id text, environment_id text, account text, environment_name text, livemode boolean, name text, scopes text[], prefix text, last_four text, secrets integer, last_used_at timestamp with time zone, created_at timestamp with time zone, expires_at timestamp with time zone, revoked_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select k.id, e.public_id, e.account, e.name, k.livemode, k.name, k.scopes, n.prefix,
      n.last_four, n.secrets, greatest(k.last_used_at, n.last_used_at), k.created_at, k.expires_at,
      k.revoked_at
    from pay.api_keys k
    join pay.environments e on e.id = k.environment_id
    left join lateral (
      select (array_agg(s.prefix order by s.created_at desc))[1] as prefix,
        (array_agg(s.last_four order by s.created_at desc))[1] as last_four,
        (count(*) filter (where s.revoked_at is null
          and (s.expires_at is null or s.expires_at > now())))::integer as secrets,
        max(s.last_used_at) as last_used_at
      from pay.api_key_secrets s where s.api_key_id = k.id
    ) n on true
    order by e.account, e.public_id, k.id;
end
$function$;
alter function pay.list_api_keys() owner to pay_owner;
grant execute on function pay.list_api_keys() to pay_operator;

-- function pay.list_column(text,jsonb)
CREATE OR REPLACE FUNCTION pay.list_column(p_kind text, p_filters jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select coalesce(
    case p_kind
      when 'payments' then case
        when p_filters ? 'reference' then 'reference'
        when p_filters ->> 'status' <> 'completed' then 'status'
      end
      when 'refunds' then case when p_filters ? 'payment_id' then 'payment_id' end
      when 'transfers' then case when p_filters ? 'status' then 'status' end
      when 'webhook_deliveries' then case
        when p_filters ? 'subject_id' then 'subject_id'
        when p_filters ? 'endpoint_id' then 'endpoint_id'
      end
    end,
    'environment_id'
  )
$function$;
alter function pay.list_column(text,jsonb) owner to pay_owner;

-- function pay.list_oracles()
CREATE OR REPLACE FUNCTION pay.list_oracles()
 RETURNS TABLE(oracle text, promise text)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select c.relname::text, obj_description(c.oid, 'pg_class') from pg_class c
  where c.relnamespace = 'pay'::regnamespace and c.relkind = 'v' and c.relname like 'oracle\_%'
$function$;
alter function pay.list_oracles() owner to pay_owner;

-- function pay.list_page(text,timestamp with time zone,text,integer,text,jsonb)
CREATE OR REPLACE FUNCTION pay.list_page(p_environment_id text, p_at timestamp with time zone, p_kind text, p_limit integer, p_starting_after text, p_filters jsonb, OUT data text, OUT has_more boolean, OUT next_cursor text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_filters jsonb := p_filters;
  v_subject text;
  v_few text;
  v_column text;
  v_match text;
  v_is_left boolean;
  v_last_shown text;
  v_last_read text;
begin
  -- The subject of a transaction's entries and of an event's deliveries has an index.
  if p_kind = 'ledger_entries' and p_filters ? 'transaction_id' then
    select coalesce(min(x.subject_id), '') into v_subject from pay.ledger_transactions x
    where x.environment_id = p_environment_id and x.id = p_filters ->> 'transaction_id';
  elsif p_kind = 'webhook_deliveries' and p_filters ? 'event_id' then
    select coalesce(min(x.subject_id), '') into v_subject from pay.events x
    where x.environment_id = p_environment_id and x.id = p_filters ->> 'event_id';
  end if;
  if v_subject <> coalesce(p_filters ->> 'subject_id', v_subject) then
    data := '';
    has_more := false;
    return;
  end if;
  if v_subject is not null then
    v_filters := p_filters || jsonb_build_object('subject_id', v_subject);
  end if;

  v_few := pay.list_subject(p_environment_id, p_kind, v_filters);
  v_column := case when v_few is null then pay.list_column(p_kind, v_filters) end;
  select coalesce(string_agg(format('t.%I = $2 ->> %L', c, c), ' and '), 'true') into v_match
  from jsonb_object_keys(v_filters - array[coalesce(v_column, ''), 'id_from', 'id_before']) c;
  execute pay.list_query(
    coalesce('(' || v_few || ')', format('pay.%I', p_kind)),
    pay.list_range(p_kind, v_column),
    array_remove(array[v_column, 'id'], null),
    v_match,
    case p_kind
      when 'api_keys' then 'pay.api_key_body(t, $6)'
      when 'webhook_deliveries' then 'pay.webhook_delivery_body(t)'
      when 'ledger_entries' then 'pay.ledger_entry_body(t)'
      else 't.body'
    end
  )
  into data, v_is_left, v_last_shown, v_last_read
  using p_environment_id, v_filters,
    -- Every id sorts before '~'.
    least(coalesce(p_starting_after, '~') collate "C", coalesce(v_filters ->> 'id_before', '~')),
    coalesce(v_filters ->> 'id_from', ''),
    p_limit, p_at;
  data := coalesce(data, '');
  has_more := coalesce(v_is_left, false) or v_last_read is not null;
  next_cursor := case when v_is_left then v_last_shown else v_last_read end;
end
$function$;
alter function pay.list_page(text,timestamp with time zone,text,integer,text,jsonb) owner to pay_owner;

-- function pay.list_query(text,text,text[],text,text)
CREATE OR REPLACE FUNCTION pay.list_query(p_source text, p_range text, p_columns text[], p_match text, p_body text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select format(
    'select
       string_agg(page.body, '','' order by page.n) filter (where page.is_shown),
       bool_or(page.body is not null and not page.is_shown),
       min(page.id) filter (where page.is_shown),
       min(page.id) filter (where page.n = pay.page_rows())
     from (
       select t.n, t.id, t.body,
         t.body is not null and (row_number() over shown = 1 or (
           row_number() over shown <= $5
           and sum(octet_length(t.body)) over shown <= pay.page_bytes()
         )) as is_shown
       from (
         select %3$s, case when %5$s then %6$s end as body, row_number() over (order by %4$s) as n
         from %1$s t
         where %2$s
         order by %4$s
         limit pay.page_rows()
       ) t
       where t.body is not null or t.n = pay.page_rows()
       window shown as (order by %4$s rows unbounded preceding)
       limit $5 + 1
     ) page',
    p_source, p_range,
    (select string_agg('t.' || c, ', ') from unnest(p_columns) c),
    (select string_agg('t.' || c || ' desc', ', ') from unnest(p_columns) c),
    p_match, p_body
  )
$function$;
alter function pay.list_query(text,text,text[],text,text) owner to pay_owner;

-- function pay.list_range(text,text)
CREATE OR REPLACE FUNCTION pay.list_range(p_kind text, p_column text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select case
    when p_column is null then 'true'
    when p_column = 'environment_id' then 't.environment_id = any (array[$1])'
    else format('t.%1$I = any (array[$2 ->> %1$L]) and t.environment_id = $1', p_column)
  end
  || ' and t.id < $3 and t.id >= $4'
  -- The predicates of the partial indexes.
  || case
    when p_column = 'reference' then ' and t.reference is not null'
    when p_kind = 'payments' and p_column = 'status' then ' and t.status <> ''completed'''
    else ''
  end
$function$;
alter function pay.list_range(text,text) owner to pay_owner;

-- function pay.list_subject(text,text,jsonb)
CREATE OR REPLACE FUNCTION pay.list_subject(p_environment_id text, p_kind text, p_filters jsonb)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_rows text := 'select t.* from pay.%I t
    where t.environment_id = $1 and t.subject_id = $2 ->> ''subject_id''';
  v_are_few boolean;
begin
  if p_kind not in ('events', 'ledger_entries') or not p_filters ? 'subject_id' then
    return null;
  end if;
  if p_filters ? 'transaction_id' then
    v_rows := v_rows || '
      and t.transaction_id between $2 ->> ''transaction_id'' and $2 ->> ''transaction_id''';
  end if;
  v_rows := format(v_rows || ' order by t.%I limit pay.page_rows() + 1', p_kind,
    case p_kind when 'events' then 'sequence' else 'transaction_id' end);
  execute format('select count(*) <= pay.page_rows() from (%s) few', v_rows)
  into v_are_few
  using p_environment_id, p_filters;
  return case when v_are_few then v_rows end;
end
$function$;
alter function pay.list_subject(text,text,jsonb) owner to pay_owner;

-- function pay.load(text)
CREATE OR REPLACE FUNCTION pay.load(p_requests text)
 RETURNS TABLE(n integer, outcome text, api_key_id text, environment_id text, remaining integer, status smallint, body text, detail text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  v_found pay.admission[] := pay.admit(p_requests::json, 'shared', true);
begin
  return query
    select f.n,
      case
        when f.outcome = 'ok' and r.kind is not null and coalesce(p.body, o.body) is null
          then 'not_found'
        else f.outcome
      end,
      f.api_key_id, f.environment_id, f.remaining, f.status, coalesce(p.body, o.body, f.body),
      o.detail
    from unnest(v_found) f
    join json_to_recordset(p_requests::json) as r (n integer, kind text, id text, at timestamptz)
      on r.n = f.n
    left join lateral (
      select t.body from pay.payments t
      where f.outcome = 'ok' and r.kind = 'payments'
        and t.environment_id = f.environment_id and t.id = r.id
      limit 1
    ) p on true
    left join lateral (
      select x.body, x.detail from pay.read_resource(f.environment_id, r.kind, r.id, r.at) x
      where f.outcome = 'ok' and r.kind <> 'payments'
      -- Without this the function is called before the condition is checked.
      limit 1
    ) o on true;
end
$function$;
alter function pay.load(text) owner to pay_owner;
grant execute on function pay.load(text) to pay_api;

-- function pay.load_webhook_endpoint(text,text)
CREATE OR REPLACE FUNCTION pay.load_webhook_endpoint(p_environment_id text, p_id text)
 RETURNS TABLE(revision integer, status text, body text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select t.revision, t.status, t.body from pay.webhook_endpoints t
    where t.environment_id = p_environment_id and t.id = p_id;
end
$function$;
alter function pay.load_webhook_endpoint(text,text) owner to pay_owner;
grant execute on function pay.load_webhook_endpoint(text,text) to pay_api;

-- function pay.lock_funds(json,json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.lock_funds(p_changes json, p_transfers json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_draw record;
  v_fund text := '';
  v_left numeric;
begin
  for v_draw in
    select c.n, f.environment_id, t.currency, t.amount_minor
    from unnest(p_found) f
    join json_to_recordset(p_changes) as c (n integer, expects_id text) on c.n = f.n
    join json_to_recordset(p_transfers) as t (n integer, currency text, amount_minor bigint)
      on t.n = c.n
    where f.outcome = 'ok' and c.expects_id is null
    order by f.environment_id, t.currency, c.n
  loop
    if v_fund <> v_draw.environment_id || v_draw.currency then
      v_fund := v_draw.environment_id || v_draw.currency;
      perform pay.roll_up_if_many(v_draw.environment_id);
      perform pg_advisory_xact_lock(hashtextextended(v_fund, 0));
      -- A statement after the lock, so that it sees what the one before has taken.
      v_left := pay.available_minor(v_draw.environment_id, v_draw.currency);
    end if;
    if v_draw.amount_minor > v_left then
      p_found[v_draw.n].outcome := 'insufficient';
    else
      v_left := v_left - v_draw.amount_minor;
    end if;
  end loop;
  return p_found;
end
$function$;
alter function pay.lock_funds(json,json,pay.admission[]) owner to pay_owner;

-- function pay.lock_subjects(json,pay.admission[])
CREATE OR REPLACE FUNCTION pay.lock_subjects(p_changes json, p_found pay.admission[])
 RETURNS pay.admission[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_n integer;
begin
  for v_n in
    with
    asked as materialized (
      select c.n, c.expects_id, c.expects_sequence, f.environment_id
      from unnest(p_found) f
      join json_to_recordset(p_changes) as c (n integer, expects_id text, expects_sequence integer)
        on c.n = f.n
      where f.outcome = 'ok' and c.expects_id is not null
    ),
    payment as materialized (
      select c.n, p.id
      from asked c
      join pay.payments p
        on p.environment_id = c.environment_id
        and p.id = c.expects_id
        and p.sequence = c.expects_sequence
      order by p.environment_id, p.id
      for update of p
    ),
    transfer as materialized (
      select c.n, t.id
      from asked c
      join pay.transfers t
        on t.environment_id = c.environment_id
        and t.id = c.expects_id
        and t.sequence = c.expects_sequence
      order by t.environment_id, t.id
      for update of t
    )
    select c.n from asked c
    except
    select min(x.n) from (select * from payment union all select * from transfer) x group by x.id
  loop
    p_found[v_n].outcome := 'stale';
  end loop;
  return p_found;
end
$function$;
alter function pay.lock_subjects(json,pay.admission[]) owner to pay_owner;

-- function pay.lock_suspects(jsonb,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.lock_suspects(p_ahead jsonb, p_at timestamp with time zone, OUT environments text[], OUT ids text[])
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  with recursive suspected as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.next_attempt_at is not null and d.lost_claims > 0 order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from suspected s
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.next_attempt_at is not null and d.lost_claims > 0 and d.endpoint_id > s.endpoint_id
      order by d.endpoint_id limit 1
    ) n
  )
  select
    array_agg(l.environment_id order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
      l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence),
    array_agg(l.id order by coalesce((p_ahead ->> e.account)::float8, 0), e.account,
      l.lost_claims, l.next_attempt_at, l.subject_id, l.sequence)
  into environments, ids
  from suspected s
  join pay.environments e on e.id = s.environment_id
  cross join lateral (
    select d.environment_id, d.id, d.subject_id, d.sequence, d.lost_claims, d.next_attempt_at
    from pay.webhook_deliveries d
    where d.endpoint_id = s.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims > 0
      and (d.leased_until is null or d.leased_until <= p_at)
    order by d.lost_claims, d.next_attempt_at, d.subject_id, d.sequence
    limit 2
    for update skip locked
  ) l;
end
$function$;
alter function pay.lock_suspects(jsonb,timestamp with time zone) owner to pay_owner;
comment on function pay.lock_suspects(jsonb,timestamp with time zone) is 'Internal.';

-- function pay.max_live_keys()
CREATE OR REPLACE FUNCTION pay.max_live_keys()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select 100 $function$;
alter function pay.max_live_keys() owner to pay_owner;

-- function pay.max_live_secrets()
CREATE OR REPLACE FUNCTION pay.max_live_secrets()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select 5 $function$;
alter function pay.max_live_secrets() owner to pay_owner;

-- function pay.max_windows_ahead()
CREATE OR REPLACE FUNCTION pay.max_windows_ahead()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select 150 $function$;
alter function pay.max_windows_ahead() owner to pay_owner;

-- function pay.move_environment(text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.move_environment(p_old text, p_new text, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_environment pay.environments;
begin
  perform set_config('pay.environment_ids', array[p_old, p_new]::text, true);
  update pay.environments e set retired_at = p_at where e.id = p_old
  returning * into v_environment;
  insert into pay.environments (id, public_id, account, livemode, name)
  values (p_new, v_environment.public_id, v_environment.account, false, v_environment.name);
  update pay.api_keys t set environment_id = p_new where t.environment_id = p_old;
  update pay.api_key_secrets t set environment_id = p_new where t.environment_id = p_old;
  update pay.rate_counters t set environment_id = p_new where t.environment_id = p_old;
  update pay.webhook_endpoints t set environment_id = p_new where t.environment_id = p_old;
  delete from pay.webhook_deliveries d using pay.webhook_endpoints t
  where t.environment_id = p_new and d.endpoint_id = t.id
    and d.environment_id = p_old and d.status = 'pending';
end
$function$;
alter function pay.move_environment(text,text,timestamp with time zone) owner to pay_owner;

-- function pay.note_findings()
CREATE OR REPLACE FUNCTION pay.note_findings()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_oracle text;
  v_found bigint;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  for v_oracle in select o.oracle from pay.list_oracles() o order by 1 loop
    with found as materialized (select * from pay.find_breaches(v_oracle)),
    noted as (
      insert into pay.oracle_findings (environment_id, oracle, subject_id, detail)
      select f.environment_id, v_oracle, f.subject_id, min(f.detail) from found f
      group by f.environment_id, f.subject_id
      on conflict on constraint oracle_findings_pkey do nothing
    )
    select count(*) into v_found from found;
    v_total := v_total + v_found;
    if v_found > 0 then
      raise warning '% findings of pay.%', v_found, v_oracle
        using hint = 'select * from pay.check_books()';
    end if;
  end loop;
  insert into pay.settings (name, value)
  values ('books_checked_at', extract(epoch from now())::text)
  on conflict on constraint settings_pkey do update set value = excluded.value;
  return v_total;
end
$function$;
alter function pay.note_findings() owner to pay_owner;
grant execute on function pay.note_findings() to pay_operator;

-- function pay.note_use(bytea[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.note_use(p_hashes bytea[], p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  update pay.api_key_secrets s
  set last_used_at = p_at
  from (
    select o.hash from pay.api_key_secrets o
    where o.hash = any (p_hashes)
      and (o.last_used_at is null or o.last_used_at < p_at - interval '1 hour')
    for update skip locked
  ) idle
  where s.hash = idle.hash;
end
$function$;
alter function pay.note_use(bytea[],timestamp with time zone) owner to pay_owner;

-- function pay.note_wake(bigint)
CREATE OR REPLACE FUNCTION pay.note_wake(p_request_id bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  delete from pay.relay_wakes w where w.woken_at < now() - interval '1 hour';
  insert into pay.relay_wakes (request_id) values (p_request_id::text)
  on conflict on constraint relay_wakes_pkey do update set woken_at = excluded.woken_at;
end
$function$;
alter function pay.note_wake(bigint) owner to pay_owner;
grant execute on function pay.note_wake(bigint) to pay_operator;

-- function pay.page_bytes()
CREATE OR REPLACE FUNCTION pay.page_bytes()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select 262144 $function$;
alter function pay.page_bytes() owner to pay_owner;

-- function pay.page_rows()
CREATE OR REPLACE FUNCTION pay.page_rows()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select 2000 $function$;
alter function pay.page_rows() owner to pay_owner;

-- function pay.patterns_of(text)
CREATE OR REPLACE FUNCTION pay.patterns_of(p_type text)
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select array[p_type, split_part(p_type, '.', 1) || '.*', '*'] $function$;
alter function pay.patterns_of(text) owner to pay_owner;

-- function pay.purge(timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge(p_at timestamp with time zone DEFAULT now(), p_batch integer DEFAULT 1000)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_at timestamptz := least(p_at, pay.server_time());
  v_cut timestamptz := v_at - interval '30 days';
  v_until timestamptz := clock_timestamp() + interval '2 seconds';
  v_environment record;
  v_kind record;
  v_rows bigint;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  -- Materialized, and below an array: a batch that is read again for each row has no limit. In order,
  -- or a limit makes reading the table look cheap while its statistics are old.
  with old as materialized (
    select o.environment_id, o.api_key_id, o.key
    from pay.idempotency_keys o
    where o.created_at <= v_at - pay.idempotency_retention()
    order by o.created_at
    limit p_batch for update skip locked
  )
  delete from pay.idempotency_keys t using old
  where t.environment_id = old.environment_id and t.api_key_id = old.api_key_id and t.key = old.key;
  get diagnostics v_total = row_count;

  for v_environment in
    select e.id, e.livemode from pay.environments e where e.retired_at is null order by random()
  loop
    exit when clock_timestamp() > v_until;
    v_total := v_total + pay.purge_keys(v_environment.id, v_at, p_batch);
    for v_kind in
      select * from (values
        ('webhook_deliveries', 'whd_', true, 'for update skip locked'),
        ('events', 'evt_', true, 'for update skip locked'),
        -- Not locked: a lock would need a policy that lets someone update, and nobody may.
        ('ledger_entries', 'le_', false, ''),
        ('ledger_transactions', 'txn_', false, ''),
        ('transfers', 'tr_', false, 'for update skip locked'),
        ('refunds', 're_', false, 'for update skip locked'),
        ('payments', 'pay_', false, 'for update skip locked')
      ) as k (table_name, prefix, of_live_too, lock)
      where k.of_live_too or not v_environment.livemode
    loop
      -- The primary key is in the order of time: the oldest rows are found without a search.
      execute format(
        'delete from pay.%1$I t
         where t.environment_id = $1 and t.id = any (array(
           select o.id from pay.%1$I o
           where o.environment_id = $1 and o.id < $2
           order by o.id limit $3 %2$s
         ))',
        v_kind.table_name, v_kind.lock
      ) using v_environment.id, pay.id_floor(v_kind.prefix, v_cut), p_batch;
      get diagnostics v_rows = row_count;
      v_total := v_total + v_rows;
    end loop;
  end loop;
  perform pay.roll_up_balances();
  v_rows := 0;
  for v_environment in
    select e.id from pay.environments e where e.retired_at is not null order by e.retired_at limit 50
  loop
    v_rows := v_rows + pay.purge_retired(v_environment.id, p_batch);
    exit when v_rows >= p_batch;
  end loop;
  return v_total + v_rows;
end
$function$;
alter function pay.purge(timestamp with time zone,integer) owner to pay_owner;
grant execute on function pay.purge(timestamp with time zone,integer) to pay_api;
grant execute on function pay.purge(timestamp with time zone,integer) to pay_operator;

-- function pay.purge_keys(text,timestamp with time zone,integer)
CREATE OR REPLACE FUNCTION pay.purge_keys(p_environment_id text, p_at timestamp with time zone, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_at timestamptz := least(p_at, pay.server_time());
  v_rows bigint;
  v_total bigint;
begin
  v_total := pay.drop_ended_secrets(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and exists (
      select from pay.api_key_secrets s
      where s.api_key_id = k.id and s.expires_at <= v_at and exists (
        select from pay.api_key_secrets newer
        where newer.api_key_id = k.id and (newer.created_at, newer.hash) > (s.created_at, s.hash)
      )
    )
    limit p_batch for update skip locked
  ), v_at);

  v_total := v_total + pay.delete_keys(array(
    select k.id from pay.api_keys k
    where k.environment_id = p_environment_id and not k.livemode
      and least(k.revoked_at, k.expires_at) <= v_at - interval '30 days'
    limit p_batch for update skip locked
  ));

  update pay.webhook_endpoints t
  set secrets = (
    select json_agg(s.source order by s.n)
    from json_array_elements(t.secrets) with ordinality as s (source, n)
    where s.source ->> 'expires_at' is null or (s.source ->> 'expires_at')::timestamptz > v_at
  )
  where t.id in (
    select o.id from pay.webhook_endpoints o
    where o.environment_id = p_environment_id and exists (
      select from json_array_elements(o.secrets) as s (source)
      where (s.source ->> 'expires_at')::timestamptz <= v_at
    )
    for update skip locked
  ) and t.environment_id = p_environment_id;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;

  delete from pay.rate_counters c
  where c.ctid = any (array(
    select o.ctid from pay.rate_counters o
    where o.environment_id = p_environment_id
      and o.window_number < floor(extract(epoch from v_at) / 2) - 1800
    limit p_batch for update skip locked
  ));
  get diagnostics v_rows = row_count;
  return v_total + v_rows;
end
$function$;
alter function pay.purge_keys(text,timestamp with time zone,integer) owner to pay_owner;

-- function pay.purge_retired(text,integer)
CREATE OR REPLACE FUNCTION pay.purge_retired(p_environment_id text, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
declare
  v_table text;
  v_rows bigint;
  v_is_empty boolean := true;
  v_total bigint := 0;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('totals ' || p_environment_id, 0)) then
    return 0;
  end if;
  foreach v_table in array array[
    'webhook_deliveries', 'events', 'ledger_entries', 'ledger_transactions', 'ledger_deltas',
    'ledger_totals', 'transfers', 'refunds', 'payments', 'idempotency_keys', 'rate_counters'
  ] loop
    -- By its place, which needs no search. A row that moves meanwhile goes with another batch.
    execute format(
      'delete from pay.%1$I t
       where t.ctid = any (array(
         select o.ctid from pay.%1$I o where o.environment_id = $1 limit $2
       ))',
      v_table
    ) using p_environment_id, p_batch;
    get diagnostics v_rows = row_count;
    v_total := v_total + v_rows;
    v_is_empty := v_is_empty and v_rows < p_batch;
  end loop;
  if v_is_empty then
    perform set_config('pay.environment_ids', array[p_environment_id]::text, true);
    delete from pay.environments e where e.id = p_environment_id;
    v_total := v_total + 1;
  end if;
  return v_total;
end
$function$;
alter function pay.purge_retired(text,integer) owner to pay_owner;

-- function pay.put_off_deliveries(text[],text[],timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.put_off_deliveries(p_environments text[], p_ids text[], p_at timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
AS $function$
begin
  with
  left_over as materialized (
    select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.next_attempt_at
    from unnest(p_environments, p_ids) as c (environment_id, id)
    join pay.webhook_deliveries d on d.environment_id = c.environment_id and d.id = c.id
    where d.leased_until is null or d.leased_until <= p_at
  ),
  judged as materialized (
    select l.*, t.status = 'enabled' as enabled, blocker.id as blocker_id,
      blocker.next_attempt_at as blocked_until, blocker.leased_until as blocker_leased_until,
      l.sequence - blocker.sequence as distance
    from left_over l
    left join pay.webhook_endpoints t
      on t.environment_id = l.environment_id and t.id = l.endpoint_id
    left join lateral (
      select d.id, d.sequence, d.next_attempt_at, d.leased_until
      from pay.webhook_deliveries d
      where d.status = 'pending'
        and d.environment_id is not distinct from l.environment_id
        and d.endpoint_id = l.endpoint_id
        and d.subject_id = l.subject_id
        and d.sequence < l.sequence
      order by d.sequence
      limit 1
    ) blocker on true
  ),
  called_off as (
    update pay.webhook_deliveries d
    set status = 'cancelled', next_attempt_at = null, leased_until = null
    from judged j
    where j.enabled is not true and d.environment_id = j.environment_id and d.id = j.id
  )
  update pay.webhook_deliveries d
  set next_attempt_at = case
      -- The one before will release it. Thousands must not be checked every 5 seconds.
      when j.blocker_leased_until > p_at and j.distance > 100 then p_at + interval '1 minute'
      when j.blocker_leased_until > p_at then p_at + interval '5 seconds'
      else greatest(j.blocked_until, p_at + interval '1 second')
    end
  from judged j
  where j.enabled and j.blocker_id is not null
    and (
      -- Somebody has it, this turn or another.
      (j.environment_id, j.blocker_id) not in (select o.environment_id, o.id from left_over o)
      -- Or it is due later: each time this one would be looked at in its place.
      or j.blocked_until > j.next_attempt_at
    )
    and d.environment_id = j.environment_id and d.id = j.id;
end
$function$;
alter function pay.put_off_deliveries(text[],text[],timestamp with time zone) owner to pay_owner;

-- function pay.read_cron()
CREATE OR REPLACE FUNCTION pay.read_cron()
 RETURNS TABLE(last_relay_wake_at timestamp with time zone, last_retention_at timestamp with time zone, failed_cron_runs bigint)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if to_regclass('cron.job_run_details') is null then
    return query select null::timestamptz, null::timestamptz, null::bigint;
    return;
  end if;
  -- The newest runs, by their primary key: some 80 minutes of our jobs.
  return query execute '
    select max(r.start_time) filter (where j.jobname = ''pay-relay''),
      max(r.start_time) filter (where j.jobname = ''pay-retention''),
      count(*) filter (where r.status = ''failed'')
    from (select * from cron.job_run_details order by runid desc limit 1000) r
    join cron.job j on j.jobid = r.jobid and j.jobname like ''pay-%''';
exception when insufficient_privilege then
  return query select null::timestamptz, null::timestamptz, null::bigint;
end
$function$;
alter function pay.read_cron() owner to pay_owner;
grant execute on function pay.read_cron() to pay_operator;

-- function pay.read_health()
CREATE OR REPLACE FUNCTION pay.read_health()
 RETURNS TABLE(due_deliveries bigint, oldest_due_seconds double precision, pending_deliveries bigint, failed_deliveries_last_hour bigint, failing_endpoints bigint, unbalanced_transactions_last_hour bigint, unbalanced_totals bigint, oracle_findings bigint, books_checked_at timestamp with time zone, unrolled_ledger_transactions bigint, is_retention_behind boolean, test_keys bigint, live_keys bigint, is_relay_configured boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_most constant integer := 100000;
  v_hour_ago constant timestamptz := now() - interval '1 hour';
begin
  perform set_config('pay.worker', 'on', true);
  return query select
    (
      select count(*) from (
        select from pay.webhook_deliveries d
        where d.status = 'pending' and d.next_attempt_at <= now()
          and (d.leased_until is null or d.leased_until <= now())
        limit v_most
      ) due
    ),
    (
      select coalesce(extract(epoch from now() - min(o.since)), 0)::double precision
      from pay.webhook_endpoints t
      cross join lateral (
        (
          select d.next_attempt_at as since from pay.webhook_deliveries d
          where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.lost_claims = 0
            and (d.leased_until is null or d.leased_until <= now())
          order by d.next_attempt_at limit 1
        )
        union all
        select d.next_attempt_at from pay.webhook_deliveries d
        where d.endpoint_id = t.id and d.next_attempt_at <= now() and d.lost_claims > 0
          and (d.leased_until is null or d.leased_until <= now())
      ) o
    ),
    (
      select count(*) from (
        select from pay.webhook_deliveries d where d.status = 'pending' limit v_most
      ) pending
    ),
    (
      select count(*) from pay.environments e
      join pay.webhook_deliveries d on d.environment_id = e.id
        and d.id >= pay.id_floor('whd_', v_hour_ago)
      where d.status = 'failed' and e.retired_at is null
    ),
    (
      select count(*) from pay.webhook_endpoints t
      where t.status = 'enabled' and t.failing_since is not null
    ),
    (
      select count(*) from (
        select from pay.environments e
        join pay.ledger_transactions x on x.environment_id = e.id
          and x.id >= pay.id_floor('txn_', v_hour_ago)
        left join pay.ledger_entries l on l.environment_id = x.environment_id
          and l.subject_id = x.subject_id and l.transaction_id = x.id
        where e.retired_at is null
        group by e.id, x.id
        having sum(case l.direction when 'debit' then l.amount_minor else -l.amount_minor end)
          is distinct from 0
      ) unbalanced
    ),
    (
      select count(*) from (
        select from pay.ledger_totals t group by t.environment_id, t.currency
        having sum(t.debits_minor) <> sum(t.credits_minor)
      ) unbalanced
    ),
    (
      select case
        when exists (select from pay.settings s where s.name = 'books_checked_at') then count(*)
      end
      from (select from pay.oracle_findings limit v_most) findings
    ),
    (
      select to_timestamp(s.value::double precision) from pay.settings s
      where s.name = 'books_checked_at'
    ),
    (select count(*) from (select from pay.ledger_deltas limit v_most) deltas),
    exists (
      select from pay.environments e
      cross join lateral (
        select v.id from pay.events v where v.environment_id = e.id order by v.id limit 1
      ) oldest
      where oldest.id < pay.id_floor('evt_', now() - interval '31 days')
    ),
    (select count(*) from pay.api_keys k where not k.livemode and k.revoked_at is null),
    (select count(*) from pay.api_keys k where k.livemode and k.revoked_at is null),
    (select count(*) = 2 from pay.settings s where s.name in ('relay_url', 'relay_token'));
end
$function$;
alter function pay.read_health() owner to pay_owner;
grant execute on function pay.read_health() to pay_operator;

-- function pay.read_resource(text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.read_resource(p_environment_id text, p_kind text, p_id text, p_at timestamp with time zone, OUT body text, OUT detail text)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  case p_kind
    when 'refunds' then
      select t.body into body from pay.refunds t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'transfers' then
      select t.body into body from pay.transfers t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'api_keys' then
      select pay.api_key_body(t, p_at) into body from pay.api_keys t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'events' then
      select t.body into body from pay.events t
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_endpoints' then
      select t.body, json_build_object('revision', t.revision, 'secrets', t.secrets,
        'public_id', e.public_id, 'account', e.account)
      into body, detail
      from pay.webhook_endpoints t
      join pay.environments e on e.id = t.environment_id
      where t.environment_id = p_environment_id and t.id = p_id;
    when 'webhook_deliveries' then
      select pay.webhook_delivery_body(t) into body from pay.webhook_deliveries t
      where t.environment_id = p_environment_id and t.id = p_id;
  end case;
end
$function$;
alter function pay.read_resource(text,text,text,timestamp with time zone) owner to pay_owner;

-- function pay.read_wakes()
CREATE OR REPLACE FUNCTION pay.read_wakes()
 RETURNS TABLE(last_relay_status integer, failed_relay_wakes_last_hour bigint)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if to_regclass('net._http_response') is null then
    return query select null::integer, null::bigint;
    return;
  end if;
  return query execute '
    with wake as materialized (
      select w.woken_at, r.id is not null as is_answered, r.status_code
      from pay.recent_wakes() w
      left join net._http_response r on r.id = w.request_id
        and r.created between w.woken_at and w.woken_at + interval ''5 minutes''
        and r.created >= now() - interval ''1 hour''
    )
    select
      (select k.status_code from wake k where k.is_answered order by k.woken_at desc limit 1),
      (
        select count(*) from wake k
        where case
          when k.is_answered then coalesce(k.status_code, 0) not between 200 and 299
          else k.woken_at between now() - interval ''10 minutes'' and now() - interval ''1 minute''
        end
      )';
exception when insufficient_privilege then
  return query select null::integer, null::bigint;
end
$function$;
alter function pay.read_wakes() owner to pay_owner;
grant execute on function pay.read_wakes() to pay_operator;

-- function pay.recent_suffix()
CREATE OR REPLACE FUNCTION pay.recent_suffix()
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select pay.id_floor('', now() - interval '29 days') $function$;
alter function pay.recent_suffix() owner to pay_owner;

-- function pay.recent_wakes()
CREATE OR REPLACE FUNCTION pay.recent_wakes()
 RETURNS TABLE(request_id bigint, woken_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  return query
    select w.request_id::bigint, w.woken_at from pay.relay_wakes w
    where w.woken_at >= now() - interval '1 hour';
end
$function$;
alter function pay.recent_wakes() owner to pay_owner;
grant execute on function pay.recent_wakes() to pay_operator;

-- function pay.record_attempts(text,timestamp with time zone,interval)
CREATE OR REPLACE FUNCTION pay.record_attempts(p_results text, p_at timestamp with time zone, p_ahead interval)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare
  v_environments text[];
  v_ids text[];
  v_turned_environments text[];
  v_turned_ids text[];
  v_has_succeeded boolean[];
begin
  if p_results like '%"released"%' then
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count - 1, leased_until = null
    from json_to_recordset(p_results::json) as r (
      environment_id text, id text, attempt integer, outcome text
    )
    where r.outcome = 'released'
      and d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until is not null;
  end if;

  with
  result as materialized (
    select * from json_to_recordset(p_results::json) as r (
      environment_id text, id text, attempt integer, outcome text, next_attempt_at timestamptz,
      record text
    )
    where r.outcome <> 'released'
    order by r.environment_id, r.id
  ),
  recorded as (
    update pay.webhook_deliveries d
    set status = case
        when r.outcome = 'delivered' then 'delivered'
        when r.next_attempt_at is null then 'failed'
        else 'pending'
      end,
      next_attempt_at = r.next_attempt_at - p_ahead,
      leased_until = null,
      -- The process survived the attempt. A crashed delivery stays a suspect.
      lost_claims = case when d.lost_claims < 3 then 0 else d.lost_claims end,
      -- Limited, because a delivery can be redelivered any number of times and each record rewrites the
      -- text. 8 000 bytes are more than 50 attempts.
      attempts = case
        when d.attempts = '' then r.record
        when octet_length(d.attempts) < 8000 then d.attempts || ',' || r.record
        else pay.without_second_attempt(d.attempts) || ',' || r.record
      end
    from result r
    where d.environment_id = r.environment_id and d.id = r.id
      and d.attempt_count = r.attempt and d.leased_until is not null
    returning d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.status, r.outcome
  ),
  -- Those that waited for one that has ended for good.
  next as (
    select r.environment_id, n.id
    from recorded r
    cross join lateral (
      select w.id, w.leased_until
      from pay.webhook_deliveries w
      where w.status = 'pending'
        and w.environment_id is not distinct from r.environment_id
        and w.endpoint_id = r.endpoint_id
        and w.subject_id = r.subject_id
        and w.sequence > r.sequence
      order by w.sequence
      limit 1
    ) n
    where r.status <> 'pending' and (n.leased_until is null or n.leased_until <= p_at)
  ),
  -- Endpoints that have begun or ceased to fail.
  turned as (
    select t.environment_id, t.id, e.any_delivered
    from (
      select r.environment_id, r.endpoint_id, bool_or(r.outcome = 'delivered') as any_delivered
      from recorded r group by r.environment_id, r.endpoint_id
    ) e
    join pay.webhook_endpoints t on t.environment_id = e.environment_id and t.id = e.endpoint_id
    where (t.failing_since is null) <> e.any_delivered
  )
  select n.environments, n.ids, u.environments, u.ids, u.has_succeeded
  into v_environments, v_ids, v_turned_environments, v_turned_ids, v_has_succeeded
  from (select array_agg(environment_id) as environments, array_agg(id) as ids from next) n
  cross join (
    select array_agg(environment_id) as environments, array_agg(id) as ids,
      array_agg(any_delivered) as has_succeeded
    from turned
  ) u;

  -- As old as they were, so that they come before what else was held back.
  if v_ids is not null then
    with waiting as materialized (
      select d.environment_id, d.id
      from unnest(v_environments, v_ids) as n (environment_id, id)
      join pay.webhook_deliveries d on d.environment_id = n.environment_id and d.id = n.id
      where d.status || '' = 'pending' and (d.leased_until is null or d.leased_until <= p_at)
      order by d.environment_id, d.id
      for update of d
    )
    update pay.webhook_deliveries d
    set next_attempt_at = least(d.created_at, p_at)
    from waiting w
    where d.environment_id = w.environment_id and d.id = w.id;
  end if;
  if v_turned_ids is not null then
    with turned as materialized (
      select t.environment_id, t.id, u.has_succeeded
      from unnest(v_turned_environments, v_turned_ids, v_has_succeeded)
        as u (environment_id, id, has_succeeded)
      join pay.webhook_endpoints t on t.environment_id = u.environment_id and t.id = u.id
      for update of t skip locked
    )
    update pay.webhook_endpoints t
    set failing_since = case when not u.has_succeeded then p_at end
    from turned u
    where t.environment_id = u.environment_id and t.id = u.id
      and (t.failing_since is null) <> u.has_succeeded;
  end if;
end
$function$;
alter function pay.record_attempts(text,timestamp with time zone,interval) owner to pay_owner;

-- function pay.record_movements(json,integer[],text[])
CREATE OR REPLACE FUNCTION pay.record_movements(p_ledger json, p_changes integer[], p_environments text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  with
  movement as materialized (
    select l.*, w.environment_id
    from json_to_recordset(p_ledger) as l (
      n integer, id text, kind text, subject_id text, refund_id text, debit_id text,
      debit_account text, credit_id text, credit_account text, amount_minor bigint, currency text,
      created_at timestamptz
    )
    join unnest(p_changes, p_environments) as w (n, environment_id) on w.n = l.n
  ),
  ledger_transaction_made as (
    insert into pay.ledger_transactions (environment_id, id, kind, subject_id, refund_id, created_at)
    select environment_id, id, kind, subject_id, refund_id, created_at from movement
  ),
  ledger_delta_made as (
    insert into pay.ledger_deltas
      (environment_id, id, currency, debit_account, credit_account, amount_minor)
    select environment_id, id, currency, debit_account, credit_account, amount_minor from movement
  )
  insert into pay.ledger_entries
    (environment_id, id, transaction_id, subject_id, refund_id, account, direction, amount_minor,
      currency, created_at)
  select m.environment_id, side.id, m.id, m.subject_id, m.refund_id, side.account,
    side.direction, m.amount_minor, m.currency, m.created_at
  from movement m
  cross join lateral (
    values (m.debit_id, m.debit_account, 'debit'), (m.credit_id, m.credit_account, 'credit')
  ) as side (id, account, direction);
end
$function$;
alter function pay.record_movements(json,integer[],text[]) owner to pay_owner;

-- function pay.redeliver(text,text,text)
CREATE OR REPLACE FUNCTION pay.redeliver(p_request text, p_id text, p_refusal text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s'
AS $function$
declare
  v_access pay.admission := pay.claim_one(p_request, pay.admit_one(p_request));
  v_delivery pay.webhook_deliveries;
begin
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;
  select * into v_delivery from pay.webhook_deliveries d
  where d.environment_id = v_access.environment_id and d.id = p_id
  for update;
  if v_delivery.id is null then
    v_access.outcome := 'not_found';
    perform pay.release_key(p_request, v_access);
    return v_access;
  end if;
  if exists (
    select from pay.webhook_endpoints t
    where t.environment_id = v_access.environment_id and t.id = v_delivery.endpoint_id
      and t.status = 'enabled'
  ) then
    -- An attempt that is under way goes on; the delivery is then due again only if it fails.
    if v_delivery.leased_until is null or v_delivery.leased_until <= v_access.at then
      update pay.webhook_deliveries d
      set status = 'pending', next_attempt_at = least(v_access.at, pay.server_time())
      where d.environment_id = v_access.environment_id and d.id = p_id
      returning * into v_delivery;
    end if;
    v_access.outcome := 'committed';
    v_access.status := 200;
    v_access.body := pay.webhook_delivery_body(v_delivery);
  else
    v_access.outcome := 'off';
    v_access.status := 409;
    v_access.body := p_refusal;
  end if;
  perform pay.keep_answer(p_request, v_access);
  return v_access;
end
$function$;
alter function pay.redeliver(text,text,text) owner to pay_owner;
grant execute on function pay.redeliver(text,text,text) to pay_api;

-- function pay.relay_turn(text,text,integer,integer,integer,integer,text,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.relay_turn(p_results text, p_rooms text, p_limit integer, p_per_endpoint integer, p_per_environment integer, p_per_account integer, p_suspects_ahead text, p_at timestamp with time zone, p_leased_until timestamp with time zone)
 RETURNS TABLE(environment_id text, public_id text, account text, id text, endpoint_id text, event_id text, subject_id text, attempt integer, url text, secrets text, livemode boolean, failing_since timestamp with time zone, suspect boolean, crashed boolean, body text)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
#variable_conflict use_column
declare
  v_rooms_known jsonb := p_rooms::jsonb;
  -- How far the caller's clock is ahead; it is subtracted from the caller's times.
  v_ahead interval := greatest(p_at - pay.server_time(), '0');
  -- As many rows as one request makes due at a moment, but for the first.
  c_rest constant integer := 3;
  c_longest_look constant interval := '100 ms';
  v_endpoints text[];
  v_rooms integer[];
  v_shares integer[];
  v_reads integer[];
  -- A deleted or disabled endpoint with pending deliveries.
  v_off_environment text;
  v_off_endpoint text;
  v_due record;
  v_claimed integer;
begin
  perform set_config('pay.worker', 'on', true);
  -- By the server's time: other relays would find a lease of a slow clock expired.
  p_leased_until := pay.server_time() + (p_leased_until - p_at);
  p_at := p_at - v_ahead;

  if p_results <> '[]' then
    perform pay.record_attempts(p_results, p_at, v_ahead);
  end if;
  if p_limit <= 0 then
    return;
  end if;

  -- Endpoints with something pending, one index probe for each, and how much more each may have.
  with recursive waiting as (
    (select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
     where d.status = 'pending' order by d.endpoint_id limit 1)
    union all
    select n.environment_id, n.endpoint_id
    from waiting w
    cross join lateral (
      select d.environment_id, d.endpoint_id from pay.webhook_deliveries d
      where d.status = 'pending' and d.endpoint_id > w.endpoint_id
      order by d.endpoint_id limit 1
    ) n
  )
  select array_agg(w.endpoint_id) filter (where r.has_room),
    array_agg(r.room) filter (where r.has_room), array_agg(r.share) filter (where r.has_room),
    array_agg(r.room + r.rest) filter (where r.has_room),
    (array_agg(w.environment_id) filter (where not k.is_on))[1],
    (array_agg(w.endpoint_id) filter (where not k.is_on))[1]
  into v_endpoints, v_rooms, v_shares, v_reads, v_off_environment, v_off_endpoint
  from waiting w
  join pay.environments e on e.id = w.environment_id
  left join pay.webhook_endpoints t on t.environment_id = w.environment_id and t.id = w.endpoint_id
  cross join lateral (
    select (v_rooms_known -> 'endpoints' ->> w.endpoint_id)::integer as left_of_endpoint,
      least(
        coalesce((v_rooms_known -> 'environments' ->> e.public_id)::integer, p_per_environment),
        coalesce((v_rooms_known -> 'accounts' ->> e.account)::integer, p_per_account)
      ) as left_of_tenant,
      t.failing_since is not null as is_failing,
      t.status is not distinct from 'enabled' as is_on
  ) k
  cross join lateral (
    select
      -- A quick one, that may have more, is no more in need than others.
      case when k.left_of_endpoint is null then p_per_endpoint
        else least(k.left_of_endpoint, p_per_endpoint - 1)
      end as share,
      b.room,
      k.is_on and b.room > 0 as has_room,
      -- At one that is failing most of what is claimed is given back.
      case when k.is_failing then 0 else c_rest end as rest
    from (
      select least(coalesce(k.left_of_endpoint, p_per_endpoint), k.left_of_tenant, p_limit,
        case when k.is_failing then 2 end) as room
    ) b
  ) r;

  if v_off_endpoint is not null then
    -- Fewer if results wait for this turn.
    perform pay.call_off_deliveries(v_off_environment, v_off_endpoint,
      case when p_results = '[]' then 2000 else 250 end);
  end if;

  -- If all due deliveries wait for earlier ones, look at those behind them, for as long as others can
  -- wait for this turn. Postponed deliveries stay postponed, and the next turn continues.
  loop
  select array_agg(c.environment_id) as environments, array_agg(c.id) as ids,
    array_agg(c.endpoint_id) as endpoints, array_agg(c.subject_id) as subjects,
    array_agg(c.sequence) as sequences, array_agg(c.event_id) as events,
    array_agg(c.place - c.share) as ranks, array_agg(c.is_lost) as lost,
    bool_or(c.is_lost) as any_lost
  into v_due
  from (
    select l.*, o.room, o.share,
      rank() over (partition by l.endpoint_id order by l.next_attempt_at, l.subject_id) as place
    from unnest(v_endpoints, v_rooms, v_shares, v_reads) as o (endpoint_id, room, share, reads)
    cross join lateral (
      select d.environment_id, d.id, d.endpoint_id, d.subject_id, d.sequence, d.event_id,
        d.next_attempt_at, d.leased_until is not null as is_lost
      from pay.webhook_deliveries d
      where d.endpoint_id = o.endpoint_id and d.next_attempt_at <= p_at and d.lost_claims = 0
        and (d.leased_until is null or d.leased_until <= p_at)
      order by d.next_attempt_at, d.subject_id, d.sequence
      limit o.reads
      for update skip locked
    ) l
  ) c
  where c.place <= c.room;
  exit when v_due.ids is null;

  -- Their relay has died: they become suspects, which the scan above does not read.
  if v_due.any_lost then
    update pay.webhook_deliveries d
    set lost_claims = 1, leased_until = null
    from unnest(v_due.environments, v_due.ids, v_due.lost) as c (environment_id, id, is_lost)
    where c.is_lost and d.environment_id = c.environment_id and d.id = c.id;
  end if;

  -- A new statement and so a new snapshot: whoever records what a locked row waits for has either
  -- committed, and is seen, or will let the row go once we have.
  return query
  with
  candidate as materialized (
    select * from unnest(v_due.environments, v_due.ids, v_due.endpoints, v_due.subjects,
      v_due.sequences, v_due.events, v_due.ranks, v_due.lost) as c (environment_id, id, endpoint_id,
      subject_id, sequence, event_id, rank_of_endpoint, is_lost)
    where not c.is_lost
  ),
  -- No environment and no account exceeds its limit, whatever its endpoints do.
  shared as (
    select c.*, t.url, t.secrets, t.failing_since, e.livemode, e.public_id, e.account,
      rank() over (partition by e.public_id order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((v_rooms_known -> 'environments' ->> e.public_id)::integer, p_per_environment)
      and rank() over (partition by e.account order by c.rank_of_endpoint, c.endpoint_id)
        <= coalesce((v_rooms_known -> 'accounts' ->> e.account)::integer, p_per_account) as has_place
    from candidate c
    join pay.webhook_endpoints t
      on t.environment_id = c.environment_id and t.id = c.endpoint_id and t.status = 'enabled'
    join pay.environments e on e.id = c.environment_id
  ),
  taken as materialized (
    select * from shared s
    where s.has_place
    order by s.rank_of_endpoint, s.endpoint_id
    fetch first (p_limit) rows with ties
  ),
  counted as (
    select k.*, count(*) over (
        partition by k.endpoint_id, k.subject_id order by k.sequence
        range between unbounded preceding and 1 preceding
      ) as taken_before
    from taken k
  ),
  judged as materialized (
    select k.*,
      -- All that is earlier is taken as well.
      k.sequence is null or (k.taken_before < 100 and earlier.known = k.taken_before) as is_next,
      min(k.rank_of_endpoint) over (partition by k.endpoint_id, k.subject_id) as rank_of_chain
    from counted k
    cross join lateral (
      select count(*) as known from (
        select from pay.webhook_deliveries d
        where d.status = 'pending'
          and d.environment_id is not distinct from k.environment_id
          and d.endpoint_id = k.endpoint_id
          and d.subject_id = k.subject_id
          and d.sequence < k.sequence
        -- One more than those that are taken is enough.
        limit least(k.taken_before, 99) + 1
      ) l
    ) earlier
  ),
  claimed as (
    update pay.webhook_deliveries d
    set attempt_count = d.attempt_count + 1, leased_until = p_leased_until
    from judged j
    where j.is_next and d.environment_id = j.environment_id and d.id = j.id
    returning j.*, d.attempt_count
  )
  select c.environment_id, c.public_id, c.account, c.id, c.endpoint_id, c.event_id, c.subject_id,
    c.attempt_count, c.url, c.secrets::text, c.livemode,
    -- In the caller's time, because the caller computes how long the endpoint has been failing.
    c.failing_since + v_ahead, false, false, v.body
  from claimed c
  join pay.events v on v.environment_id = c.environment_id and v.id = c.event_id
  order by c.rank_of_chain, c.endpoint_id, c.subject_id, c.sequence;
  get diagnostics v_claimed = row_count;
  if v_claimed < cardinality(v_due.ids) then
    perform pay.put_off_deliveries(v_due.environments, v_due.ids, p_at);
  end if;
  exit when v_claimed > 0 or clock_timestamp() > statement_timestamp() + c_longest_look;
  end loop;

  -- Checked first, because there is usually none and the function costs a third of an empty turn.
  if p_suspects_ahead is not null and exists (
    select from pay.webhook_deliveries d
    where d.next_attempt_at is not null and d.lost_claims > 0
  ) then
    return query select * from pay.claim_suspect(
      p_suspects_ahead::jsonb, p_at, p_leased_until, v_ahead);
  end if;
end
$function$;
alter function pay.relay_turn(text,text,integer,integer,integer,integer,text,timestamp with time zone,timestamp with time zone) owner to pay_owner;
grant execute on function pay.relay_turn(text,text,integer,integer,integer,integer,text,timestamp with time zone,timestamp with time zone) to pay_api;

-- function pay.release_key(text,pay.admission)
CREATE OR REPLACE FUNCTION pay.release_key(p_request text, p_access pay.admission)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_request json := p_request::json -> 0;
begin
  delete from pay.idempotency_keys k
  where k.environment_id = p_access.environment_id and k.api_key_id = p_access.api_key_id
    and k.key = v_request ->> 'idempotency_key' and k.request_id = v_request ->> 'request_id';
end
$function$;
alter function pay.release_key(text,pay.admission) owner to pay_owner;

-- function pay.requests_used(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.requests_used(p_environment_id text, p_at timestamp with time zone)
 RETURNS TABLE(api_key_id text, used numeric)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_seconds numeric := extract(epoch from p_at) / 2;
  v_window bigint := floor(v_seconds);
begin
  return query
    select c.api_key_id,
      sum(case when c.window_number >= v_window then c.current_count else 0 end)
      + (1 - (v_seconds - v_window))
        * sum(case when c.window_number >= v_window then c.previous_count else c.current_count end)
    from pay.rate_counters c
    where c.environment_id = p_environment_id
      and c.window_number between v_window - 1 and v_window + pay.max_windows_ahead()
    group by c.api_key_id;
end
$function$;
alter function pay.requests_used(text,timestamp with time zone) owner to pay_owner;

-- function pay.reset_sandbox(text,text)
CREATE OR REPLACE FUNCTION pay.reset_sandbox(p_request text, p_environment_id text)
 RETURNS pay.admission
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET lock_timeout TO '3s'
AS $function$
declare
  v_request json := p_request::json -> 0;
  v_old text;
  v_access pay.admission;
begin
  -- Without a lock, so that a caller who may not reset waits for nobody and holds up nobody. A replay is
  -- never refused, so a caller at its limit waits if an answer of its key is stored.
  v_access := pay.admit_one(p_request, 'none');
  if v_access.outcome = 'ok' or (v_access.outcome = 'rate_limited' and exists (
    select from pay.idempotency_keys k
    where k.environment_id = v_access.environment_id and k.api_key_id = v_access.api_key_id
      and k.key = v_request ->> 'idempotency_key'
  )) then
    v_access := pay.admit_one(p_request, 'alone');
  else
    -- Without a lock a key that another reset is moving can look like one that lacks the scope.
    v_access := pay.admit_one(p_request, 'shared');
    if v_access.outcome = 'ok' then
      v_access.outcome := 'resetting';
    end if;
  end if;
  v_old := v_access.environment_id;
  if v_access.outcome = 'ok' and exists (
    select from pay.environments e where e.id = v_old and e.livemode
  ) then
    v_access.outcome := 'live';
  end if;
  v_access := pay.claim_one(p_request, v_access);
  if v_access.outcome <> 'ok' then
    return v_access;
  end if;

  perform from pay.webhook_endpoints t where t.environment_id = v_old order by t.id for update;
  v_access.outcome := 'committed';
  v_access.body := pay.sandbox_reset_body(v_old, v_request ->> 'idempotency_key' is not null);
  -- After the count, which takes time: a turn of the relay may wait for these rows.
  perform from pay.webhook_deliveries d
  join pay.webhook_endpoints t on t.environment_id = v_old and t.id = d.endpoint_id
  where d.environment_id = v_old and d.status = 'pending'
  order by d.id for update of d;
  perform pay.keep_answer(p_request, v_access);
  perform pay.move_environment(v_old, p_environment_id, v_access.at);
  update pay.idempotency_keys k set environment_id = p_environment_id
  where k.environment_id = v_old and k.api_key_id = v_access.api_key_id
    and k.key = v_request ->> 'idempotency_key';
  return v_access;
end
$function$;
alter function pay.reset_sandbox(text,text) owner to pay_owner;
grant execute on function pay.reset_sandbox(text,text) to pay_api;

-- function pay.revoke_api_key(text)
CREATE OR REPLACE FUNCTION pay.revoke_api_key(p_id text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform set_config('pay.worker', 'on', true);
  perform from pay.api_keys k where k.id = p_id and k.revoked_at is null for update;
  if not found then
    return false;
  end if;
  perform pay.end_api_key(p_id, now());
  return true;
end
$function$;
alter function pay.revoke_api_key(text) owner to pay_owner;
grant execute on function pay.revoke_api_key(text) to pay_operator;

-- function pay.roll_up_balances(integer)
CREATE OR REPLACE FUNCTION pay.roll_up_balances(p_batch integer DEFAULT 10000)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_environment_id text;
  v_total bigint := 0;
begin
  perform set_config('pay.worker', 'on', true);
  -- One index probe for each environment that has deltas.
  loop
    select min(d.environment_id) into v_environment_id from pay.ledger_deltas d
    where d.environment_id > coalesce(v_environment_id, '');
    exit when v_environment_id is null;
    v_total := v_total + pay.roll_up_deltas(v_environment_id, p_batch);
  end loop;
  return v_total;
end
$function$;
alter function pay.roll_up_balances(integer) owner to pay_owner;
grant execute on function pay.roll_up_balances(integer) to pay_api;
grant execute on function pay.roll_up_balances(integer) to pay_operator;

-- function pay.roll_up_deltas(text,integer)
CREATE OR REPLACE FUNCTION pay.roll_up_deltas(p_environment_id text, p_batch integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_rows bigint;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('totals ' || p_environment_id, 0)) then
    return 0;
  end if;
  with taken as materialized (
    delete from pay.ledger_deltas d
    using (
      select o.id from pay.ledger_deltas o
      where o.environment_id = p_environment_id
      order by o.id limit p_batch for update skip locked
    ) old
    where d.environment_id = p_environment_id and d.id = old.id
    returning d.currency, d.debit_account, d.credit_account, d.amount_minor
  ),
  added as (
    insert into pay.ledger_totals as t
      (environment_id, currency, account, debits_minor, credits_minor)
    select p_environment_id, s.currency, s.account, sum(s.debits_minor), sum(s.credits_minor)
    from (
      select currency, debit_account as account, amount_minor as debits_minor, 0 as credits_minor from taken
      union all
      select currency, credit_account, 0, amount_minor from taken
    ) s
    group by s.currency, s.account
    order by s.currency, s.account
    on conflict on constraint ledger_totals_pkey do update
    set debits_minor = t.debits_minor + excluded.debits_minor,
      credits_minor = t.credits_minor + excluded.credits_minor
  )
  select count(*) into v_rows from taken;
  return v_rows;
end
$function$;
alter function pay.roll_up_deltas(text,integer) owner to pay_owner;

-- function pay.roll_up_if_many(text)
CREATE OR REPLACE FUNCTION pay.roll_up_if_many(p_environment_id text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if (
    select count(*) from (
      select from pay.ledger_deltas d where d.environment_id = p_environment_id limit 5000
    ) few
  ) = 5000 then
    perform pay.roll_up_deltas(p_environment_id, 100000);
  end if;
end
$function$;
alter function pay.roll_up_if_many(text) owner to pay_owner;

-- function pay.rotate_api_key(text,text,text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.rotate_api_key(p_id text, p_secret_hash text, p_prefix text, p_last_four text, p_older_expire_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_key pay.api_keys;
begin
  perform set_config('pay.worker', 'on', true);
  select * into v_key from pay.api_keys k where k.id = p_id and k.revoked_at is null for update;
  if v_key.id is null then
    return false;
  end if;
  if v_key.expires_at <= now() then
    if not pay.take_key_place(v_key.environment_id, now()) then
      raise exception 'the environment of % has % live keys already', p_id, pay.max_live_keys()
        using errcode = 'program_limit_exceeded';
    end if;
    update pay.api_keys k set expires_at = null where k.id = p_id;
  end if;
  perform pay.add_api_key_secret(
    p_id, now(), p_secret_hash, p_prefix, p_last_four, p_older_expire_at);
  return true;
end
$function$;
alter function pay.rotate_api_key(text,text,text,text,timestamp with time zone) owner to pay_owner;
grant execute on function pay.rotate_api_key(text,text,text,text,timestamp with time zone) to pay_operator;

-- function pay.sandbox_reset_body(text,boolean)
CREATE OR REPLACE FUNCTION pay.sandbox_reset_body(p_environment_id text, p_has_claim boolean)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET max_parallel_workers_per_gather TO '0'
AS $function$
declare
  v_table text;
  v_began timestamptz;
  v_rest interval := '0';
  v_rests_left interval := '750 ms';
  v_count bigint;
  v_counts text[];
begin
  foreach v_table in array array['payments', 'refunds', 'transfers', 'ledger_entries', 'events',
    'webhook_deliveries', 'idempotency_keys']
  loop
    if v_rest > '5 ms' and clock_timestamp() < statement_timestamp() + interval '2 s' then
      perform pg_sleep_for(v_rest);
      v_rests_left := v_rests_left - v_rest;
    end if;
    v_began := clock_timestamp();
    execute format('select count(*) from pay.%I t where t.environment_id = $1', v_table)
    into v_count using p_environment_id;
    if v_table = 'idempotency_keys' and p_has_claim then
      v_count := v_count - 1;
    end if;
    v_counts := v_counts || format('"%s":%s', v_table, v_count);
    v_rest := least(clock_timestamp() - v_began, v_rests_left);
  end loop;
  return '{"object":"sandbox_reset","deleted":{' || array_to_string(v_counts, ',') || '}}';
end
$function$;
alter function pay.sandbox_reset_body(text,boolean) owner to pay_owner;

-- function pay.server_time()
CREATE OR REPLACE FUNCTION pay.server_time()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select now() $function$;
alter function pay.server_time() owner to pay_owner;
comment on function pay.server_time() is 'Internal.';

-- function pay.slot_character(smallint)
CREATE OR REPLACE FUNCTION pay.slot_character(p_slot smallint)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select substr('0123456789abcdef', p_slot + 1, 1) $function$;
alter function pay.slot_character(smallint) owner to pay_owner;

-- function pay.take_key_place(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.take_key_place(p_environment_id text, p_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform pg_advisory_xact_lock(hashtextextended('keys ' || p_environment_id, 0));
  if (
    select count(*) from pay.api_keys k
    where k.environment_id = p_environment_id and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > p_at)
  ) >= pay.max_live_keys() then
    return false;
  end if;
  -- Skips rows that a rotation has locked, because the rotation may wait for this lock.
  perform pay.delete_keys(array(
    select k.id from pay.api_keys k
    where k.id in (
      select o.id from pay.api_keys o
      where o.environment_id = p_environment_id and not o.livemode
        and least(o.revoked_at, o.expires_at) <= least(p_at, pay.server_time())
      order by least(o.revoked_at, o.expires_at) desc, o.id desc
      offset 1000
    )
    for update skip locked
  ));
  return true;
end
$function$;
alter function pay.take_key_place(text,timestamp with time zone) owner to pay_owner;

-- function pay.wake_relay()
CREATE OR REPLACE FUNCTION pay.wake_relay()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_relay record;
  v_request_id bigint;
begin
  for v_relay in select * from pay.due_relay() loop
    -- Dynamic, so that this function can be made where pg_net is not.
    execute 'select net.http_post(url := $1, body := $2, params := $3, headers := $4, timeout_milliseconds := $5)'
    into v_request_id
    using
      v_relay.url,
      '{}'::jsonb,
      '{}'::jsonb,
      jsonb_build_object(
        'Content-Type', 'application/json',
        'Authorization', 'Bearer ' || v_relay.token
      ),
      2000;
    perform pay.note_wake(v_request_id);
  end loop;
end
$function$;
alter function pay.wake_relay() owner to pay_owner;
grant execute on function pay.wake_relay() to pay_operator;

-- function pay.webhook_delivery_body(pay.webhook_deliveries)
CREATE OR REPLACE FUNCTION pay.webhook_delivery_body(d pay.webhook_deliveries)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select row_to_json(t)::text from (
    select
      d.id,
      'webhook_delivery' as object,
      d.event_id,
      d.event_type,
      d.endpoint_id,
      case when d.subject_id like 'pay\_%' then d.subject_id end as payment_id,
      d.status,
      ('[' || d.attempts || ']')::json as attempts,
      pay.wire_time(d.next_attempt_at) as next_attempt_at,
      pay.wire_time(d.created_at) as created_at
  ) t
$function$;
alter function pay.webhook_delivery_body(pay.webhook_deliveries) owner to pay_owner;

-- function pay.wire_time(timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.wire_time(p_at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$ select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $function$;
alter function pay.wire_time(timestamp with time zone) owner to pay_owner;

-- function pay.without_second_attempt(text)
CREATE OR REPLACE FUNCTION pay.without_second_attempt(p_attempts text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select split_part(p_attempts, '},{', 1) || '},{' || substr(a.others, strpos(a.others, '},{') + 3)
  from (select substr(p_attempts, strpos(p_attempts, '},{') + 3) as others) a
$function$;
alter function pay.without_second_attempt(text) owner to pay_owner;

-- function pay.write_events(json,integer[],text[])
CREATE OR REPLACE FUNCTION pay.write_events(p_events json, p_won integer[], p_environments text[])
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_now timestamptz := pay.server_time();
  v_deliveries bigint;
begin
  with
  event as materialized (
    select w.environment_id, e.*
    from json_to_recordset(p_events) as e (
      n integer, id text, type text, subject_id text, sequence integer, created_at timestamptz,
      delivery_id text, body text
    )
    join unnest(p_won, p_environments) as w (n, environment_id) on w.n = e.n
  ),
  event_made as (
    insert into pay.events (environment_id, id, type, subject_id, sequence, created_at, body)
    select environment_id, id, type, subject_id, sequence, created_at, body from event
  ),
  delivery_made as (
    insert into pay.webhook_deliveries
      (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
        next_attempt_at, created_at)
    select e.environment_id, e.delivery_id || pay.slot_character(t.slot), e.id, e.type, t.id,
      e.subject_id, e.sequence, 'pending', least(e.created_at, v_now), e.created_at
    from event e
    join pay.webhook_endpoints t
      on t.environment_id = e.environment_id
      and t.status = 'enabled'
      and t.events && pay.patterns_of(e.type)
    returning 1
  )
  select count(*) into v_deliveries from delivery_made;
  return v_deliveries;
end
$function$;
alter function pay.write_events(json,integer[],text[]) owner to pay_owner;

-- function pay.write_key_change(pay.api_keys,pay.api_keys,text,timestamp with time zone,json,timestamp with time zone)
CREATE OR REPLACE FUNCTION pay.write_key_change(p_caller pay.api_keys, p_key pay.api_keys, p_action text, p_at timestamp with time zone, p_secret json, p_older_expire_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if p_action = 'create' then
    insert into pay.api_keys
      (id, environment_id, livemode, name, scopes, created_at, expires_at)
    values
      (p_key.id, p_caller.environment_id, p_caller.livemode, p_key.name, p_key.scopes, p_at,
        least(p_key.expires_at, p_caller.expires_at));
  end if;
  if p_action = 'revoke' then
    perform pay.end_api_key(p_key.id, p_at);
  else
    perform pay.add_api_key_secret(
      p_key.id, p_at, p_secret ->> 'hash', p_secret ->> 'prefix', p_secret ->> 'last_four',
      coalesce(p_older_expire_at, p_at));
  end if;
  return (
    select pay.api_key_body(k, p_at) from pay.api_keys k
    where k.environment_id = p_caller.environment_id and k.id = p_key.id
  );
end
$function$;
alter function pay.write_key_change(pay.api_keys,pay.api_keys,text,timestamp with time zone,json,timestamp with time zone) owner to pay_owner;

-- function pay.write_payments(json,integer[],text[],integer[])
CREATE OR REPLACE FUNCTION pay.write_payments(p_payments json, p_won integer[], p_environments text[], p_moved integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into pay.payments
    (environment_id, id, status, amount_minor, amount_refunded, currency, method_kind, reference,
      sequence, created_at, updated_at, body)
  select w.environment_id, p.id, p.status, p.amount_minor, p.amount_refunded, p.currency,
    p.method_kind, p.reference, p.sequence, p.created_at, p.updated_at, p.body
  from json_to_recordset(p_payments) as p (
    n integer, id text, status text, amount_minor bigint, amount_refunded bigint, currency text,
    method_kind text, reference text, sequence integer, created_at timestamptz,
    updated_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
  where p.n <> all (p_moved);
  if p_moved <> '{}' then
    update pay.payments t
    set status = p.status, amount_refunded = p.amount_refunded, sequence = p.sequence,
      updated_at = p.updated_at, body = p.body
    from json_to_recordset(p_payments) as p (
      n integer, id text, status text, amount_refunded bigint, sequence integer,
      updated_at timestamptz, body text
    )
    join unnest(p_won, p_environments) as w (n, environment_id) on w.n = p.n
    where p.n = any (p_moved) and t.environment_id = w.environment_id and t.id = p.id;
  end if;
end
$function$;
alter function pay.write_payments(json,integer[],text[],integer[]) owner to pay_owner;

-- function pay.write_refunds(json,integer[],text[])
CREATE OR REPLACE FUNCTION pay.write_refunds(p_refunds json, p_won integer[], p_environments text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into pay.refunds (environment_id, id, payment_id, amount_minor, currency, created_at, body)
  select w.environment_id, r.id, r.payment_id, r.amount_minor, r.currency, r.created_at, r.body
  from json_to_recordset(p_refunds) as r (
    n integer, id text, payment_id text, amount_minor bigint, currency text,
    created_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n;
end
$function$;
alter function pay.write_refunds(json,integer[],text[]) owner to pay_owner;

-- function pay.write_transfers(json,integer[],text[],integer[])
CREATE OR REPLACE FUNCTION pay.write_transfers(p_transfers json, p_won integer[], p_environments text[], p_moved integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  insert into pay.transfers
    (environment_id, id, status, amount_minor, currency, sequence, created_at, updated_at, body)
  select w.environment_id, r.id, r.status, r.amount_minor, r.currency, r.sequence, r.created_at,
    r.updated_at, r.body
  from json_to_recordset(p_transfers) as r (
    n integer, id text, status text, amount_minor bigint, currency text, sequence integer,
    created_at timestamptz, updated_at timestamptz, body text
  )
  join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
  where r.n <> all (p_moved);
  if p_moved <> '{}' then
    update pay.transfers t
    set status = r.status, sequence = r.sequence, updated_at = r.updated_at, body = r.body
    from json_to_recordset(p_transfers) as r (
      n integer, id text, status text, sequence integer, updated_at timestamptz, body text
    )
    join unnest(p_won, p_environments) as w (n, environment_id) on w.n = r.n
    where r.n = any (p_moved) and t.environment_id = w.environment_id and t.id = r.id;
  end if;
end
$function$;
alter function pay.write_transfers(json,integer[],text[],integer[]) owner to pay_owner;

-- function pay.write_webhook_endpoint(text,text,text,pay.webhook_endpoints)
CREATE OR REPLACE FUNCTION pay.write_webhook_endpoint(p_environment_id text, p_id text, p_status_before text, p_endpoint pay.webhook_endpoints)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  v_is_deleted boolean := p_endpoint.id is null;
begin
  if p_status_before = 'disabled' and p_endpoint.status = 'enabled'
    and pay.call_off_deliveries(p_environment_id, p_id, pay.called_off_at_once())
  then
    return 'calling_off';
  end if;
  if v_is_deleted then
    delete from pay.webhook_endpoints t where t.environment_id = p_environment_id and t.id = p_id;
  elsif p_status_before is null then
    if not pay.insert_webhook_endpoint(p_endpoint) then
      return 'full';
    end if;
  else
    update pay.webhook_endpoints t
    set url = p_endpoint.url, events = p_endpoint.events, status = p_endpoint.status,
      secrets = p_endpoint.secrets, revision = p_endpoint.revision, body = p_endpoint.body,
      failing_since = case
        when p_endpoint.status = t.status and p_endpoint.url = t.url then t.failing_since
      end
    where t.environment_id = p_environment_id and t.id = p_id;
  end if;
  if v_is_deleted or p_endpoint.status = 'disabled' then
    perform pay.call_off_deliveries(p_environment_id, p_id, pay.called_off_at_once());
  end if;
  return 'committed';
end
$function$;
alter function pay.write_webhook_endpoint(text,text,text,pay.webhook_endpoints) owner to pay_owner;
