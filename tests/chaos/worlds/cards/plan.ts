/** The stories of live cards. They depend on the seed only. */

import { type Random, randomOf } from "../../../support/core/random.ts";

export interface CardAction {
  do: "create" | "charge" | "end" | "capture" | "refund" | "cancel";
  /** The body of its request, null for an end. A charge also names the saved card. */
  body: { amount_minor?: number } & Record<string, unknown> | null;
  /** Whether it is a charge after the end of the card, which must be refused. */
  is_late?: true;
}

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

const BACK = { return_url: "https://shop.example/return" };
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
        duplicates: action.is_late ? 1 : random.pick([1, 1, 2, 3]),
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
  const card = kind === "declined"
    ? "chargeDeclined"
    : kind === "authenticated"
    ? "authenticationRequired"
    : random.pick(["visa", "mastercard"]);
  const groups = [[
    create(card, amount_minor, {
      capture: is_captured || kind === "cancelled" ? "manual" : "automatic",
      ...(kind === "authenticated" && BACK),
    }),
  ]];
  const taken = kind === "captured in part" ? random.integer(300, amount_minor - 1) : amount_minor;
  if (is_captured) groups.push([of("capture", taken)]);
  if (kind === "cancelled") groups.push([{ do: "cancel", body: {} }]);
  else if (random.chance(0.7)) groups.push(...refunds(taken, random.pick(["part", "all", "two"])));
  return groups;
}

function of(verb: "capture" | "refund", amount_minor: number): CardAction {
  return { do: verb, body: { amount_minor } };
}

function create(card: string, amount_minor: number, terms: object): CardAction {
  const body = { amount_minor, currency: "EUR", card: { token: `pm_card_${card}` }, ...terms };
  return { do: "create", body };
}

/** Saves a card, charges it without the payer, and mostly ends it: then nobody can charge it. */
function savedStory(random: Random, amount_minor: number, id: string): CardAction[][] {
  const charge = (): CardAction => {
    const amount_minor = random.integer(1_000, 9_999);
    return { do: "charge", body: { amount_minor, currency: "EUR", off_session: true } };
  };
  const terms = { ...BACK, save: "off_session", customer: { id, email: "ada@example.com" } };
  const saved = create(random.pick(SAVED), amount_minor, terms);
  const charges = random.pick([[[charge()]], [[charge(), charge()]], []]);
  const end: CardAction[][] = random.chance(0.8)
    ? [[{ do: "end", body: null }], [{ ...charge(), is_late: true }]]
    : [];
  return [[saved], ...charges, ...end];
}

/** Refunds a part, or a part and the rest, or two parts at once. */
function refunds(amount_minor: number, how: "part" | "all" | "two"): CardAction[][] {
  const part = Math.floor(amount_minor / 3);
  const refund = (amount_minor: number) => of("refund", amount_minor);
  if (how === "part") return [[refund(part)]];
  if (how === "all") return [[refund(part)], [refund(amount_minor - part)]];
  return [[refund(part), refund(part + 1)]];
}
