-- Purpose: the merchant's own bank accounts: the files of their banks and the entries in them, the
-- bank details of payers and payees, and the orders that were exported to a bank.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.bank_files (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  sha256 text collate "C" not null,
  name text not null,
  result jsonb,
  imported_at timestamptz not null,
  constraint bank_files_pkey primary key (environment_id, account_id, sha256),
  constraint bank_files_sha256_form check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint bank_files_name_length check (length(name) between 1 and 255)
);
comment on table pay.bank_files is 'A file of a bank that was imported. Its content is not stored.';
comment on column pay.bank_files.environment_id is 'The environment of the account.';
comment on column pay.bank_files.account_id is 'The account whose entries it has.';
comment on column pay.bank_files.sha256 is 'The hash of its bytes in hex: a file is imported once.';
comment on column pay.bank_files.name is 'Its name, for people.';
comment on column pay.bank_files.result is 'What the import counted; null only within its transaction.';
comment on column pay.bank_files.imported_at is 'Time of the import.';

create table pay.bank_entries (
  environment_id text collate "C" not null,
  account_id text collate "C" not null,
  id text collate "C" not null,
  sha256 text collate "C" not null,
  details_sha256 text collate "C",
  statement_sha256 text collate "C",
  same_as text collate "C",
  held_events jsonb,
  batch_id text collate "C",
  batch_minor bigint,
  booked_on date not null,
  stated_on date,
  amount_minor bigint not null,
  currency text collate "C" not null,
  seen_in smallint not null,
  constraint bank_entries_pkey primary key (environment_id, account_id, id),
  -- Without ":", which ends the entry in the reference of a provider event.
  constraint bank_entries_id_form check (id ~ '^[^:]{1,80}$'),
  constraint bank_entries_batch_has_sum check ((batch_id is null) = (batch_minor is null)),
  constraint bank_entries_same_has_events check ((same_as is null) = (held_events is null)),
  constraint bank_entries_seen_in_range check (seen_in between 0 and 3)
);
comment on table pay.bank_entries is 'An entry that a bank has booked. camt.052, 053 and 054 have the same one.';
comment on column pay.bank_entries.environment_id is 'The environment of the account.';
comment on column pay.bank_entries.account_id is 'The account.';
comment on column pay.bank_entries.id is 'A hash of its content, with a number if entries have the same one. Its provider events are id:1, id:2 and so on, and id:0 for its total. id:0.1, id:0.2 and so on are the orders that the total is made of.';
comment on column pay.bank_entries.sha256 is 'The file that had it first, or that has told it from the entry that it was taken for.';
comment on column pay.bank_entries.details_sha256 is 'The file that had its details first; null: it is booked by its total, and a file can bring them.';
comment on column pay.bank_entries.statement_sha256 is 'The camt.053 that has confirmed it; null: none has.';
comment on column pay.bank_entries.same_as is 'The entry that it is, under another identity: that one is booked and this one is not. Null: it is booked itself.';
comment on column pay.bank_entries.held_events is 'Its events, which are stored if a file tells that it is another entry after all.';
comment on column pay.bank_entries.batch_id is 'The id of our batch or file of which it is the total, as the bank repeats it; null: it is none.';
comment on column pay.bank_entries.batch_minor is 'Its amount in minor units without the charge of the bank: what the orders come to.';
comment on column pay.bank_entries.booked_on is 'The day on which the bank booked it.';
comment on column pay.bank_entries.stated_on is 'The day that a camt.053 has, if it is another one.';
comment on column pay.bank_entries.amount_minor is 'The change of the balance in minor units: negative if money left.';
comment on column pay.bank_entries.currency is 'ISO 4217 code.';
comment on column pay.bank_entries.seen_in is 'The kinds of interim files that have it under this identity: 1 is camt.052, 2 is camt.054, 3 is both, 0 is none.';

create index bank_entries_booked on pay.bank_entries (account_id, booked_on, amount_minor);
comment on index pay.bank_entries_booked is 'pay.end_bank_file: the entries of a day. pay_internal.pair_bank_entries: those of an amount.';

