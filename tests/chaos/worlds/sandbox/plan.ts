/**
 * The plan of the main run. The seed decides the stories, the number of duplicates of each request,
 * and the time and victim of each kill. The same seed and sizes give the same plan on every
 * machine.
 */

import { type Random, randomOf } from "../../../support/core/random.ts";
import { INSTRUMENTS, OUTCOMES } from "../../../support/model/instruments.ts";
import type { ChangeStep } from "../../../support/model/model_steps.ts";
import { STATUSES } from "../../../support/model/statuses.ts";

/** The sandboxes of a run, named after their use. */
export const SANDBOXES = ["payments", "mixed", "transfers", "resets"] as const;
export type Sandbox = typeof SANDBOXES[number];

/** The currencies of the hot accounts: every transfer takes money from one of these balances. */
const HOT_CURRENCIES = ["EUR", "USD", "GBP", "JPY", "CHF", "SEK", "USDC", "USDT"] as const;

/** A change of the model, of the payment or transfer of its story. */
type Change<Do extends ChangeStep["do"]> = Omit<Extract<ChangeStep, { do: Do }>, "target">;

export type Action =
  | Change<"create"> & { currency: string; customer?: string }
  /** A payment by the instrument that the story has saved. */
  | Change<"use">
  | Change<"end">
  | Change<"move">
  | Change<"move_transfer">
  /** `which` selects one of the refunds that the story has so far, 0 to 1. */
  | Omit<Change<"advance_refund">, "refund"> & { which: number }
  | Change<"transfer"> & { currency: string }
  | { do: "get" | "list" | "list_refunds" | "balance" | "reset" };

/** An operation: a request with one key, which several duplicates send. */
export interface Operation {
  /** Its number in the run, from 0. The idempotency key contains it. */
  number: number;
  action: Action;
  duplicates: number;
  /** Whether the request is sent again after the response, with one field changed. */
  is_changed: boolean;
}

/**
 * The requests of one payment or transfer. The requests of a group are sent at the same time; the
 * first group creates the payment or transfer.
 */
export interface Story {
  number: number;
  sandbox: Sandbox;
  groups: Operation[][];
}

export const VICTIMS = ["postmaster", "backend", "server", "receiver"] as const;

/** A kill after this many operations with a response. `which` selects one process, 0 to 1. */
export interface PlannedKill {
  at_operation: number;
  victim: typeof VICTIMS[number];
  which: number;
}

export interface Plan {
  seed: number;
  stories: Story[];
  kills: PlannedKill[];
}

const MAX_DUPLICATES = 16;
const OPENING_AMOUNT = 20_000;

function move(move: Change<"move">["move"]): Action {
  return { do: "move", move };
}

/** Whether an action only reads. Such a request has no key and no duplicates. */
export function isRead(action: Action): boolean {
  return ["get", "list", "list_refunds", "balance"].includes(action.do);
}

export function keyOf({ seed }: Pick<Plan, "seed">, operation: number): string {
  return `chaos-${seed}-${operation}`;
}

export function planOf(seed: number, operations: number, kills: number): Plan {
  const random = randomOf(seed, "plan");
  const stories: Story[] = [];
  let number = 0;
  const wrap = (action: Action, sandbox: Sandbox): Operation => {
    const is_read = isRead(action);
    return {
      number: number++,
      action,
      duplicates: is_read ? 1 : drawDuplicates(random),
      // A reset deletes the key.
      is_changed: !is_read && random.chance(0.1) && sandbox !== "resets",
    };
  };
  const add = (sandbox: Sandbox, groups: Action[][]) =>
    stories.push({
      number: stories.length,
      sandbox,
      groups: groups.map((group) => group.map((action) => wrap(action, sandbox))),
    });
  for (const currency of HOT_CURRENCIES) add("transfers", fund(OPENING_AMOUNT, currency));
  while (number < operations) {
    const sandbox = drawSandbox(random);
    add(sandbox, STORIES[sandbox](random));
  }
  return { seed, stories, kills: planKills(seed, number, kills) };
}

