/**
 * Writes `supabase/schemas/exposed_columns.sql`: the columns of the views of Supabase's users, from
 * the members of the responses.
 */

import * as z from "zod";
import { Dispute } from "../../shared/schema/dispute.ts";
import { Instrument } from "../../shared/schema/instrument.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { Transfer } from "../../shared/schema/transfer.ts";
import { CustomerId } from "../../shared/schema/values.ts";
import { wrapped } from "./wrapped.ts";

const LINE_WIDTH = 100;
const INDENT = "      ";

/** A view: the resource, its members that are columns of the table, and those of the merchant. */
const VIEWS: readonly [kind: string, resource: z.ZodObject, columns: string, own: string][] = [
  [
    "payments",
    Payment,
    "id status amount_minor currency amount_refunded amount_refunding amount_disputed method_kind " +
    "reference sequence created_at updated_at",
    "metadata",
  ],
  [
    "instruments",
    // A filter of the merchant's own queries.
    Instrument.extend({ customer_id: CustomerId.nullable() }),
    "id status customer_id method_kind usage is_kept payment_id ended_reason last_used_at sequence created_at " +
    "updated_at ended_at",
    "",
  ],
  ["refunds", Refund, "id payment_id amount_minor currency status created_at", "metadata"],
  ["disputes", Dispute, "id payment_id amount_minor currency status created_at", "evidence"],
  ["transfers", Transfer, "id status amount_minor currency sequence created_at updated_at", ""],
];

/** Members that are a column of another name. */
const ALIASES: Readonly<Record<string, string>> = { amount: "amount_minor" };

export function renderExposedColumns(): string {
  const cases = VIEWS.map(([kind, { shape }, columns, own]) => {
    const words = Object.entries(shape).map(([name, member]) => {
      if (columns.split(" ").includes(name)) return name;
      if (name in ALIASES) return `${name}=${ALIASES[name]}`;
      return `${name}:${own === name ? "own" : typeOf(member)}`;
    });
    // Joined as they are, the lines are one text.
    const parts = words.map((word, i) => i === 0 ? word : ` ${word}`);
    const lines = wrapped(parts, LINE_WIDTH - INDENT.length - "''".length, "");
    return `    when '${kind}' then\n${lines.map((line) => `${INDENT}'${line}'`).join("\n")}`;
  });
  return `-- Written by "deno task generate" from shared/schema/: do not edit.
-- Purpose: the columns of the views of Supabase's users (exposure.sql).

-- The columns of a view, in the order of the response. "a" is a column of the table, "a=b" the
-- column b, and "a:type" a member of the body. "a:own" is an object that only the merchant sees.
create or replace function pay_internal.exposed_columns(p_kind text)
returns text language sql immutable as $$
  select case p_kind
${cases.join("\n")}
  end
$$;
`;
}

function typeOf(member: z.core.$ZodType): string {
  if (member instanceof z.ZodNullable) return typeOf(member.unwrap());
  if (member instanceof z.ZodISODateTime) return "timestamptz";
  if (member instanceof z.ZodNumber) return "bigint";
  if (member instanceof z.ZodBoolean) return "boolean";
  if (member instanceof z.ZodString || member instanceof z.ZodStringFormat) return "text";
  return member instanceof z.ZodEnum || member instanceof z.ZodLiteral ? "text" : "jsonb";
}
