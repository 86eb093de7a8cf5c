/**
 * A model of one sandbox as the contract describes it, in memory and in virtual time. It gives the
 * expected response to each step and the expected state after it. payment_model.ts and
 * transfer_model.ts have the transitions, declared_faults.ts has the faults; this module
 * has keys, balances, clocks, retention and reset. It shares no code with the product.
 */

import {
  availableOf,
  expectCreate,
  type Expected,
  expectEnd,
  expectMove,
  expectUse,
  type Move,
  nameNewestRefund,
  type Standing,
} from "./payment_model.ts";
import { HELD } from "./statuses.ts";
import { expectTransfer, expectTransferMove, type TransferStanding } from "./transfer_model.ts";
import { INSTRUMENTS, MANDATE } from "./instruments.ts";
import {
  DeclaredFaults,
  expectFaultyCreate,
  expectFaultyMove,
  expectFaultyTransfer,
  laterStatus,
  refusalOf,
  TIMEOUT_MS,
} from "./declared_faults.ts";
import { dueDate, EVIDENCE_MS, laterMove, madeNow, monthsBefore, schedule } from "./due_moves.ts";
import { endSaved, newSaved, type Saved } from "./saved_model.ts";
import type {
  ChangeStep,
  Due,
  Judgement,
  Made,
  MadeInstrument,
  SentRequest,
} from "./model_steps.ts";

const HOUR_MS = 3_600_000;
/** Lifetime of idempotency keys, from the first request (contract §5). */
const KEY_RETENTION_MS = 24 * HOUR_MS;
/** The delay of a late response (contract §2). */
const LATE_MS = 2_000;
/** The rail of the transfers of the workload. */
const RAILS = { approved: "swift", returned: "sepa" } as const;
/** Time after which a collection is returned whose payer did not want it. */
const RETURN_MS = 20 * 24 * HOUR_MS;
/** Lifetime of the data of a test key (contract §5). */
const DATA_RETENTION_MS = 30 * 24 * HOUR_MS;

/** The state of the sandbox. */
export class ServiceModel {
  now_ms: number;
  /** The oldest payment is the first. */
  payments: Made<Standing>[] = [];
  transfers: Made<TransferStanding>[] = [];
  instruments: MadeInstrument[] = [];
  /** The available balance, in euro cents. */
  available = 0;
  /** The time at which the clock of the sandbox stands, or how far it is ahead. */
  #frozen_ms: number | null = null;
  #offset_ms = 0;
  readonly faults = new DeclaredFaults();
  readonly #stored = new Map<
    number,
    /** `text` is null until a response shows it. */
    { request: string; at_ms: number; http: number; text: string | null }
  >();

  constructor(now_ms: number) {
    this.now_ms = now_ms;
  }

  /** The time of the sandbox. `now_ms` is the real time. */
  get time_ms(): number {
    return this.#frozen_ms ?? this.now_ms + this.#offset_ms;
  }

  /** Advances the clock. Returns the numbers of what happens by itself. */
  advance(advance_s: number, mode: "real" | "frozen") {
    const goal = this.time_ms + advance_s * 1_000;
    const target = mode === "real" ? Math.max(goal, this.now_ms) : goal;
    const did = { expired_payments: 0, disputes_closed: 0 };
    for (;;) {
      const [next] = this.payments
        .flatMap((payment) => payment.due.map((due) => ({ payment, due })))
        .filter(({ due }) => due.at_ms <= target)
        .sort((a, b) => a.due.at_ms - b.due.at_ms);
      if (!next) break;
      const { payment, due } = next;
      this.#endIdle(due.at_ms);
      payment.due = payment.due.filter((other) => other !== due);
      if (!due.waits()) continue;
      // A change of the payment can come after the time at which the result was due.
      const at_ms = Math.max(due.at_ms, payment.changed_ms);
      this.#apply(payment, due.move, at_ms);
      due.then?.(at_ms);
      if (due.did) did[due.did]++;
    }
    this.#endIdle(target);
    for (const transfer of this.transfers) {
      for (const { at_ms, waits, move } of transfer.due.filter((due) => due.at_ms <= target)) {
        if (waits() && move.do === "advance") this.#moveTransfer(transfer, move, at_ms);
      }
      transfer.due = transfer.due.filter((due) => due.at_ms > target);
    }
    this.#frozen_ms = mode === "frozen" ? target : null;
    this.#offset_ms = target - this.now_ms;
    this.#purgeBefore(target);
    return did;
  }

