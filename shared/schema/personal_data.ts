/**
 * The members of the person and the instrument of a payment, by what becomes of them. A new member
 * that is in no list is a type error, and a member of a stored method can only be in the last one:
 * an erasure changes no method (`supabase/schemas/erasure.sql`).
 */

import type { CreatePaymentBody } from "./payment_body.ts";
import type { MethodMember, PaymentMethod } from "./payment.ts";

/** No response has them, and neither the log nor the transcript of a sandbox. */
export const SECRET_MEMBERS = [
  ...["number", "cvc", "iban"] as const,
  ...["holder_name", "line1", "line2", "city", "postal_code"] as const,
] as const;
/** Of `customer` and `payer`. Every text has them until an erasure makes them null. */
type Person = "email" | "name";
/** They stay after an erasure, because they are masked, public or of the merchant. */
type Kept =
  | ("id" | "sequence" | "signed_at" | "due_on" | "type" | "tx_hash")
  | ("brand" | "last4" | "exp_month" | "exp_year" | "token")
  | ("bic" | "country" | "address" | "network" | "asset");

/** The names of the values in an object and in the objects that it contains. */
type Leaf<Part> = Part extends object
  ? { [Name in keyof Part & string]-?: LeafOf<Name, NonNullable<Part[Name]>> }[keyof Part & string]
  : never;
type LeafOf<Name, Value> = Value extends object ? Leaf<Value> : Name;

type Sent = Pick<CreatePaymentBody, "customer" | "payer" | keyof CreatePaymentBody & MethodMember>;
null! as Leaf<Sent> satisfies typeof SECRET_MEMBERS[number] | Person | Kept;
null! as Leaf<PaymentMethod> satisfies Kept;
