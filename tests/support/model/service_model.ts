/**
 * A model of one sandbox as the contract describes it, in memory and in virtual time. It gives the
 * expected answer to each step and the expected state after it. torture/payment_model.ts
 * and torture/transfer_model.ts have the transitions; this module has keys, balances, retention and
 * reset. It shares no code with the product.
 */

import {
  availableOf,
  expectCreate,
  expectMove,
  type Move,
  nameNewestRefund,
  type Standing,
} from "../../../torture/payment_model.ts";
import {
  expectTransfer,
  expectTransferMove,
  type TransferStanding,
} from "../../../torture/transfer_model.ts";

const HOUR_MS = 3_600_000;
/** Lifetime of idempotency keys, from the first request (interface §8). */
const KEY_RETENTION_MS = 24 * HOUR_MS;
/** Lifetimes of a waiting payment and of an authorization, and the delay of a late answer (contract §2). */
const AUTHENTICATION_MS = 24 * HOUR_MS;
const AUTHORIZATION_MS = 7 * 24 * HOUR_MS;
const LATE_MS = 2_000;
/** Lifetime of the data of a test key (interface §8). */
const DATA_RETENTION_MS = 30 * 24 * HOUR_MS;

/** A request that changes something. `target` counts back from the newest resource, which is 0. */
export type ChangeStep =
  | {
    do: "create";
    instrument: string;
    outcome: string | null;
    amount: number;
    is_sandbox: boolean;
  }
  | { do: "move"; target: number; move: Exclude<Move, { do: "advance_refund" }> }
  /** `refund` counts back from the newest requested refund of the payment. */
  | { do: "advance_refund"; target: number; refund: number; to: "completed" | "failed" }
  | { do: "transfer"; amount: number; destination: "approved" | "returned"; is_manual: boolean }
  | {
    do: "move_transfer";
    target: number;
    move: { do: "cancel" } | { do: "advance"; to: string };
  };

/** One step of a workload. */
export type Step =
  /** `key`: number of an idempotency key, which several steps can share; null for none. */
  | { do: "send"; change: ChangeStep; key: number | null }
  | { do: "pass"; ms: number }
  /** Advances the clock of the sandbox; then it runs or stands. */
  | { do: "clock"; advance_s: number; mode: "real" | "frozen" }
  | { do: "look" }
  | { do: "purge" }
  | { do: "reset" };

/** A payment or transfer of the sandbox. */
interface Made<T> {
  id: string;
  at_ms: number;
  /** The time of its last event. */
  changed_ms: number;
  standing: T;
  /** Its events, with their times. */
  events: { type: string; at_ms: number }[];
  /** What happens to it by itself, if it then still has the status. */
  due: { at_ms: number; from: string; to: string }[];
}

/** The expected answer to a change. `happen` updates the model with the actual answer. */
interface Judgement {
  http: number;
  code: string | null;
  /** The text of the stored answer if the step is a replay, else null. */
  replays: string | null;
  /** The state of the payment or transfer afterwards. */
  standing: Standing | TransferStanding | null;
  happen(answer: { id: string; text: string }): void;
}

/** The state of the sandbox. */
export class ServiceModel {
  now_ms: number;
  /** The oldest payment is the first. */
  payments: Made<Standing>[] = [];
  transfers: Made<TransferStanding>[] = [];
  /** The available balance, in euro cents. */
  available = 0;
  /** The time at which the clock of the sandbox stands, or how far it is ahead. */
  #frozen_ms: number | null = null;
  #offset_ms = 0;
  readonly #kept = new Map<
    number,
    { request: string; at_ms: number; http: number; text: string }
  >();

  constructor(now_ms: number) {
    this.now_ms = now_ms;
  }

  /** The time of the sandbox. `now_ms` is the real time. */
  get time_ms(): number {
    return this.#frozen_ms ?? this.now_ms + this.#offset_ms;
  }

