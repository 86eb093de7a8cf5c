-- Written by "deno task generate" from shared/core/errors.ts: do not edit.
-- Purpose: the errors that can be stored as the response to a request.

-- The codes of the catalogue below 500, each with its type and HTTP status.
create or replace function pay_internal.error_catalogue()
returns table (code text, type text, status integer)
language sql immutable parallel safe rows 21 as $$
  values
    ('invalid_parameter', 'invalid_request', 400),
    ('invalid_json', 'invalid_request', 400),
    ('unauthorized', 'authentication', 401),
    ('payment_declined', 'payment', 402),
    ('insufficient_funds', 'payment', 402),
    ('aml_blocked', 'payment', 402),
    ('authentication_failed', 'payment', 402),
    ('authentication_required', 'payment', 402),
    ('provider_refused', 'payment', 402),
    ('balance_insufficient', 'payment', 402),
    ('test_key_required', 'permission', 403),
    ('permission_denied', 'permission', 403),
    ('origin_not_allowed', 'permission', 403),
    ('not_found', 'invalid_request', 404),
    ('method_not_allowed', 'invalid_request', 405),
    ('idempotency_conflict', 'idempotency', 409),
    ('idempotency_in_progress', 'idempotency', 409),
    ('invalid_state', 'invalid_request', 409),
    ('payload_too_large', 'invalid_request', 413),
    ('unsupported_media_type', 'invalid_request', 415),
    ('rate_limited', 'rate_limit', 429)
$$;
