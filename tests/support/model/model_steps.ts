/** The steps of a workload on one sandbox, and what its model keeps of them. */

import type { DisputeMove, Move, Standing } from "./payment_model.ts";
import type { Saved } from "./saved_model.ts";
import type { TransferStanding } from "./transfer_model.ts";
import type { FaultDeclaration } from "./declared_faults.ts";

/** A request that changes something. `target` counts back from the newest resource, which is 0. */
export type ChangeStep =
  | {
    do: "create";
    instrument: string;
    outcome: string | null;
    amount: number;
    is_sandbox: boolean;
    /** The usage of the instrument that it saves; absent: it saves none. */
    save?: string | null;
  }
  /** A payment by an instrument. `target` counts back from the newest instrument. */
  | { do: "use"; target: number; amount: number; off_session: boolean }
  | { do: "end"; target: number }
  | {
    do: "move";
    target: number;
    move: Exclude<Move, { do: "advance_refund" | "return" } | DisputeMove>;
  }
  /** About the newest dispute of the payment. */
  | { do: "dispute"; target: number; move: DisputeMove }
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
  /**
   * `key`: number of an idempotency key, which several steps can share; null for none.
   * `fault`: the fault that the header of the request asks for.
   */
  | { do: "send"; change: ChangeStep; key: number | null; fault?: string | null }
  | { do: "declare"; fault: FaultDeclaration }
  | { do: "pass"; ms: number }
  /** Advances the clock of the sandbox, `times` times at once; then it runs or stands. */
  | { do: "clock"; advance_s: number; mode: "real" | "frozen"; times?: number }
  | { do: "look" }
  | { do: "purge" }
  | { do: "reset" };

/** A payment or transfer of the sandbox. */
export interface Made<T> {
  id: string;
  /** The newest dispute of a payment. The model does not know its id before it is read. */
  dispute?: { id: string; at_ms: number };
  at_ms: number;
  /** The time of its last event. */
  changed_ms: number;
  standing: T;
  /** Its events, with their times. */
  events: { type: string; at_ms: number }[];
  /** The changes that no request makes. */
  due: Due[];
  /** Number of its disputes. */
  disputes: number;
  /** The mandate under which it is collected; null: it has none. */
  mandate_id: string | null;
}

/** An instrument. It is what its payment has saved, also when that is deleted. */
export interface MadeInstrument {
  /** Null until a list shows it. */
  id: string | null;
  payment: Made<Standing>;
  /** Another value for each mandate; null for a card. */
  mandate_id: string | null;
  used_ms: number | null;
  /** When its mandate ends if it is not used before; null: it does not end so. */
  idle_ms: number | null;
  /** The real time of its last change. */
  touched_ms: number;
  ended_ms: number | null;
}

/** A change that happens by itself, if the payment or transfer then still waits for it. */
export interface Due {
  at_ms: number;
  waits(): boolean;
  move: Move;
  /** Changes the rest of the model after the move. */
  then?(at_ms: number): void;
  /** The number of an advance that counts it. */
  did?: "expired_payments" | "disputes_closed";
}

/** A request as the conditions of faults see it. */
export interface SentRequest {
  method: string;
  /** With the name of the function, and with `{id}` in place of an id. */
  path: string;
}

/** The expected response to a change. `happen` updates the model with the actual response. */
export interface Judgement {
  http: number;
  code: string | null;
  /** The text of the stored response if the step is a replay that shows it, else null. */
  replays: string | null;
  /** True: the response is a replay. */
  is_replay?: boolean;
  /** The fault that the response names. */
  fault?: string | null;
  /** The status that a fault hides: the request is processed, but its response is an error. */
  hidden_http?: number;
  /** The state of the payment, transfer or instrument afterwards. */
  standing: Standing | TransferStanding | Saved | null;
  /** `text`: null if a fault has hidden it. */
  happen(response: { id: string; text: string | null }): void;
}