  /** Advances the clock. Returns the number of payments that end by themselves. */
  advance(advance_s: number, mode: "real" | "frozen"): number {
    const goal = this.time_ms + advance_s * 1_000;
    const target = mode === "real" ? Math.max(goal, this.now_ms) : goal;
    let ended = 0;
    for (;;) {
      const [next] = this.payments
        .flatMap((payment) => payment.due.map((due) => ({ payment, due })))
        .filter(({ due }) => due.at_ms <= target)
        .sort((a, b) => a.due.at_ms - b.due.at_ms);
      if (!next) break;
      const { payment, due } = next;
      payment.due = payment.due.filter((other) => other !== due);
      if (payment.standing.status !== due.from) continue;
      // A change of the payment can come after the time at which the result was due.
      const at_ms = Math.max(due.at_ms, payment.changed_ms);
      this.#apply(payment, { do: "advance", to: due.to }, at_ms);
      if (due.from !== "processing") ended++;
    }
    this.#frozen_ms = mode === "frozen" ? target : null;
    this.#offset_ms = target - this.now_ms;
    this.#purgeBefore(target);
    return ended;
  }

  /** The payment, transfer or refund that a step is about; undefined when there is none. */
  subjectOf(change: ChangeStep): { id: string } | undefined {
    if (change.do === "advance_refund") {
      const id = this.#refundOf(change);
      return id === undefined ? undefined : { id };
    }
    if (change.do === "move") return newest(this.payments, change.target);
    if (change.do === "move_transfer") return newest(this.transfers, change.target);
    return undefined;
  }

  /** Returns the expected answer to a change that is sent now. */
  judge(change: ChangeStep, key: number | null): Judgement {
    const request = JSON.stringify([change, this.subjectOf(change)?.id]);
    const kept = key === null ? undefined : this.#kept.get(key);
    if (kept !== undefined && this.time_ms - kept.at_ms < KEY_RETENTION_MS) {
      const nothing = { standing: null, happen: () => {} };
      return kept.request === request
        ? { http: kept.http, code: null, replays: kept.text, ...nothing }
        : { http: 409, code: "idempotency_conflict", replays: null, ...nothing };
    }
    const judgement = this.#judgeNew(change);
    return {
      ...judgement,
      happen: (answer) => {
        judgement.happen(answer);
        const { http, code } = judgement;
        const is_kept = http < 300 || http === 402 || code === "invalid_state";
        if (key !== null && is_kept) {
          this.#kept.set(key, { request, at_ms: this.time_ms, http, text: answer.text });
        }
      },
    };
  }

  purge(): void {
    this.#purgeBefore(this.time_ms);
  }

