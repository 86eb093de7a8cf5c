/** Writes `supabase/schemas/error_catalogue.sql`: the catalogue of errors, for the invariants. */

import { ERROR_CATALOGUE } from "../../shared/core/errors.ts";

/** Returns the file. Responses of 500 and more are not stored, so their codes are not in it. */
export function renderErrorCatalogue(): string {
  const rows = Object.entries(ERROR_CATALOGUE)
    .filter(([, { status }]) => status < 500)
    .map(([code, { status, type }]) => `    ('${code}', '${type}', ${status})`);
  return `-- Written by "deno task generate" from shared/core/errors.ts: do not edit.
-- Purpose: the errors that can be stored as the response to a request.

-- The codes of the catalogue below 500, each with its type and HTTP status.
create or replace function pay_internal.error_catalogue()
returns table (code text, type text, status integer)
language sql immutable parallel safe rows ${rows.length} as $$
  values
${rows.join(",\n")}
$$;
`;
}
