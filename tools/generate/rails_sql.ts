/** Writes `supabase/schemas/rails.sql`: the rules of rails by which database functions decide. */

import { METHOD_KINDS } from "../../shared/core/vocabulary.ts";
import { type Rail, RAILS } from "../../shared/domain/rails.ts";

export function renderRailsSql(): string {
  return `-- Written by "deno task generate" from shared/domain/rails.ts: do not edit.
-- Purpose: the rules of rails by which database functions decide.
${
    predicate(
      "needs_token",
      "Whether a live payment needs the token of the provider.",
      (rail) => rail.needs_token,
    )
  }${
    predicate(
      "collects",
      "Whether payments are collected under mandates.",
      (rail) => rail.collects,
    )
  }${
    predicate(
      "is_by_bank",
      "Whether banks move the money, so a payment can have bank details.",
      (rail) => rail.bank !== null,
    )
  }`;
}

function predicate(name: string, comment: string, holds: (rail: Rail) => boolean): string {
  const kinds = METHOD_KINDS.filter((kind) => holds(RAILS[kind]));
  return `
-- ${comment}
create or replace function pay_internal.rail_${name}(p_method_kind text)
returns boolean language sql immutable parallel safe
as $$ select p_method_kind in (${kinds.map((kind) => `'${kind}'`).join(", ")}) $$;
`;
}