  #purgeBefore(now_ms: number): void {
    const is_young = ({ at_ms }: { at_ms: number }) => at_ms >= now_ms - DATA_RETENTION_MS;
    this.payments = this.payments.filter(is_young);
    this.transfers = this.transfers.filter(is_young);
    for (const made of [...this.payments, ...this.transfers]) {
      made.events = made.events.filter(is_young);
    }
  }

  reset(): void {
    this.payments = [];
    this.transfers = [];
    this.available = 0;
    this.#frozen_ms = null;
    this.#offset_ms = 0;
    this.#kept.clear();
  }

  #judgeNew(change: ChangeStep): Judgement {
    const at_ms = this.time_ms;
    const dated = (types: string[]) => types.map((type) => ({ type, at_ms }));
    switch (change.do) {
      case "create": {
        const { instrument, outcome, amount, is_sandbox } = change;
        const { http, code, next, events } = expectCreate(instrument, outcome, amount, is_sandbox);
        if (http === 400) return { http, code, replays: null, standing: null, happen: () => {} };
        const happen = ({ id }: { id: string }) => {
          const payment = {
            id,
            at_ms,
            changed_ms: at_ms,
            standing: next,
            events: dated(events),
            due: [],
          };
          this.payments.push(payment);
          schedule(payment, "", at_ms);
          if (next.status === "processing") {
            const to = next.is_captured_later ? "authorized" : "completed";
            addDue(payment, { at_ms: at_ms + LATE_MS, from: "processing", to });
          }
          this.available += availableOf(next);
        };
        return { http, code, replays: null, standing: next, happen };
      }
      case "move": {
        const payment = newest(this.payments, change.target);
        return payment === undefined ? NOT_FOUND : this.#judgeMove(payment, change.move);
      }
      case "advance_refund": {
        const { target, to } = change;
        const payment = newest(this.payments, target);
        const id = this.#refundOf(change);
        if (payment === undefined || id === undefined) return NOT_FOUND;
        return this.#judgeMove(payment, { do: "advance_refund", id, to });
      }
      case "transfer": {
        const { amount, destination, is_manual } = change;
        if (amount > this.available) {
          const code = "balance_insufficient";
          return { http: 402, code, replays: null, standing: null, happen: () => {} };
        }
        const { http, code, next, events } = expectTransfer(destination, is_manual, amount);
        const happen = ({ id }: { id: string }) => {
          const transfer = {
            id,
            at_ms,
            changed_ms: at_ms,
            standing: next,
            events: dated(events),
            due: [],
          };
          this.transfers.push(transfer);
          this.available -= takenBy(next);
        };
        return { http, code, replays: null, standing: next, happen };
      }
      case "move_transfer": {
        const transfer = newest(this.transfers, change.target);
        if (transfer === undefined) return NOT_FOUND;
        const { http, code, next, events } = expectTransferMove(transfer.standing, change.move);
        const happen = () => {
          this.available += takenBy(transfer.standing) - takenBy(next);
          transfer.standing = next;
          transfer.events.push(...dated(events));
        };
        return { http, code, replays: null, standing: next, happen };
      }
    }
  }

  #judgeMove(payment: Made<Standing>, move: Move): Judgement {
    const { http, code, next } = expectMove(payment.standing, move);
    const happen = ({ id }: { id: string }) => this.#apply(payment, move, this.time_ms, id);
    return { http, code, replays: null, standing: next, happen };
  }

  /** Moves a payment at a time. `id`: of the answer, for a new refund. */
  #apply(payment: Made<Standing>, move: Move, at_ms: number, id = ""): void {
    const { http, next, events } = expectMove(payment.standing, move);
    const { status } = payment.standing;
    this.available += availableOf(next) - availableOf(payment.standing);
    payment.standing = move.do === "refund" && http === 201 ? nameNewestRefund(next, id) : next;
    payment.events.push(...events.map((type) => ({ type, at_ms })));
    if (events.length > 0) payment.changed_ms = at_ms;
    schedule(payment, status, at_ms);
  }

  /** Id of the refund of a step; undefined when there is none. */
  #refundOf({ target, refund }: Extract<ChangeStep, { do: "advance_refund" }>): string | undefined {
    const refunds = newest(this.payments, target)?.standing.refunds ?? [];
    return refunds.flatMap(({ id }) => id ?? []).at(-1 - refund);
  }
}

const NOT_FOUND: Judgement = {
  http: 404,
  code: "not_found",
  replays: null,
  standing: null,
  happen: () => {},
};

function newest<T>(made: Made<T>[], target: number): Made<T> | undefined {
  return made[made.length - 1 - target];
}

/** The amount that a transfer takes from the available balance. */
function takenBy({ status, amount }: TransferStanding): number {
  return status === "pending" || status === "completed" ? amount : 0;
}

/** Notes the end of a payment that has come to a status in which it cannot stay. */
function schedule(payment: Made<Standing>, before: string, at_ms: number): void {
  const { status } = payment.standing;
  if (status === before) return;
  if (status === "requires_action") {
    addDue(payment, { at_ms: at_ms + AUTHENTICATION_MS, from: status, to: "failed" });
  }
  if (status === "authorized") {
    addDue(payment, { at_ms: at_ms + AUTHORIZATION_MS, from: status, to: "cancelled" });
  }
}

function addDue(payment: Made<Standing>, due: Made<Standing>["due"][number]): void {
  payment.due = [...payment.due, due];
}
