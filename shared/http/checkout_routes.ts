/** The operations on checkouts. Their code loads with the first of them (ADR 0009). */

import { ApiError } from "../core/errors.ts";
import { type CheckoutUrls, revealUrls } from "../domain/checkouts/checkout_url.ts";
import { refuseRealCard } from "../domain/providers/instrument.ts";
import {
  CreateCheckoutBody,
  ListCheckoutsQuery,
  PayCheckoutBody,
} from "../schema/checkout_body.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { Dependencies } from "./dependencies.ts";
import { listRoute } from "./page.ts";
import { readOne } from "./read_one.ts";
import { type Route, route, SANDBOX_FUNCTION } from "./route.ts";

const checkouts = () => import("./checkouts.ts");
const checkout_paths = { group: "Checkouts", response: "Checkout" } as const;

/** The operations of `api-v1-payments`. */
export const CHECKOUT_ROUTES: readonly Route[] = [
  route({
    ...checkout_paths,
    id: "createCheckout",
    summary: "Create a checkout",
    description:
      "A checkout takes attempts, each of which is a payment, until one is successful. A link " +
      "(`max_payments: null`) takes any number. A sandbox has at most 1 000 open checkouts; one " +
      "more is 429. With a live key a method needs an account at a provider.",
    method: "POST",
    paths: ["/v1/checkouts"],
    scope: "payments:write",
    body: CreateCheckoutBody,
    status: 201,
    errors: ["provider_not_configured"],
    run: async ({ deps, request, body }) =>
      (await checkouts()).createCheckout(deps, request, body, urlsOf(deps)),
  }),
  listRoute({
    ...checkout_paths,
    id: "listCheckouts",
    summary: "List checkouts",
    paths: ["/v1/checkouts"],
    scope: "payments:read",
    query: ListCheckoutsQuery,
    kind: "checkouts",
  }),
  readOne({
    ...checkout_paths,
    id: "getCheckout",
    summary: "Get a checkout",
    paths: ["/v1/checkouts/:id"],
    kind: "checkouts",
    scope: "payments:read",
  }),
  route({
    ...checkout_paths,
    id: "cancelCheckout",
    summary: "Cancel a checkout",
    description:
      "It takes no attempt any more. An attempt that is `pending` or `requires_action` is cancelled " +
      "first, except of a link.",
    method: "POST",
    paths: ["/v1/checkouts/:id/cancel"],
    scope: "payments:write",
    errors: ["invalid_state"],
    run: async ({ deps, request, id }) => (await checkouts()).cancelCheckout(deps, request, id),
  }),
].map(withUrls);

/** The operation of `api-v1-sandbox` by which a test pays. */
export const payCheckoutRoute: Route = withUrls(route({
  ...checkout_paths,
  home: SANDBOX_FUNCTION,
  test_only: true,
  id: "payCheckout",
  summary: "Pay as the payer",
  description:
    "Does what a payer does, 3-D Secure included. Returns 200 with the checkout and its new " +
    "`payment`, also after a decline. An earlier attempt that is `pending` or `requires_action` is " +
    "cancelled first, except of a link. After 10 declines within an hour, or 30 of a link, the " +
    "next attempt is 429 until the hour is over.",
  method: "POST",
  paths: ["/checkouts/:id/pay", "/v1/checkouts/:id/pay"],
  scope: "sandbox:write",
  body: PayCheckoutBody,
  refuse: refuseRealCard,
  response: "PaidCheckout",
  errors: ["invalid_state"],
  run: async ({ deps, request, id, body }) =>
    (await checkouts()).payCheckout(deps, request, id, body),
}));

/** Shows URLs in the responses of an operation in place of references. */
function withUrls(operation: Route): Route {
  return {
    ...operation,
    async run(call) {
      const urls = urlsOf(call.deps);
      const shown = (response: StoredResponse) => ({
        ...response,
        body: revealUrls(response.body, urls),
      });
      const outcome = await operation.run(call);
      return "response" in outcome
        ? { ...outcome, response: shown(outcome.response) }
        : shown(outcome);
    },
  };
}

/** Returns what URLs are made from. Throws 503 if no master secret is set. */
function urlsOf({ checkout_urls }: Dependencies): CheckoutUrls {
  if (checkout_urls) return checkout_urls;
  throw new ApiError(
    "service_unavailable",
    "Checkouts are not set up here: ask the operator to set WEBHOOK_MASTER_SECRET",
    {},
    { "Retry-After": "3600" },
  );
}
