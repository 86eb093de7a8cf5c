/** The operations of `api-v1-payments` on disputes. */

import { acceptanceOf, evidenceOf } from "../domain/payments/dispute_payment.ts";
import { Dispute, SubmitEvidenceBody } from "../schema/dispute.ts";
import { EmptyBody, EmptyQuery } from "../schema/empty.ts";
import { ListDisputesQuery, listOf } from "../schema/list.ts";
import { PAYMENTS_FUNCTION, type Route, route } from "./route.ts";
import { responsePage } from "./page.ts";
import { readOne } from "./read_one.ts";

const disputes = {
  home: PAYMENTS_FUNCTION,
  group: "Disputes",
  test_only: false,
  body: EmptyBody,
  query: EmptyQuery,
  response: Dispute,
  status: 200,
} as const;

/** The operations on disputes. */
export const DISPUTE_ROUTES: readonly Route[] = [
  route({
    ...disputes,
    id: "listDisputes",
    summary: "List disputes",
    method: "GET",
    paths: ["/v1/disputes"],
    scope: "payments:read",
    response: listOf(Dispute),
    query: ListDisputesQuery,
    run(call) {
      const { payment_id, status } = call.query;
      return responsePage(call, "/v1/disputes", {
        kind: "disputes",
        filters: { payment_id, status },
      });
    },
  }),
  readOne({
    id: "getDispute",
    group: "Disputes",
    summary: "Get a dispute",
    path: "/v1/disputes/:id",
    kind: "disputes",
    scope: "payments:read",
    response: Dispute,
  }),
  route({
    ...disputes,
    id: "submitEvidence",
    summary: "Send evidence",
    description:
      "Submits evidence for a dispute that `needs_response`, once and until `evidence_due_by`. " +
      "With `submit: false` the service only saves it. In the sandbox the text " +
      "`winning_evidence` wins the dispute and `losing_evidence` loses it at once. Every other " +
      "text leaves it `under_review` until an advance of the payment wins it, or until you " +
      "accept it.",
    method: "POST",
    paths: ["/v1/disputes/:id/evidence"],
    scope: "payments:write",
    body: SubmitEvidenceBody,
    errors: ["invalid_state", "provider_refused", "provider_not_configured"],
    run: ({ deps, request, id, body }) =>
      deps.operations.changeDispute(
        request,
        id,
        (payment, stored) => evidenceOf(payment, stored, body, request.context),
      ),
  }),
  route({
    ...disputes,
    id: "acceptDispute",
    summary: "Accept a dispute",
    description: "Gives up a dispute that is open. It is `lost`, and the payer keeps the money.",
    method: "POST",
    paths: ["/v1/disputes/:id/accept"],
    scope: "payments:write",
    errors: ["invalid_state", "provider_refused", "provider_not_configured"],
    run: ({ deps, request, id }) =>
      deps.operations.changeDispute(
        request,
        id,
        (payment, stored) => acceptanceOf(payment, stored, request.context),
      ),
  }),
];
