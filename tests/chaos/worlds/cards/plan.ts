/** The stories of live cards. They depend on the seed only. */

import { randomOf } from "../../../support/core/random.ts";

/** A change of a live payment. Only `create` moves a payment that does not exist yet. */
export type CardAction =
  | {
    do: "create";
    token: string;
    amount_minor: number;
    capture: "automatic" | "manual";
    return_url?: string;
  }
  | { do: "capture" | "refund"; amount_minor: number }
  | { do: "cancel" };

/** A change with its idempotency key and its number of duplicates. */
export interface CardOperation {
  key: string;
  action: CardAction;
  duplicates: number;
}

/** The changes of one payment. Those of a group are sent at once. */
interface CardStory {
  groups: CardOperation[][];
  /** Whether the payer authenticates on the page of the bank, if there is one. */
  is_authenticated: boolean;
}

/**
 * The statuses of payments whose result is known, with the status at the provider. No story leads to
 * `failed`.
 */
export const RESULTS: Readonly<Record<string, string | null>> = {
  requires_action: "requires_action",
  authorized: "requires_capture",
  completed: "succeeded",
  partially_refunded: "succeeded",
  refunded: "succeeded",
  // The service cancels it, so that nobody can pay it later.
  declined: "canceled",
  cancelled: "canceled",
  failed: null,
};

/** Kinds of stories, each as often as it stands here. */
const KINDS = [
  ...Array(5).fill("charged"),
  ...Array(2).fill("declined"),
  ...Array(3).fill("authenticated"),
  ...Array(3).fill("captured"),
  ...Array(3).fill("captured in part"),
  ...Array(4).fill("cancelled"),
] as string[];

/** Makes a story. */
export function cardStory(seed: number, number: number): CardStory {
  const random = randomOf(seed, "live", number);
  const amount_minor = random.integer(1_000, 9_999);
  const kind = random.pick(KINDS);
  const is_captured = kind.startsWith("captured");
  const groups: CardAction[][] = [[{
    do: "create",
    token: kind === "declined"
      ? "pm_card_chargeDeclined"
      : kind === "authenticated"
      ? "pm_card_authenticationRequired"
      : random.pick(["pm_card_visa", "pm_card_mastercard"]),
    amount_minor,
    capture: is_captured || kind === "cancelled" ? "manual" : "automatic",
    ...(kind === "authenticated" && { return_url: "https://shop.example/return" }),
  }]];
  const taken = kind === "captured in part" ? random.integer(300, amount_minor - 1) : amount_minor;
  if (is_captured) groups.push([{ do: "capture", amount_minor: taken }]);
  if (kind === "cancelled") groups.push([{ do: "cancel" }]);
  else if (random.chance(0.7)) groups.push(...refunds(taken, random.pick(["part", "all", "two"])));
  return {
    groups: groups.map((actions, group) =>
      actions.map((action, i) => ({
        key: `live-${seed}-${number}-${group}-${i}`,
        action,
        duplicates: random.pick([1, 1, 2, 3]),
      }))
    ),
    is_authenticated: random.chance(0.7),
  };
}

/** Refunds a part, or a part and the rest, or two parts at once. */
function refunds(amount_minor: number, how: "part" | "all" | "two"): CardAction[][] {
  const part = Math.floor(amount_minor / 3);
  const refund = (amount_minor: number) => ({ do: "refund", amount_minor }) as const;
  if (how === "part") return [[refund(part)]];
  if (how === "all") return [[refund(part)], [refund(amount_minor - part)]];
  return [[refund(part), refund(part + 1)]];
}
