-- Purpose: disputes, the objects behind payments that were charged back.
--
-- A payment that is charged back has disputes that are open or lost, and its amount_disputed is their
-- sum. Chargebacks of release 1.0.0 have none. They belong to sandboxes, because that release took no
-- live money, and retention deletes them after 30 days.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.disputes (
  environment_id text collate "C" not null,
  id text collate "C" not null,
  payment_id text collate "C" not null,
  status text collate "C" not null,
  amount_minor bigint not null,
  currency text collate "C" not null,
  provider_reference text collate "C",
  created_at timestamptz not null,
  body text not null,
  constraint disputes_pkey primary key (environment_id, id),
  constraint disputes_status_known check (
    status in ('needs_response', 'under_review', 'won', 'lost')
  ),
  constraint disputes_amount_minor_positive check (amount_minor > 0)
);
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

create unique index disputes_current on pay.disputes (environment_id, payment_id)
  where status <> 'won' and provider_reference is null;
comment on index pay.disputes_current is
  'pay.read_resource: the dispute of a sandbox payment that is open or lost. Unique: the simulated provider opens one at a time.';

create index disputes_payment on pay.disputes (payment_id, environment_id, id);
comment on index pay.disputes_payment is
  'pay.list_column: lists with payment_id=; pay.dispute_body: the dispute of a fact.';

create index disputes_status on pay.disputes (status, environment_id, id);
comment on index pay.disputes_status is 'pay.list_column: lists with status=.';

alter table pay.provider_calls
  drop constraint provider_calls_op_known,
  add constraint provider_calls_op_known check (
    op in ('authorize', 'capture', 'cancel', 'refund', 'transfer', 'expire', 'abandon',
      'dispute_evidence', 'dispute_accept', 'dispute_expire')
  );

-- The policy is that of the other tables of tenants (20261120000950_policies.sql).
do $policies$
declare
  v_is_opened constant text := $sql$= any (
    (select nullif(current_setting('pay.environment_ids', true), '')::text[])::text[])$sql$;
  v_is_worker constant text := $sql$(select current_setting('pay.worker', true)) = 'on'$sql$;
begin
  alter table pay.disputes enable row level security;
  alter table pay.disputes force row level security;
  execute format(
    'create policy disputes_of_environment on pay.disputes to pay_owner
     using (environment_id %s or %s)',
    v_is_opened, v_is_worker
  );
end
$policies$;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