  /** The resource that a step is about; undefined when there is none. */
  subjectOf(change: ChangeStep): { id: string } | undefined {
    if (change.do === "use" || change.do === "end") {
      const id = newest(this.instruments, change.target)?.id;
      return id ? { id } : undefined;
    }
    if (change.do === "advance_refund") {
      const id = this.#refundOf(change);
      return id === undefined ? undefined : { id };
    }
    if (change.do === "dispute") return newest(this.payments, change.target)?.dispute;
    if (change.do === "move") return newest(this.payments, change.target);
    if (change.do === "move_transfer") return newest(this.transfers, change.target);
    return undefined;
  }

  /**
   * Returns the expected response to a change that is sent now.
   * @param sent null: no declared fault of requests concerns it
   * @param requested the fault that the header of the request asks for
   */
  judge(
    change: ChangeStep,
    key: number | null,
    sent: SentRequest | null = null,
    requested: string | null = null,
  ): Judgement {
    const idempotency_key = key === null ? null : `key-${key}`;
    const fault = requested ??
      (sent && this.faults.take("request", { ...sent, idempotency_key }));
    const refusal = refusalOf(fault);
    if (refusal) return { ...refusal, fault, replays: null, standing: null, happen: () => {} };
    const judgement = this.#judgeKeyed(change, key);
    if (fault === null) return judgement;
    return {
      ...judgement,
      ...(fault === "server_error_after" &&
        {
          http: 500,
          code: "internal_error",
          hidden_http: judgement.http,
          replays: null,
          is_replay: false,
          standing: null,
        }),
      fault,
    };
  }

