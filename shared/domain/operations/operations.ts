/**
 * The one way of every operation that a provider takes part in (architecture §2): begin, operation,
 * reply, provider events, change, commit. A provider that replies at once, as that of the sandbox
 * does, replies before the commit, and one statement writes everything. For any other the operation
 * is reserved, sent and recorded: nothing is sent before its reservation is committed, and no
 * database connection is held while the provider works.
 */

import { ApiError } from "../../core/errors.ts";
import type { Sealed, Vault } from "../../core/vault.ts";
import { span } from "../../core/tracing.ts";
import type { Payment } from "../../schema/payment.ts";
import type { Transfer } from "../../schema/transfer.ts";
import type { Change, StoredResponse } from "../../store/commit_rows.ts";
import { requestInProgress } from "../../store/database.ts";
import type { Store } from "../../store/store.ts";
import { isPayment } from "./apply_event.ts";
import type { ResourceChange } from "../changes/change_builder.ts";
import type { ChangeWriter } from "../changes/change_writer.ts";
import {
  type Reply,
  type SandboxFault,
  type ServiceRequest,
  withoutRateCount,
} from "../changes/service_request.ts";
import { OPERATION_DEADLINE_MS, type OperationRunner } from "./operation_runner.ts";
import { decideAtOnce } from "./decide_result.ts";
import type { ProviderReply } from "../providers/connector.ts";
import { noBankKeys, sealContextOf } from "../providers/sealed_details.ts";
import { type Begun, eventOf, type Operation, rowOf } from "../providers/operation.ts";
import { collectionOf, mandateKey } from "../payments/collection.ts";
import type { StoredDispute } from "../payments/dispute_payment.ts";
import { withDispute } from "./load_dispute.ts";

/** Time for which a request has its operation to itself: the deadline, and time to record. */
const LEASE_MS = OPERATION_DEADLINE_MS + 7_000;
/** The response under the idempotency key while the operation is under way. */
const UNDER_WAY: StoredResponse = { status: 102, body: "" };

export interface ReplyAtOnce {
  reply: ProviderReply;
  /** The declared fault that has decided the reply, which the commit counts. */
  fault?: SandboxFault & { id: string };
}

export interface ProviderAtOnce {
  reply(begun: Begun, request: ServiceRequest): ReplyAtOnce | Promise<ReplyAtOnce>;
}

/** The last decision of a request. Others can change the resource, so there can be several. */
interface Decided {
  operation?: Operation;
  fault?: ReplyAtOnce["fault"];
}

/** Begins operations, and reserves them or decides them at once. */
export class Operations {
  readonly #store: Store;
  readonly #changes: ChangeWriter;
  readonly #runner: Pick<OperationRunner, "run">;
  readonly #at_once: ProviderAtOnce;
  readonly #vault: Vault | null;

  /**
   * @param options.at_once the provider of the sandboxes
   * @param options.vault seals bank details; null: orders that need them are refused
   */
  constructor(
    options: {
      store: Store;
      changes: ChangeWriter;
      runner: Pick<OperationRunner, "run">;
      at_once: ProviderAtOnce;
      vault: Vault | null;
    },
  ) {
    this.#store = options.store;
    this.#changes = options.changes;
    this.#runner = options.runner;
    this.#at_once = options.at_once;
    this.#vault = options.vault;
  }

