/** The operations of `api-v1-payments` that delete the bank details of payers and payees. */

import { type IdPrefix, isId } from "../core/ids.ts";
import { type Route, route, type RouteInput } from "./route.ts";

/** @param prefix of the ids of the resource; another kind of id is unknown */
const deletionOf = (prefix: IdPrefix) => ({
  response: "DeletedBankDetails",
  method: "DELETE",
  errors: ["invalid_state"],
  run({ deps, request: { access, idempotency }, id }: RouteInput<unknown, unknown>) {
    const body = JSON.stringify({ id, object: "bank_details", deleted: true });
    const known = isId(prefix, id) ? id : "";
    return deps.store.deleteBankDetails(access, idempotency, known, { status: 200, body });
  },
} as const);

export const BANK_DETAILS_ROUTES: readonly Route[] = [
  route({
    ...deletionOf("pay_"),
    id: "deletePaymentBankDetails",
    group: "Payments",
    summary: "Delete the bank details of a payment",
    description:
      "Deletes the IBANs, names and addresses that the service keeps for the payment and its " +
      "refunds. Country and last four characters stay. A later refund by bank must name its " +
      "`destination`. While the payment or a refund has no result it is 409.",
    paths: ["/v1/payments/:id/bank_details"],
    scope: "payments:write",
  }),
  route({
    ...deletionOf("tr_"),
    id: "deleteTransferBankDetails",
    group: "Transfers",
    summary: "Delete the bank details of a transfer",
    description:
      "Deletes the IBAN, name and address that the service keeps for the transfer. Country and " +
      "last four characters stay. While the transfer is `pending` it is 409.",
    paths: ["/v1/transfers/:id/bank_details"],
    scope: "transfers:write",
  }),
];
