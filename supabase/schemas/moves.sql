-- Purpose: an account that moves to another cell (docs/scaling.md). `deno task cells` writes
-- pay.environments.moving; the functions obey it:
--   draining  the dispatcher, the worker and retention begin nothing new
--   fenced    admission refuses requests too, which wait and then get 503. Results of what is under
--             way are still recorded
--   sealed    nothing changes any more: the rows are compared with those of the other cell
--   arriving  as sealed, for the rows that arrive in the other cell
-- Only "sealed" is in one cell and "arriving" in the other at the same time, so no account is open
-- in two cells.

-- Raises lock_not_available, which is a 503, if the environment is fenced, sealed or arriving: for
-- the functions that no request with an API key calls.
create or replace function pay_internal.refuse_moving(p_environment_id text)
returns void language plpgsql volatile as $$
begin
  if exists (
    select from pay.environments e where e.id = p_environment_id and e.moving <> 'draining'
  ) then
    raise exception 'the account is moving to another cell: try again in a minute'
      using errcode = 'lock_not_available';
  end if;
end $$;

-- The same for the environment of a provider account.
create or replace function pay_internal.refuse_moving_account(p_account_id text)
returns void language plpgsql volatile as $$
begin
  perform pay_internal.refuse_moving(a.environment_id)
  from pay.provider_accounts a where a.id = p_account_id;
end $$;