create index bank_entries_file on pay.bank_entries (sha256, account_id);
comment on index pay.bank_entries_file is 'pay.end_bank_file, pay.bank_file_state: the entries of a file.';

create index bank_entries_details on pay.bank_entries (details_sha256, account_id)
  where details_sha256 <> sha256;
comment on index pay.bank_entries_details is 'pay.bank_file_state: the entries whose details came later, in this file.';

create index bank_entries_unconfirmed on pay.bank_entries (account_id, booked_on)
  where statement_sha256 is null and same_as is null;
comment on index pay.bank_entries_unconfirmed is 'pay_internal.unconfirmed_bank_entries: the entries that no camt.053 has.';

create index bank_entries_same on pay.bank_entries (account_id, same_as)
  where same_as is not null;
comment on index pay.bank_entries_same is 'pay_internal.confirm_bank_entries, note_interim_file, pair_bank_entries: the other identities of an entry.';

create index bank_entries_batch on pay.bank_entries (batch_id, account_id)
  where batch_id is not null;
comment on index pay.bank_entries_batch is 'pay_internal.split_batch_totals: the totals of a batch.';

create table pay.bank_details (
  environment_id text collate "C" not null,
  owner_id text collate "C" not null,
  key_id text collate "C",
  sealed text collate "C",
  lacks text,
  created_at timestamptz not null,
  constraint bank_details_pkey primary key (environment_id, owner_id),
  constraint bank_details_sealed_length check (length(sealed) <= 4000),
  constraint bank_details_sealed_has_key check ((key_id is null) = (sealed is null))
);
comment on table pay.bank_details is 'The whole bank details of a payer or payee, sealed by the service (pay.read_sealed_texts).';
comment on column pay.bank_details.environment_id is 'The environment of the owner.';
comment on column pay.bank_details.owner_id is 'The payment, refund, transfer or instrument that needs them, or the account, a slash and the reference of a provider event: the text about an entry.';
comment on column pay.bank_details.key_id is 'The key with which they are sealed. The database never gets it.';
comment on column pay.bank_details.sealed is 'AES-256-GCM, in base64; null: they were deleted, and no file of the bank brings them back.';
comment on column pay.bank_details.lacks is 'The member without which no payout to them can be written, such as address; null: none.';
comment on column pay.bank_details.created_at is 'Time of the request, of the import, or of a deletion before them.';

create index bank_details_sealed on pay.bank_details (environment_id, owner_id)
  where sealed is not null;
comment on index pay.bank_details_sealed is 'pay.list_sealed_texts, pay_internal.purge_bank_details: the texts that are left.';

create table pay.bank_exports (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  account_id text collate "C" not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  sha256 text collate "C" not null,
  payments integer not null,
  sum_minor bigint not null,
  currency text collate "C" not null,
  is_opt_out boolean not null,
  key_id text collate "C",
  sealed text,
  created_at timestamptz not null,
  written_at timestamptz,
  constraint bank_exports_pkey primary key (environment_id, id),
  constraint bank_exports_sealed_has_key check ((key_id is null) = (sealed is null)),
  constraint bank_exports_sha256_form check (sha256 ~ '^[0-9a-f]{64}$'),
  constraint bank_exports_sums_positive check (payments > 0 and sum_minor > 0)
);
comment on table pay.bank_exports is 'A file of orders for a bank. It is made once, and each export gives the same bytes until they are deleted.';
comment on column pay.bank_exports.environment_id is 'The environment of the account.';
comment on column pay.bank_exports.id is 'The id (bf_…), from which the ids of the message and its batches are made.';
comment on column pay.bank_exports.account_id is 'The account that pays or collects.';
comment on column pay.bank_exports.kind is 'The kind of its orders, such as sepa_transfers.';
comment on column pay.bank_exports.name is 'Its name.';
comment on column pay.bank_exports.sha256 is 'The hash of its bytes in hex.';
comment on column pay.bank_exports.payments is 'The number of its orders.';
comment on column pay.bank_exports.sum_minor is 'Their sum in minor units.';
comment on column pay.bank_exports.currency is 'ISO 4217 code.';
comment on column pay.bank_exports.is_opt_out is 'Whether the bank shall not verify its payees.';
comment on column pay.bank_exports.key_id is 'The key with which its bytes are sealed.';
comment on column pay.bank_exports.sealed is 'Its bytes, sealed: they have bank details. Null: they were deleted.';
comment on column pay.bank_exports.created_at is 'Time of the first export.';
comment on column pay.bank_exports.written_at is 'Time at which the operator got it first; null: never.';

