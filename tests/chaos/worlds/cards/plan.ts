/** The stories of live cards. They depend on the seed only. */

import { type Random, randomOf } from "../../../support/core/random.ts";

export type CardAction =
  | {
    do: "create";
    token: string;
    amount_minor: number;
    capture: "automatic" | "manual";
    return_url?: string;
    customer?: { id: string; email: string };
    save?: "off_session";
  }
  /** A further payment by the saved card. `is_late`: after its end, so it must be refused. */
  | { do: "charge"; amount_minor: number; is_late?: true }
  | { do: "end" }
  | { do: "capture" | "refund"; amount_minor: number }
  | { do: "cancel" };

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
 * The statuses of payments whose result is known, with the status at the provider. No story leads
 * to `failed`.
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
  ...Array(5).fill("saved"),
  ...Array(3).fill("saved alone"),
] as string[];

/** Customers that many stories share. Every other one is of one story. */
const SHARED_CUSTOMERS = 20;
/** The cards that are saved. The payer has to authenticate for the second one, once. */
const SAVED = ["visa", "authenticationRequiredOnSetup", "mastercard"];

export function cardStory(seed: number, number: number): CardStory {
  const random = randomOf(seed, "live", number);
  const story = storyOf(random, seed, number);
  return {
    groups: story.map((actions, group) =>
      actions.map((action, i) => ({
        key: `live-${seed}-${number}-${group}-${i}`,
        action,
        duplicates: "is_late" in action ? 1 : random.pick([1, 1, 2, 3]),
      }))
    ),
    is_authenticated: random.chance(0.7),
  };
}

function storyOf(random: Random, seed: number, number: number): CardAction[][] {
  const amount_minor = random.integer(1_000, 9_999);
  const kind = random.pick(KINDS);
  if (kind.startsWith("saved")) {
    const id = random.chance(0.3) ? random.integer(1, SHARED_CUSTOMERS) : `${seed}-${number}`;
    return savedStory(random, kind === "saved" ? amount_minor : 0, `customer-${id}`);
  }
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
  return groups;
}

/** Saves a card, charges it without the payer, and mostly ends it: then nobody can charge it. */
function savedStory(random: Random, amount_minor: number, id: string): CardAction[][] {
  const charge = () => ({ do: "charge", amount_minor: random.integer(1_000, 9_999) }) as const;
  const create: CardAction = {
    ...{ do: "create", token: `pm_card_${random.pick(SAVED)}`, amount_minor, capture: "automatic" },
    ...{ return_url: "https://shop.example/return", save: "off_session" },
    customer: { id, email: "ada@example.com" },
  };
  const charges = random.pick([[[charge()]], [[charge(), charge()]], []]);
  const end: CardAction[][] = random.chance(0.8)
    ? [[{ do: "end" }], [{ ...charge(), is_late: true }]]
    : [];
  return [[create], ...charges, ...end];
}

/** Refunds a part, or a part and the rest, or two parts at once. */
function refunds(amount_minor: number, how: "part" | "all" | "two"): CardAction[][] {
  const part = Math.floor(amount_minor / 3);
  const refund = (amount_minor: number) => ({ do: "refund", amount_minor }) as const;
  if (how === "part") return [[refund(part)]];
  if (how === "all") return [[refund(part)], [refund(amount_minor - part)]];
  return [[refund(part), refund(part + 1)]];
}