  #judgeKeyed(change: ChangeStep, key: number | null): Judgement {
    const request = JSON.stringify([change, this.subjectOf(change)?.id]);
    const stored = key === null ? undefined : this.#stored.get(key);
    if (stored !== undefined && this.time_ms - stored.at_ms < KEY_RETENTION_MS) {
      if (stored.request !== request) {
        const code = "idempotency_conflict";
        return { http: 409, code, replays: null, standing: null, happen: () => {} };
      }
      return {
        http: stored.http,
        code: null,
        replays: stored.text,
        is_replay: true,
        standing: null,
        happen: ({ text }) => void (stored.text ??= text),
      };
    }
    const judgement = this.#judgeNew(change);
    return {
      ...judgement,
      happen: (response) => {
        judgement.happen(response);
        const { http, code } = judgement;
        const is_stored = http < 300 || http === 402 ||
          code === "invalid_state" && change.do !== "use" && change.do !== "end";
        if (key !== null && is_stored) {
          this.#stored.set(key, { request, at_ms: this.time_ms, http, text: response.text });
        }
      },
    };
  }

  purge(): void {
    this.#endIdle(this.time_ms);
    this.#purgeBefore(this.time_ms);
  }

  #purgeBefore(now_ms: number): void {
    const is_young = ({ at_ms }: { at_ms: number }) => at_ms >= now_ms - DATA_RETENTION_MS;
    this.faults.purgeBefore(now_ms - DATA_RETENTION_MS);
    this.instruments = this.instruments.filter(({ touched_ms }) =>
      touched_ms >= this.now_ms - DATA_RETENTION_MS
    );
    const can_come_back = ({ mandate_id, standing, at_ms }: Made<Standing>) =>
      now_ms > this.now_ms && this.#instrumentOf(mandate_id) !== undefined &&
      ["completed", "partially_refunded"].includes(standing.status) &&
      at_ms > monthsBefore(now_ms, 14);
    for (const made of [...this.payments, ...this.transfers]) {
      made.events = made.events.filter(is_young);
    }
    const stays = (made: { at_ms: number; events: unknown[] }) =>
      is_young(made) || made.events.length > 0;
    this.payments = this.payments.filter((one) => stays(one) || can_come_back(one));
    this.transfers = this.transfers.filter(stays);
  }

  reset(): void {
    this.payments = [];
    this.transfers = [];
    this.instruments = [];
    this.available = 0;
    this.#frozen_ms = null;
    this.#offset_ms = 0;
    this.#stored.clear();
    this.faults.clear();
  }

  #judgeNew(change: ChangeStep): Judgement {
    const at_ms = this.time_ms;
    const dated = (types: string[]) => types.map((type) => ({ type, at_ms }));
    switch (change.do) {
      case "create": {
        const { instrument, outcome, amount, is_sandbox, save = null } = change;
        const usual = expectCreate(instrument, outcome, amount, is_sandbox, save);
        if (usual.http === 400) return INVALID;
        const { body, on_due_date } = INSTRUMENTS[instrument]!;
        const mandate = on_due_date === undefined
          ? null
          : body["mandate"] as Partial<typeof MANDATE>;
        const known = this.#instrumentOf(mandate?.id ?? null);
        if (mandate?.id !== undefined) {
          const is_over = known?.payment.standing.saved?.status === "ended" ||
            (known?.idle_ms ?? idleFrom(0)) < at_ms;
          if (is_over || known && save !== null) return INVALID;
        }
        return this.#judgePayment(instrument, usual, is_sandbox, body, (payment) => {
          if (mandate === null && save === null) return;
          payment.mandate_id = mandate && (mandate.id ?? payment.id);
          if (known) return this.#use(known, at_ms);
          if (save === null) {
            payment.standing = { ...payment.standing, saved: mandateOf(instrument) };
          }
          this.instruments.push({
            ...{ id: null, payment, mandate_id: payment.mandate_id, ended_ms: null },
            used_ms: amount > 0 ? at_ms : null,
            idle_ms: mandate && idleFrom(amount > 0 ? at_ms : 0),
            touched_ms: this.now_ms,
          });
        });
      }
      case "use": {
        const instrument = newest(this.instruments, change.target);
        if (instrument === undefined) return INVALID;
        const saved = instrument.payment.standing.saved!;
        const usual = expectUse(saved, change.amount, change.off_session);
        const is_idle = instrument.idle_ms !== null && instrument.idle_ms < at_ms;
        if (usual.http === 400) return INVALID;
        if (usual.http === 409 || is_idle) return NOT_ACTIVE;
        return this.#judgePayment(saved.name, usual, false, {}, (payment) => {
          payment.mandate_id = instrument.mandate_id;
          this.#use(instrument, at_ms);
        });
      }
      case "end": {
        const instrument = newest(this.instruments, change.target);
        if (instrument === undefined) return NOT_FOUND;
        const { http, code, shows = null } = expectEnd(instrument.payment.standing);
        const happen = () => this.#end(instrument, "deleted", at_ms);
        return { http, code, replays: null, standing: shows, happen };
      }
      case "move": {
        const payment = newest(this.payments, change.target);
        return payment === undefined ? NOT_FOUND : this.#judgeMove(payment, change.move);
      }
      case "dispute": {
        const { target, move } = change;
        const payment = newest(this.payments, target);
        if (payment?.dispute === undefined) return NOT_FOUND;
        const is_late = at_ms > payment.dispute.at_ms + EVIDENCE_MS;
        return this.#judgeMove(payment, move.do === "evidence" ? { ...move, is_late } : move);
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
        const usual = expectTransfer(destination, is_manual, amount);
        const requested = { operation: "transfer", method_kind: RAILS[destination] };
        const fault = this.faults.take("provider", requested);
        const { http, code, next, events } = fault === null
          ? usual
          : expectFaultyTransfer(amount, fault);
        const happen = ({ id }: { id: string }) => {
          const transfer = madeNow(id, at_ms, next, dated(events));
          this.transfers.push(transfer);
          this.available -= takenBy(next);
          if (fault === "timeout") {
            transfer.due.push({
              at_ms: at_ms + TIMEOUT_MS,
              waits: () => transfer.standing.status === "pending",
              move: { do: "advance", to: usual.next.status === "failed" ? "failed" : "completed" },
            });
          }
        };
        return { http, code, fault, replays: null, standing: next, happen };
      }
      case "move_transfer": {
        const transfer = newest(this.transfers, change.target);
        if (transfer === undefined) return NOT_FOUND;
        const { http, code, next } = expectTransferMove(transfer.standing, change.move);
        const happen = () => this.#moveTransfer(transfer, change.move, at_ms);
        return { http, code, replays: null, standing: next, happen };
      }
    }
  }

  /**
   * The expected response to a create that is not refused. @param usual without a declared fault
   * @param keep notes what it does with an instrument
   */
  #judgePayment(
    name: string,
    usual: Expected<Standing>,
    is_sandbox: boolean,
    body: Record<string, unknown>,
    keep: (payment: Made<Standing>) => void,
  ): Judgement {
    const at_ms = this.time_ms;
    const { kind, on_due_date, ends, returned_later } = INSTRUMENTS[name]!;
    const fault = this.faults.take("provider", { operation: "authorize", method_kind: kind });
    const { http, code, next, events } = fault === null
      ? usual
      : expectFaultyCreate(usual, fault, is_sandbox);
    const happen = ({ id }: { id: string }) => {
      const payment = madeNow(id, at_ms, next, events.map((type) => ({ type, at_ms })));
      this.payments.push(payment);
      keep(payment);
      schedule(payment, { status: "", dispute: null }, at_ms);
      this.available += availableOf(next);
      if (next.status !== "processing" || body["settlement"] === "manual") return;
      const waits = () => payment.standing.status === "processing";
      if (on_due_date === undefined || next.amount === 0) {
        payment.due.push({
          at_ms: at_ms + (fault === null ? LATE_MS : TIMEOUT_MS),
          waits,
          move: { do: "advance", to: laterStatus(usual.next) },
        });
        return;
      }
      payment.due.push({
        at_ms: dueDate(at_ms),
        waits,
        move: { do: "advance", to: on_due_date },
        then: (at_ms) => {
          const instrument = this.#instrumentOf(payment.mandate_id);
          if (ends !== undefined && instrument) this.#end(instrument, ends, at_ms);
          if (returned_later) payment.due.push(returnOf(at_ms));
        },
      });
    };
    return { http, code, fault, replays: null, standing: next, happen };
  }

  /** The instrument of a mandate. One whose payment has failed has left it free. */
  #instrumentOf(mandate_id: string | null): MadeInstrument | undefined {
    return this.instruments.find((one) =>
      mandate_id !== null && one.mandate_id === mandate_id &&
      one.payment.standing.saved!.status !== "failed"
    );
  }

  #use(instrument: MadeInstrument, at_ms: number): void {
    const { used_ms, idle_ms, mandate_id } = instrument;
    instrument.used_ms = Math.max(used_ms ?? 0, at_ms);
    if (mandate_id !== null) instrument.idle_ms = Math.max(idle_ms ?? 0, idleFrom(at_ms));
    instrument.touched_ms = this.now_ms;
  }

  #end(instrument: MadeInstrument, reason: string, at_ms: number): void {
    const { payment } = instrument;
    const saved = endSaved(payment.standing.saved!, reason);
    if (saved === payment.standing.saved) return;
    payment.standing = { ...payment.standing, saved };
    const touched_ms = this.now_ms;
    Object.assign(instrument, { ended_ms: at_ms, idle_ms: null, touched_ms });
  }

  /** Ends the mandates that are idle at a time. One whose payment has no result stays. */
  #endIdle(at_ms: number): void {
    for (const instrument of this.instruments) {
      const { idle_ms } = instrument;
      if (idle_ms === null || idle_ms > at_ms) continue;
      this.#end(instrument, "idle", idle_ms);
      instrument.idle_ms = null;
    }
  }

  #judgeMove(payment: Made<Standing>, move: Move): Judgement {
    const usual = expectMove(payment.standing, move);
    const fault = this.#faultOf(payment.standing, move, usual.http);
    const { http, code, next } = fault === null
      ? usual
      : expectFaultyMove(payment.standing, usual, fault);
    const happen = ({ id }: { id: string }) => {
      const at_ms = this.time_ms;
      this.#apply(payment, move, at_ms, id, fault);
      if (fault === "timeout") payment.due.push(laterMove(payment, move, at_ms, id));
    };
    return { http, code, fault, replays: null, standing: next, happen };
  }

  /** Counts the fault of a move that asks the provider and would not be refused. */
  #faultOf({ status, kind }: Standing, { do: operation }: Move, http: number): string | null {
    const asks = operation === "refund" || operation === "capture" ||
      operation === "cancel" && HELD.includes(status);
    return asks && http < 300
      ? this.faults.take("provider", { operation, method_kind: kind })
      : null;
  }

  /** Moves a payment at a time. `id`: of the response, for a new refund. */
  #apply(
    payment: Made<Standing>,
    move: Move,
    at_ms: number,
    id = "",
    fault: string | null = null,
  ): void {
    const { standing } = payment;
    const usual = expectMove(standing, move);
    const { http, next, events } = fault === null
      ? usual
      : expectFaultyMove(standing, usual, fault);
    this.available += availableOf(next) - availableOf(standing);
    payment.standing = move.do === "refund" && http === 201 ? nameNewestRefund(next, id) : next;
    payment.events.push(...events.map((type) => ({ type, at_ms })));
    if (events.length > 0) payment.changed_ms = at_ms;
    if (payment.standing.saved?.status !== standing.saved?.status) {
      const instrument = this.instruments.find((one) => one.payment === payment)!;
      instrument.touched_ms = this.now_ms;
      if (payment.standing.saved!.status === "failed") instrument.idle_ms = null;
    }
    schedule(payment, standing, at_ms);
  }

  #moveTransfer(
    transfer: Made<TransferStanding>,
    move: { do: "cancel" } | { do: "advance"; to: string },
    at_ms: number,
  ): void {
    const { next, events } = expectTransferMove(transfer.standing, move);
    this.available += takenBy(transfer.standing) - takenBy(next);
    transfer.standing = next;
    transfer.events.push(...events.map((type) => ({ type, at_ms })));
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

const INVALID: Judgement = { ...NOT_FOUND, http: 400, code: "invalid_parameter" };
const NOT_ACTIVE: Judgement = { ...NOT_FOUND, http: 409, code: "invalid_state" };

/** The instrument of a mandate whose IBAN comes with each payment. */
function mandateOf(name: string): Saved {
  const taken = { status: "completed", kind: "sepa" };
  return { ...newSaved(name, "off_session", taken), is_kept: false };
}

/** When a mandate ends that was last used at a time. */
function idleFrom(used_ms: number): number {
  return monthsBefore(Math.max(used_ms, Date.parse(MANDATE.signed_at)), -36);
}

/** The return of a collection that has completed. */
function returnOf(at_ms: number): Due {
  return { at_ms: at_ms + RETURN_MS, waits: () => true, move: { do: "return" } };
}

function newest<T>(made: T[], target: number): T | undefined {
  return made[made.length - 1 - target];
}

/** The amount that a transfer takes from the available balance. */
function takenBy({ status, amount }: TransferStanding): number {
  return status === "pending" || status === "completed" ? amount : 0;
}
