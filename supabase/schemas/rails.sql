-- Purpose: the rules of rails by which database functions decide. "deno task generate" writes the
-- names from shared/domain/rails.ts, as it does for each list with a comment in it. They are in
-- PL/pgSQL, because each statement that calls a function in SQL with settings of its own plans it
-- again: 50 us for each payment whose words are written.

-- Whether a live payment needs the token of the provider.
create or replace function pay_internal.rail_needs_token(p_method_kind text)
returns boolean language plpgsql immutable parallel safe
as $$ begin return p_method_kind in (/* rails with a token */ 'card'); end $$;

-- Whether payments are collected under mandates.
create or replace function pay_internal.rail_collects(p_method_kind text)
returns boolean language plpgsql immutable parallel safe
as $$ begin return p_method_kind in (/* rails that collect */ 'sepa'); end $$;

-- Whether banks move the money, so a payment can have bank details.
create or replace function pay_internal.rail_is_by_bank(p_method_kind text)
returns boolean language plpgsql immutable parallel safe
as $$ begin return p_method_kind in (/* rails of banks */ 'sepa', 'swift'); end $$;