create index bank_exports_account on pay.bank_exports (account_id, id);
comment on index pay.bank_exports_account is 'pay.list_bank_exports: the files of an account.';
create unique index bank_exports_name on pay.bank_exports (environment_id, account_id, name)
  where sealed is not null;
comment on index pay.bank_exports_name is 'pay.store_bank_exports: a recall is stored once. pay.list_bank_exports: a file by its name.';
create index bank_exports_sealed on pay.bank_exports (environment_id, id) where sealed is not null;
comment on index pay.bank_exports_sealed is 'pay.list_sealed_texts, pay_internal.purge_bank_details: the files that are left.';

create table pay.bank_orders (
  environment_id text collate "C" not null,
  owner_id text collate "C" not null,
  account_id text collate "C" not null,
  operation_id text collate "C" not null,
  state text collate "C" not null,
  export_id text collate "C",
  batch_id text collate "C",
  uetr text collate "C",
  payee_check text collate "C",
  approved_at timestamptz,
  changed_at timestamptz not null,
  constraint bank_orders_pkey primary key (environment_id, owner_id),
  constraint bank_orders_state_known check (
    state in ('waiting', 'exported', 'withdrawn', 'rejected')
  ),
  constraint bank_orders_exported_has_file check (
    (state = 'exported') = (export_id is not null) and (export_id is null) = (batch_id is null)
  ),
  constraint bank_orders_uetr_form check (
    uetr ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'
  ),
  constraint bank_orders_payee_check_form check (payee_check ~ '^[A-Z]{4}$'),
  constraint bank_orders_approved_has_check check (approved_at is null or payee_check is not null)
);
comment on table pay.bank_orders is 'An order to a bank: a collection, refund or transfer. It is in one file at most.';
comment on column pay.bank_orders.environment_id is 'The environment of the order.';
comment on column pay.bank_orders.owner_id is 'The payment, refund or transfer.';
comment on column pay.bank_orders.account_id is 'The account at the bank.';
comment on column pay.bank_orders.operation_id is 'Its operation.';
comment on column pay.bank_orders.state is 'waiting for its export, exported, or before that withdrawn by the merchant or rejected by the operator.';
comment on column pay.bank_orders.export_id is 'The file; null: it is in none.';
comment on column pay.bank_orders.batch_id is 'The batch in the file, as the bank knows it.';
comment on column pay.bank_orders.uetr is 'The unique end-to-end transaction reference of a payout by SWIFT: the banks on its way keep it. Null: it went by SEPA, or is not exported.';
comment on column pay.bank_orders.payee_check is 'The bank''s last code of the verification of payee; null: none.';
comment on column pay.bank_orders.approved_at is 'Time at which the operator approved it in spite of this code; null: nobody has.';
comment on column pay.bank_orders.changed_at is 'Time of the last change.';

create index bank_orders_batch on pay.bank_orders (batch_id, account_id) where batch_id is not null;
comment on index pay.bank_orders_batch is 'pay.find_bank_orders: the orders of a batch.';
create index bank_orders_export on pay.bank_orders (export_id) where export_id is not null;
comment on index pay.bank_orders_export is 'pay.find_bank_orders: the orders of a file.';
create index bank_orders_uetr on pay.bank_orders (uetr, account_id) where uetr is not null;
comment on index pay.bank_orders_uetr is 'pay.find_bank_orders: the payout with a UETR.';

create index bank_orders_waiting on pay.bank_orders (account_id, owner_id) where state = 'waiting';
comment on index pay.bank_orders_waiting is 'pay.bank_orders_to_export: the orders to export.';

do $$ begin execute pg_catalog.format('set role %I',
  pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
