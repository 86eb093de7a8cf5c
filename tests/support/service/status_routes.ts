import type { PaymentStatus } from "../../../shared/schema/payment.ts";

/** For each status, the requests that bring a payment of 1000 to it. */
export const ROUTES: Record<
  PaymentStatus,
  { outcome: string; capture?: string; then?: PaymentStatus; refund?: number }
> = {
  pending: { outcome: "pending" },
  requires_action: { outcome: "pending", then: "requires_action" },
  processing: { outcome: "pending", then: "processing" },
  authorized: { outcome: "success", capture: "manual" },
  completed: { outcome: "success" },
  declined: { outcome: "declined" },
  failed: { outcome: "pending", then: "failed" },
  cancelled: { outcome: "pending", then: "cancelled" },
  partially_refunded: { outcome: "success", refund: 400 },
  refunded: { outcome: "refunded" },
  chargeback: { outcome: "chargeback" },
};
