/**
 * The challenge of 3-D Secure in a sandbox, as the payer's page gets it. The routes of the page are
 * not part of the API, so the OpenAPI document does not have them.
 */

import type { Payment, ShownCard } from "./payment.ts";

/** The response to `GET` and `POST /challenges/{token}`. */
export interface Challenge extends
  Pick<
    Payment,
    "status" | "amount_minor" | "currency" | "reference" | "return_url"
  > {
  object: "challenge";
  payment_id: string;
  /** The name that payers see of the account. */
  merchant: string;
  card: Pick<ShownCard, "brand" | "last4"> | null;
}
