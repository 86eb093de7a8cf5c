/** Applies provider events, and returns their effects with the rows of the change. */

import {
  applyEvent,
  endWait as endWaitOf,
  isPayment,
  NO_PARTS,
} from "../../../shared/domain/operations/apply_event.ts";
import { applyToPayment } from "../../../shared/domain/payments/apply_to_payment.ts";
import {
  bookedAtProvider,
  type Effect as Outcome,
  type Expected,
  type Parts,
} from "../../../shared/domain/providers/effect.ts";
import { applyUnmatched as unmatched } from "../../../shared/domain/providers/unmatched.ts";
import {
  ChangeBuilder,
  type ResourceChange,
} from "../../../shared/domain/changes/change_builder.ts";
import type { EventContext } from "../../../shared/domain/changes/event.ts";
import { rowsOf } from "../../../shared/domain/operations/event_record.ts";
import type {
  Operation,
  ProviderEvent,
  ProviderEventOp,
  ProviderEventState,
  StoredProviderEvent,
} from "../../../shared/domain/providers/connector.ts";
import type { Payment } from "../../../shared/schema/payment.ts";
import type { Transfer } from "../../../shared/schema/transfer.ts";
import type { MovementRow } from "../../../shared/store/commit_rows.ts";
import type { ProviderRecord } from "../../../shared/store/provider_rows.ts";
import { FIRST_ATTEMPT } from "../connectors/stripe_case.ts";
import { NOW, paymentWith, requestContext } from "./decided_change.ts";

/** The rows of a record, and the resource as of them. */
type Rows = NonNullable<ProviderRecord["change"]> & {
  subject: Payment | Transfer | null;
  refund_body: string | null;
  booked_minor: number;
};

/** An effect with its rows. */
export type Effect =
  | { outcome: "applied"; exception: string | null; change: Rows }
  | { outcome: "ignored"; expects?: Rows["expects"] }
  | { outcome: "wait" }
  | { outcome: "exception"; exception: string }
  | { outcome: "unmatched"; exception: string | null; change: Rows | null };

/** Makes a live provider event about the payment of `paymentWith`, by default about all of it. */
export function providerEvent(
  op: ProviderEventOp,
  state: ProviderEventState,
  members: Partial<ProviderEvent> = {},
): ProviderEvent {
  return {
    account_id: "pac_1",
    reference: `${op}:${state}`,
    object_id: op,
    op,
    state,
    subject_id: paymentWith({}).id,
    refund_id: null,
    provider_reference: "pi_1",
    amount_minor: 1000,
    currency: "EUR",
    at: NOW,
    livemode: true,
    ...members,
  };
}

/**
 * Applies a provider event to a payment, without what an earlier booking for the account adds.
 * @param parts by default none
 */
export function applyProviderEvent(
  payment: Payment,
  event: ProviderEvent,
  parts: Partial<Parts> = {},
  context: EventContext = requestContext(event.livemode),
): Effect {
  const change = new ChangeBuilder(payment, context);
  return shown(change, applyToPayment(change, { ...NO_PARTS, ...parts }, event), {});
}

/** Applies a provider event to a payment or transfer, as `applyEvent` does. */
export function applyToSubject(
  { subject, ...parts }: Parts & { subject: Payment | Transfer },
  event: ProviderEvent,
  booked_minor: number,
  context: EventContext,
): Effect {
  const change = new ChangeBuilder(subject, context) as ResourceChange;
  const { effect, expected } = applyEvent(change, parts, event, booked_minor);
  return shown(change, effect, expected);
}

/** Ends the wait of a provider event of a payment. */
export function endWait(
  payment: Payment,
  event: StoredProviderEvent,
  context: EventContext,
): Effect["outcome"] {
  const waiting = { effect: { outcome: "wait" } as const, booked_minor: 0, expected: {} };
  return endWaitOf(new ChangeBuilder(payment, context), waiting, event).effect.outcome;
}

/** Books a provider event that matches no payment. */
export function applyUnmatched(event: StoredProviderEvent, context: EventContext): Effect {
  const effect = unmatched(event, context);
  if (effect.outcome !== "unmatched") throw new Error(`${effect.outcome} is no booking`);
  return { ...effect, change: accountRows(effect.movement) };
}

function shown(change: ResourceChange, effect: Outcome, expected: Expected): Effect {
  switch (effect.outcome) {
    case "applied": {
      const rows = rowsOf(change, [], expected)!;
      return {
        outcome: "applied",
        exception: effect.exception,
        change: {
          ...rows,
          subject: change.subject,
          refund_body: isPayment(change) ? change.refund_body : null,
          booked_minor: bookedAtProvider(rows.ledger),
        },
      };
    }
    case "ignored": {
      const expects = rowsOf(change, [], expected)?.expects;
      return { outcome: "ignored", ...(expects && { expects }) };
    }
    case "unmatched":
      return { ...effect, change: accountRows(effect.movement) };
    default:
      return effect;
  }
}

function accountRows(movement: MovementRow | null): Rows | null {
  if (movement === null) return null;
  return {
    expects: null,
    payment: null,
    transfer: null,
    refunds: [],
    disputes: [],
    ledger: [movement],
    events: [],
    operations: [],
    subject: null,
    refund_body: null,
    booked_minor: bookedAtProvider([movement]),
  };
}

/**
 * Handles provider events as the worker does: those that wait again after others. Returns those
 * that wait for ever.
 */
export function handleAll(
  events: readonly ProviderEvent[],
  handle: (event: ProviderEvent) => Effect["outcome"],
): ProviderEvent[] {
  let open = [...events];
  for (let moved = true; moved;) {
    const waiting = open.filter((event) => handle(event) === "wait");
    moved = waiting.length < open.length;
    open = waiting;
  }
  return open;
}

/** Adds movements to the sums of the accounts, under these names. */
export function book(
  sums: Record<string, number>,
  movements: readonly MovementRow[],
  nameOf: (account: string, movement: MovementRow) => string = (account) => account,
): void {
  for (const movement of movements) {
    const { debit_account, credit_account, amount_minor } = movement;
    for (const [account, sign] of [[debit_account, -1], [credit_account, 1]] as const) {
      const name = nameOf(account, movement);
      sums[name] = (sums[name] ?? 0) + sign * amount_minor;
    }
  }
}

/** Returns the first attempt of an operation on a payment or transfer, with these members. */
export function operationFor(
  op: Operation["op"],
  subject: Operation["subject"],
  members: Partial<Operation> = {},
): Operation {
  return {
    id: `pc_${"1".repeat(26)}`,
    environment_id: `env_${"1".repeat(26)}`,
    op,
    subject_id: subject.id,
    subject,
    refund_id: null,
    refund: null,
    dispute: null,
    amount_minor: subject.amount_minor,
    currency: subject.currency,
    request: { token: null },
    provider_reference: "pi_1",
    ...FIRST_ATTEMPT,
    ...members,
  };
}
