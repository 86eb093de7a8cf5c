-- Purpose: the rules of rails by which database functions decide. "deno task generate" writes the
-- names from shared/domain/rails.ts, as it does for each list with a comment in it.

-- Whether a live payment needs the token of the provider.
create or replace function pay_internal.rail_needs_token(p_method_kind text)
returns boolean language sql immutable parallel safe
as $$ select p_method_kind in (/* rails with a token */ 'card') $$;

-- Whether payments are collected under mandates.
create or replace function pay_internal.rail_collects(p_method_kind text)
returns boolean language sql immutable parallel safe
as $$ select p_method_kind in (/* rails that collect */ 'sepa') $$;

-- Whether banks move the money, so a payment can have bank details.
create or replace function pay_internal.rail_is_by_bank(p_method_kind text)
returns boolean language sql immutable parallel safe
as $$ select p_method_kind in (/* rails of banks */ 'sepa', 'swift') $$;