/** Kills spread over the run, which begins and ends with some time without. Victims take turns. */
function planKills(seed: number, operations: number, count: number): PlannedKill[] {
  const random = randomOf(seed, "kills");
  return Array.from({ length: count }, (_, i) => ({
    at_operation: Math.floor((0.05 + 0.85 * (i + random.next()) / count) * operations),
    victim: VICTIMS[i % VICTIMS.length]!,
    which: random.next(),
  }));
}

function drawDuplicates(random: Random): number {
  const draw = random.next();
  if (draw < 0.6) return 1;
  if (draw < 0.8) return 2;
  return draw < 0.92 ? random.integer(3, 4) : random.integer(5, MAX_DUPLICATES);
}

function drawSandbox(random: Random): Sandbox {
  const draw = random.next();
  return draw < 0.45 ? "payments" : draw < 0.7 ? "mixed" : draw < 0.95 ? "transfers" : "resets";
}

const STORIES: Record<Sandbox, (random: Random) => Action[][]> = {
  payments: (random) => random.chance(0.12) ? saving(random) : payment(random),
  mixed: (random) => random.chance(0.12) ? saving(random) : payment(random),
  // A payment gives the transfers money, though not always enough.
  transfers: (random) =>
    random.chance(0.4)
      ? fund(random.integer(1_000, 5_000), random.pick(HOT_CURRENCIES))
      : transfer(random),
  resets: (random) => random.chance(0.1) ? [[{ do: "reset" }]] : payment(random),
};

function times<T>(count: number, draw: () => T): T[] {
  return Array.from({ length: count }, draw);
}

function payment(random: Random): Action[][] {
  const create = drawCreate(random);
  const { capture, settlement } = INSTRUMENTS[create.instrument]!.body;
  const group = () => times(random.chance(0.3) ? random.integer(2, 3) : 1, () => drawMove(random));
  return [
    [create],
    // Most random moves of a payment that waits for a request would be refused.
    ...(capture === "manual" && random.chance(0.6) ? [captures(random)] : []),
    ...(settlement === "manual" && random.chance(0.8) ? refunds(random) : []),
    ...times(random.integer(0, 4), group),
  ];
}

const SAVED = [
  ...["card", "token", "card_3ds", "token_3ds", "token_declined_later", "card_refunds_wait"],
  ...["card_captured_later", "card_declined", "sepa_saved", "sepa_returned_later"],
];

/** A payment that saves its instrument, and then payments by it beside its end. */
function saving(random: Random): Action[][] {
  const instrument = random.pick(SAVED);
  const groups: Action[][] = [[{
    ...{ do: "create", instrument, outcome: null, currency: "EUR", is_sandbox: false },
    amount: random.integer(1, 1_000),
    save: random.chance(0.8) ? "off_session" : "on_session",
    // A customer has at most 50.
    customer: `c${random.integer(1, 1_000_000)}`,
  }]];
  const use = (): Action => {
    return { do: "use", amount: random.integer(1, 1_000), off_session: random.chance(0.7) };
  };
  // A use that is refused is not stored under its key, so nothing makes it possible meanwhile.
  if (INSTRUMENTS[instrument]!.status === "requires_action") {
    if (random.chance(0.3)) groups.push([use()]);
    groups.push([move({ do: "authenticate", result: random.chance(0.8) ? "success" : "failure" })]);
  }
  groups.push(...times(random.integer(1, 2), () => times(random.integer(1, 3), use)));
  if (random.chance(0.3)) groups.push([drawRefund(random)]);
  if (random.chance(0.7)) groups.push([use(), { do: "end" }, use()], [use(), { do: "end" }]);
  return groups;
}

