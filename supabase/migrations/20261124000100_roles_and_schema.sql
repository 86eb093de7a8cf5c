-- Purpose: the roles and the schemas of the payments service.
--
-- pay_owner    owns every table and function; cannot log in, cannot bypass row-level security.
-- pay_api      may execute the entry functions of the HTTP functions, and nothing else.
-- pay_operator may execute the operator's functions (environments, API keys), and nothing else.
-- pay_reader   owns the views of pay.expose, and may read nothing without them; cannot log in.
--
-- Migrations run as a role that need not be a superuser (on Supabase: postgres). Each one becomes
-- pay_owner for its own length: membership is granted at its top and taken back at its end, so
-- that between deployments the role of the functions cannot read a single table of ours.

do $$
declare
  v_role text;
begin
  foreach v_role in array array['pay_owner', 'pay_api', 'pay_operator', 'pay_reader'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
      execute pg_catalog.format('create role %I nologin', v_role);
    end if;
  end loop;
end
$$;

grant pay_api, pay_operator to current_user;
grant pay_owner to current_user;

create schema pay authorization pay_owner;
create schema pay_internal authorization pay_owner;

select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;

comment on schema pay is
  'Payments service: tables and their entry functions. Exposed by no API; callers hold EXECUTE only.';
comment on schema pay_internal is
  'Payments service: the steps of the entry functions. Only their owner may use it.';

grant usage on schema pay to pay_api, pay_operator;

-- Functions are created without the usual EXECUTE for everyone; each grant is by name.
alter default privileges for role pay_owner revoke execute on functions from public;

do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;
