/** The operations of `api-v1-payments` on disputes. */

import { acceptanceOf, evidenceOf } from "../domain/payments/dispute_payment.ts";
import { SubmitEvidenceBody } from "../schema/dispute_body.ts";
import { ListDisputesQuery } from "../schema/list.ts";
import { type Route, route } from "./route.ts";
import { listRoute } from "./page.ts";
import { readOne } from "./read_one.ts";

const disputes = { group: "Disputes", response: "Dispute" } as const;

export const DISPUTE_ROUTES: readonly Route[] = [
  listRoute({
    ...disputes,
    id: "listDisputes",
    summary: "List disputes",
    paths: ["/v1/disputes"],
    scope: "payments:read",
    query: ListDisputesQuery,
    kind: "disputes",
  }),
  readOne({
    ...disputes,
    id: "getDispute",
    summary: "Get a dispute",
    paths: ["/v1/disputes/:id"],
    kind: "disputes",
    scope: "payments:read",
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
