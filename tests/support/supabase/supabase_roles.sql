-- Purpose: the roles, schemas and grants of a Supabase server that can affect this project. Source:
-- supabase/postgres, migrations/db (init-scripts and 10000000000000_demote-postgres). The superuser
-- supabase_admin runs this file in the database postgres. The caller sets the passwords.

create role postgres login nosuperuser createdb createrole replication bypassrls;
create role anon nologin noinherit;
create role authenticated nologin noinherit;
create role service_role nologin noinherit bypassrls;
create role authenticator login noinherit;
grant anon, authenticated, service_role to authenticator;
create role dashboard_user nologin createdb createrole replication;

alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';
alter role authenticator set statement_timeout = '8s';
alter role authenticator set lock_timeout = '8s';
alter role postgres set search_path = "$user", public, extensions;

grant all on database postgres to postgres, dashboard_user;

create schema extensions;
create extension pgcrypto with schema extensions;
create extension "uuid-ossp" with schema extensions;
grant all on schema extensions to postgres, dashboard_user;
grant usage on schema extensions to anon, authenticated, service_role;

create schema auth;
create schema storage;
grant usage on schema auth, storage to anon, authenticated, service_role, postgres;
-- The id of the signed-in user, from the token that the Data API passes on.
create function auth.uid() returns uuid language sql stable as $$
  select (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid
$$;

-- Supabase grants its API roles all rights on the tables and functions that supabase_admin or
-- postgres creates in the schema public.
grant all on schema public to postgres;
grant usage on schema public to anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema public
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role supabase_admin in schema public
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on tables to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on functions to postgres, anon, authenticated, service_role;
alter default privileges for role postgres in schema public
  grant all on sequences to postgres, anon, authenticated, service_role;

do $$
begin
  if pg_catalog.current_setting('server_version_num')::integer >= 160000 then
    grant anon, authenticated, service_role to postgres with admin option;
  end if;
end
$$;
