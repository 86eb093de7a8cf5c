/**
 * The challenge of 3-D Secure in a sandbox: on a page the payer sees the payment and approves it or
 * lets it fail. The page has a token in place of an API key. A token opens one payment of a
 * sandbox, and completes its challenge once (security §2).
 */

import { ApiError } from "../core/errors.ts";
import { withPaymentId } from "../core/return_url.ts";
import type { Challenge } from "../schema/challenge.ts";
import type { AuthenticationResult } from "../schema/payment_body.ts";
import type { Payment } from "../schema/payment.ts";
import { Retries } from "../jobs/retries.ts";
import type { ProviderStore } from "../store/provider_store.ts";
import { parseSettings } from "../store/sandbox_settings.ts";
import type { Origins } from "../domain/changes/origin.ts";
import { ChangeBuilder } from "../domain/changes/change_builder.ts";
import { isChallengeToken } from "./challenge_url.ts";
import { readPayment } from "../domain/changes/read_resource.ts";

export type Challenges = ReturnType<typeof createChallenges>;

/** Creates the operations of the payer's page. Each throws `not_found` for an unknown token. */
export function createChallenges(
  { store, origins }: { store: ProviderStore; origins: Origins },
) {
  async function find(token: string) {
    const found = isChallengeToken(token) ? await store.readChallenge(token) : null;
    if (!found) throw new ApiError("not_found", "This link leads to no payment");
    const settings = parseSettings(found.settings);
    return { ...found, settings, payment: readPayment(found.body) };
  }

  return {
    async read(token: string) {
      const { merchant, payment } = await find(token);
      return challengeOf(payment, merchant);
    },

    /** Throws `invalid_state` if the payment does not wait for the payer. */
    complete: (token: string, result: AuthenticationResult) =>
      new Retries().untilDecided(async () => {
        const { environment_id, merchant, payment, settings } = await find(token);
        const { authenticate } = await import("./advance.ts");
        const label = () => `challenge ${payment.id} ${payment.sequence}`;
        const at_ms = origins.at(settings);
        // As with a live provider, the result comes later and belongs to no request.
        const origin = origins.of({ settings, livemode: false, at_ms, label });
        const change = new ChangeBuilder(payment, origin);
        authenticate(change, result);
        const [recorded] = await store.record([{
          environment_id,
          operation_id: null,
          operation: null,
          provider_events: [],
          change: change.finish({ status: 200, body: "" }),
          response: null,
        }]);
        return recorded!.outcome === "recorded" ? challengeOf(change.subject, merchant) : null;
      }),
  };
}

function challengeOf(payment: Payment, merchant: string): Challenge {
  const { id, method, return_url } = payment;
  return {
    object: "challenge",
    payment_id: id,
    status: payment.status,
    amount_minor: payment.amount_minor,
    currency: payment.currency,
    merchant,
    reference: payment.reference,
    card: method && "card" in method
      ? { brand: method.card.brand, last4: method.card.last4 }
      : null,
    return_url: return_url === null ? null : withPaymentId(return_url, payment),
  };
}
