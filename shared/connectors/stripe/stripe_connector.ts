/**
 * The connector of Stripe: payments by card, refunds, disputes, fees and payouts through a small
 * client of the few endpoints (ADR 0013). It keeps no state and repeats no request. Each method
 * loads its module at its first use, so an installation without accounts at Stripe starts without
 * this code (ADR 0009).
 */

import { type Clock, systemClock } from "../../core/clock.ts";
import type { Connector, OperationPort } from "../../domain/providers/connector.ts";

export function stripeConnector(clock: Clock = systemClock): Connector {
  const operations = () => import("./stripe_operations.ts");
  const charges: OperationPort = {
    send: async (...operation) => await (await operations()).send(...operation),
    sync: async (...operation) => await (await operations()).sync(...operation),
    find: async (...operation) => await (await operations()).find(...operation),
  };
  return {
    name: "stripe",
    needs_secret: true,
    changeable_settings: ["publishable_key"],
    async checkSettings(settings) {
      const { readStripeSettings } = await import("./stripe_settings.ts");
      readStripeSettings(settings);
      return settings;
    },
    async takes(settings, _method, { amount_minor, currency }) {
      const { readStripeSettings } = await import("./stripe_settings.ts");
      const { toStripeAmount } = await import("./stripe_amount.ts");
      return readStripeSettings(settings).publishable_key !== null &&
        toStripeAmount(amount_minor, currency) !== null;
    },
    async test(account, signal) {
      const { testAccount } = await import("./stripe_test_call.ts");
      return await testAccount(account, signal);
    },
    charges,
    payouts: null,
    notifications: {
      async read(account, raw, headers, at_ms) {
        const { readNotification } = await import("./stripe_events.ts");
        return readNotification(account, raw, headers, at_ms);
      },
    },
    feed: {
      async poll(account, cursor, signal) {
        const { pollStripe } = await import("./stripe_poll.ts");
        return await pollStripe(account, cursor, clock(), signal);
      },
      async totals(account, time, cursor, signal) {
        const { readTotals } = await import("./stripe_totals.ts");
        return await readTotals(account, time, cursor, clock(), signal);
      },
    },
  };
}