  /** Creates a payment or transfer, whose operation begins with it. */
  create(request: ServiceRequest, begin: () => Begun | Promise<Begun>): Promise<Reply> {
    return this.#run(request, async (requested) => {
      const decided: Decided = {};
      const reply = await this.#changes.create(
        requested,
        async () => this.#decide(requested, await begin(), decided),
      );
      return await this.#finish(requested, reply, decided);
    });
  }

  change<T extends Payment | Transfer>(
    request: ServiceRequest,
    kind: "payments" | "transfers",
    id: string,
    begin: (subject: T) => Begun | Promise<Begun>,
  ): Promise<Reply> {
    return this.#run(request, async (requested) => {
      const decided: Decided = {};
      const reply = await this.#changes.change<T>(
        requested,
        kind,
        id,
        async (subject) => this.#decide(requested, await begin(subject), decided),
      );
      return await this.#finish(requested, reply, decided);
    });
  }

  /** Changes a dispute by an operation. `id` is that of the dispute. */
  changeDispute(
    request: ServiceRequest,
    id: string,
    begin: (payment: Payment, stored: StoredDispute) => Begun,
  ): Promise<Reply> {
    return withDispute(
      this.#store,
      request,
      id,
      (requested, payment_id, present) =>
        this.change<Payment>(
          requested,
          "payments",
          payment_id,
          async (payment) => begin(payment, await present()),
        ),
    );
  }

  #run(
    request: ServiceRequest,
    run: (request: ServiceRequest) => Promise<Reply>,
  ): Promise<Reply> {
    return request.context.livemode ? afterDuplicate(request, run) : run(request);
  }

  #decide(request: ServiceRequest, begun: Begun, decided: Decided): Change | Promise<Change> {
    decided.operation = begun.operation;
    if (begun.is_internal) return cancelled(begun);
    if (request.context.livemode) return reserve(begun, this.#vault);
    const change = (replied: ReplyAtOnce) => {
      decided.fault = replied.fault;
      return changeAtOnce(begun, replied);
    };
    const replied = span("provider", () => this.#at_once.reply(begun, request), {
      attributes: { "payments.connector": "sandbox", "payments.operation": begun.operation.op },
    });
    return replied instanceof Promise ? replied.then(change) : change(replied);
  }

  /** Sends the operation that a commit has reserved, if there is one. */
  async #finish(
    { idempotency }: ServiceRequest,
    reply: Reply,
    { operation, fault }: Decided,
  ): Promise<Reply> {
    // A sandbox has operations that the worker sends later, and no others.
    if (!operation?.subject.livemode) {
      return reply.fault_id !== undefined && fault ? { ...reply, fault } : reply;
    }
    if (!reply.operation) return reply;
    const { account, ...row } = reply.operation;
    const response = await this.#runner.run(account, {
      ...operation,
      ...row,
      environment_id: account.environment_id,
      attempts: 1,
    });
    // Its duplicates get the stored one, and so does this request.
    if (response.is_late && idempotency !== null) throw requestInProgress();
    return { response, replayed: false };
  }
}

export function changeAtOnce(
  { change, operation }: Begun,
  { reply, fault }: ReplyAtOnce,
): Change {
  const [first] = "provider_events" in reply ? reply.provider_events : [];
  // The place to which the payer sends the money is a part of the new payment, if known at once.
  const place = first?.state === "pending" ? first.next_action : undefined;
  addCreated(change, place && { amount_received: 0, next_action: place });
  if (place && first?.later) change.addOperation(first.later);
  const decided = decideAtOnce(change, { ...operation, subject: change.subject }, reply);
  return fault ? { ...decided, fault_id: fault.id } : decided;
}

export function cancelled({ change, operation }: Begun): Change {
  return decideAtOnce(change, operation, { provider_events: [eventOf(operation, "cancelled")] });
}

/** Makes the change that reserves an operation. Its bank details are sealed for each owner. */
async function reserve(begun: Begun, vault: Vault | null): Promise<Change> {
  const { change, operation, is_bank_order } = begun;
  const { details, refund_id, subject_id } = operation;
  if (!details) return reserved(begun, is_bank_order ? {} : null);
  if (vault === null) throw noBankKeys();
  const text = JSON.stringify(details);
  const seal = (id: string) => vault.seal(text, sealContextOf(id));
  if (isPayment(change) && operation.op === "authorize") {
    const { mandate } = collectionOf(change.subject);
    const { saved_id } = change;
    change.bindDetails(
      mandate ? vault.fingerprints(details.iban, mandateKey(mandate.id)) : [],
      saved_id === null ? null : await seal(saved_id),
    );
  }
  return reserved(begun, is_bank_order ? await seal(refund_id ?? subject_id) : null);
}

/** @param bank_order the sealed details of an order to a bank, if it has some; null: it is none */
function reserved({ change, operation }: Begun, bank_order: Partial<Sealed> | null): Change {
  addCreated(change);
  operation.subject = change.subject;
  change.addOperation({
    ...rowOf(operation),
    lease_ms: LEASE_MS,
    ...(bank_order && { bank_order }),
  });
  return change.finish(UNDER_WAY);
}

function addCreated(change: ResourceChange, place?: Partial<Payment>): void {
  if (change.subject.sequence > 0) return;
  if (isPayment(change)) change.addEvent("payment.created", place);
  else change.addEvent("transfer.created");
}

/**
 * Runs a request. A concurrent duplicate waits for the response of the first request, without a
 * database connection. Throws `idempotency_in_progress` when the retries are used up.
 */
async function afterDuplicate(
  request: ServiceRequest,
  run: (request: ServiceRequest) => Promise<Reply>,
): Promise<Reply> {
  const began_ms = performance.now();
  const counted = { ...request, access: withoutRateCount(request.access) };
  for (let requested = request;; requested = counted) {
    try {
      return await run(requested);
    } catch (error) {
      const is_duplicate = error instanceof ApiError && error.code === "idempotency_in_progress";
      if (!is_duplicate) throw error;
      await request.access.retries.again(() => error, began_ms);
    }
  }
}
