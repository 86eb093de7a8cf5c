-- Purpose: the books check themselves. Each view pay.oracle_* lists what breaks one promise
-- (docs/reliability.md) and is empty while it holds, at any moment and whatever goes on: a view is one
-- statement and so one snapshot.
--
-- Columns of each: environment_id, subject_id, detail.
-- Retention takes rows kind by kind, so they look at what is younger than 29 of its 30 days; of a
-- live environment, whose money is never purged, at all of it. Events go there too: what is older is
-- judged by the events that are left. What no view can tell is in docs/reliability.md.
-- They read whole tables: for an hourly job or an operator, not for a request.

grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

create table pay.oracle_findings (
  environment_id text collate "C" not null,
  oracle text collate "C" not null,
  subject_id text collate "C" not null,
  detail text not null,
  found_at timestamptz not null default now(),
  constraint oracle_findings_pkey primary key (environment_id, oracle, subject_id)
);
comment on table pay.oracle_findings is 'Findings of the hourly check, until pay.forget_findings. Empty while every promise holds.';
comment on column pay.oracle_findings.environment_id is 'The environment of the subject.';
comment on column pay.oracle_findings.subject_id is 'The resource that the finding is about.';
comment on column pay.oracle_findings.detail is 'The finding in words.';
comment on column pay.oracle_findings.oracle is 'The view that found it.';
comment on column pay.oracle_findings.found_at is 'Time at which it was found first.';

alter table pay.oracle_findings enable row level security;
alter table pay.oracle_findings force row level security;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