/** A capture, sometimes beside another one or a cancel. */
function captures(random: Random): Action[] {
  const other = random.chance(0.5) ? drawCapture(random) : move({ do: "cancel" });
  return [drawCapture(random), ...(random.chance(0.3) ? [other] : [])];
}

/** Simultaneous refunds that stay pending, and their ends, sometimes beside a dispute. */
function refunds(random: Random): Action[][] {
  const dispute = move({ do: "advance", to: "chargeback" });
  const is_disputed = random.chance(0.3);
  const ends = () => [
    ...times(random.chance(0.3) ? 2 : 1, () => drawRefundAdvance(random)),
    ...(random.chance(0.1) ? [dispute] : []),
  ];
  // The merchant wins the dispute, if the status fits.
  const win = move({ do: "advance", to: random.pick(["completed", "partially_refunded"]) });
  return [
    ...times(random.integer(1, 2), () => times(random.integer(1, 2), () => drawRefund(random))),
    ...(is_disputed ? [[dispute]] : []),
    ...times(random.integer(1, 3), ends),
    ...(is_disputed ? [[win]] : []),
  ];
}

function drawCapture(random: Random): Action {
  // Few payments are of more than this amount, so that some captures are refused.
  const amount = random.chance(0.1) ? 90_000 : random.integer(1, 1_000);
  return move({ do: "capture", amount: random.chance(0.4) ? null : amount });
}

function drawRefund(random: Random): Action {
  return move({ do: "refund", amount: random.chance(0.3) ? null : random.integer(1, 100) });
}

function drawRefundAdvance(random: Random): Action {
  const to = random.chance(0.7) ? "completed" : "failed";
  return { do: "advance_refund", which: random.next(), to };
}

function drawCreate(random: Random): Extract<Action, { do: "create" }> {
  const instrument = random.pick(Object.keys(INSTRUMENTS));
  const is_wallet = INSTRUMENTS[instrument]!.kind === "stablecoin";
  return {
    do: "create",
    instrument,
    outcome: random.chance(0.25) ? random.pick(Object.keys(OUTCOMES)) : null,
    amount: random.integer(1_000, 100_000),
    currency: is_wallet ? random.pick(["USDC", "USDT"]) : "EUR",
    is_sandbox: random.chance(0.5),
  };
}

function drawMove(random: Random): Action {
  const draw = random.next();
  if (draw < 0.1) return move({ do: "cancel" });
  if (draw < 0.15) return drawCapture(random);
  if (draw < 0.4) return drawRefund(random);
  if (draw < 0.45) return drawRefundAdvance(random);
  if (draw < 0.75) return move({ do: "advance", to: random.pick(STATUSES.slice(1)) });
  if (draw < 0.85) {
    return move({ do: "authenticate", result: random.chance(0.6) ? "success" : "failure" });
  }
  return { do: random.pick(["get", "list", "list_refunds"] as const) };
}

function fund(amount: number, currency: string): Action[][] {
  const instrument = currency.startsWith("USD") && currency !== "USD" ? "wallet" : "none";
  return [[{ do: "create", instrument, outcome: "success", amount, currency, is_sandbox: true }]];
}

function transfer(random: Random): Action[][] {
  const is_manual = random.chance(0.5);
  const groups: Action[][] = [[{
    do: "transfer",
    amount: random.integer(500, 4_000),
    currency: random.pick(HOT_CURRENCIES),
    destination: random.chance(0.8) ? "approved" : "returned",
    is_manual,
  }]];
  if (is_manual) {
    groups.push(times(random.chance(0.4) ? 2 : 1, () => drawTransferMove(random)));
  }
  if (random.chance(0.2)) groups.push([{ do: "balance" }]);
  return groups;
}

function drawTransferMove(random: Random): Action {
  const move = random.chance(0.3)
    ? { do: "cancel" } as const
    : { do: "advance", to: random.pick(["completed", "failed", "cancelled"]) } as const;
  return { do: "move_transfer", move };
}
