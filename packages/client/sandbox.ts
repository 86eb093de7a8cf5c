/**
 * The sandbox function, which puts payments into any state (contract §7). It takes test keys only.
 */

import { checkedObject } from "./checked_object.ts";
import { ApiError } from "./errors.ts";
import { type List, listOf } from "./list.ts";
import { type ReadOptions, type RequestOptions, timeoutOfWait } from "./request_options.ts";
import { Resource } from "./resource.ts";
import type {
  AdvanceInput,
  AdvanceRefundInput,
  AdvanceTransferInput,
  AuthenticateInput,
  Changes,
  Clock,
  ClockAdvance,
  CreateFaultInput,
  CreatePaymentInput,
  DeletedFault,
  Due,
  DueParams,
  Fault,
  ListParams,
  ListRequestsParams,
  LoggedRequest,
  PaidCheckout,
  PayCheckoutInput,
  Payment,
  Refund,
  ResetSandboxInput,
  SandboxReset,
  SetClockInput,
  Transfer,
  TriggerInput,
  WebhookDelivery,
} from "./resources.ts";

const SANDBOX = "/api-v1-sandbox";
const FAULTS = `${SANDBOX}/faults`;

/** `GET /changes` of the sandbox function */
export interface ReadChangesParams {
  /** `next_cursor` of an earlier read. Without it, the response comes at once. */
  after?: string | undefined;
  /** Seconds to wait for a change, 0 to 20. By default 0. */
  wait?: number | undefined;
}

/** Operations of the sandbox. A failed one throws a `PaymentsError`. */
export class Sandbox extends Resource {
  /**
   * Creates a payment, in a chosen state with `outcome`. A declined payment is returned like any
   * other; `payments.create` throws an error for it.
   */
  createPayment(input: CreatePaymentInput, options?: RequestOptions): Promise<Payment> {
    return this.transport.post([`${SANDBOX}/payments`], input, options);
  }

  /** Moves a payment to another status. If that cannot follow: 409 `invalid_state`. */
  advance(id: string, input: AdvanceInput, options?: RequestOptions): Promise<Payment> {
    return this.transport.post([`${SANDBOX}/payments`, id, "advance"], input, options);
  }

  /**
   * Ends 3-D Secure with a result of the payer's bank. With `success` the payment is `completed`,
   * or `authorized` if its capture is manual. With `failure` it is declined and the call throws an
   * `ApiError` with status 402 and code `authentication_failed`.
   */
  authenticate(
    id: string,
    input: AuthenticateInput = {},
    options?: RequestOptions,
  ): Promise<Payment> {
    return this.transport.post([`${SANDBOX}/payments`, id, "authenticate"], input, options);
  }

  /**
   * Pays a checkout as its payer does. A declined payment is returned like any other. If the
   * checkout takes no attempt: 409 `invalid_state`.
   */
  payCheckout(
    id: string,
    input: PayCheckoutInput,
    options?: RequestOptions,
  ): Promise<PaidCheckout> {
    return this.transport.post([`${SANDBOX}/checkouts`, id, "pay"], input, options);
  }

  /** Completes a pending refund, or makes it fail. */
  advanceRefund(id: string, input: AdvanceRefundInput, options?: RequestOptions): Promise<Refund> {
    return this.transport.post([`${SANDBOX}/refunds`, id, "advance"], input, options);
  }

  /** Moves a pending transfer to another status. */
  advanceTransfer(
    id: string,
    input: AdvanceTransferInput,
    options?: RequestOptions,
  ): Promise<Transfer> {
    return this.transport.post([`${SANDBOX}/transfers`, id, "advance"], input, options);
  }

  /**
   * Sends an event to an endpoint, once and before it returns. If the receiver fails, the attempt
   * of the returned delivery shows that.
   */
  trigger(input: TriggerInput, options?: RequestOptions): Promise<WebhookDelivery> {
    return this.transport.post([`${SANDBOX}/webhooks/trigger`], input, options);
  }

  /** Lists the requests that the sandbox has handled, newest first: the last 1 000. */
  listRequests(params?: ListRequestsParams, options?: ReadOptions): List<LoggedRequest> {
    return listOf(this.transport, [`${SANDBOX}/requests`], params, options);
  }

  /** Retrieves a request of the log with its bodies. */
  retrieveRequest(id: string, options?: ReadOptions): Promise<LoggedRequest> {
    return this.transport.get([`${SANDBOX}/requests`, id], options);
  }

  /**
   * Returns the run of a seeded sandbox so far: a line of JSON for each request and its response.
   * Without a seed: 409 `invalid_state`.
   */
  transcript(options?: ReadOptions): Promise<string> {
    const path = [`${SANDBOX}/transcript`];
    return this.transport.send({ method: "GET", path, isText: true }, options);
  }

  /**
   * Tells whether anything in the sandbox has changed after a cursor, and can wait for that. For
   * pages that show a sandbox: read again when `changed` is true.
   */
  changes(params: ReadChangesParams = {}, options: ReadOptions = {}): Promise<Changes> {
    const query = checkedObject("params", params);
    return this.transport.send({ method: "GET", path: [`${SANDBOX}/changes`], query }, {
      ...options,
      timeoutMs: options.timeoutMs ?? timeoutOfWait(query.wait),
    });
  }

  /** Retrieves the clock of the sandbox. */
  clock(options?: ReadOptions): Promise<Clock> {
    return this.transport.get([`${SANDBOX}/clock`], options);
  }

  /** Lists what the clock brings next: the number and the first time of each kind. */
  due(params?: DueParams, options?: ReadOptions): Promise<Due> {
    const path = [`${SANDBOX}/clock/due`];
    return this.transport.send({ method: "GET", path, query: params }, options);
  }

  /**
   * Sets, freezes or advances the clock, and does what becomes due. A long advance takes several
   * requests. The method sends all of them, so `has_more` is false. If other requests advance the
   * clock too, its time is that of their targets.
   */
  async setClock(input: SetClockInput, options?: RequestOptions): Promise<ClockAdvance> {
    const path = [`${SANDBOX}/clock`];
    const send = (body: SetClockInput, options?: RequestOptions): Promise<ClockAdvance> =>
      this.transport.send({ method: "POST", path, body }, options);
    const { idempotencyKey: _, ...others } = options ?? {};
    let clock = await send(input, options);
    while (clock.has_more) {
      try {
        clock = await send({ to: clock.target! }, others);
      } catch (error) {
        if (!(error instanceof ApiError && error.param === "to")) throw error;
        // Other requests have moved the clock past the target, so the advance is complete.
        return { ...clock, ...await this.clock(others), target: null, has_more: false };
      }
    }
    return clock;
  }

  /** Declares a fault: the next matching targets fail in this way. */
  createFault(input: CreateFaultInput, options?: RequestOptions): Promise<Fault> {
    return this.transport.post([FAULTS], input, options);
  }

  /** Lists declared faults, newest first. */
  listFaults(params?: ListParams, options?: ReadOptions): List<Fault> {
    return listOf(this.transport, [FAULTS], params, options);
  }

  /** Retrieves a declared fault. `left` tells how often it will still happen. */
  retrieveFault(id: string, options?: ReadOptions): Promise<Fault> {
    return this.transport.get([FAULTS, id], options);
  }

  /** Deletes a declared fault: it does not happen any more. */
  deleteFault(id: string, options?: RequestOptions): Promise<DeletedFault> {
    return this.transport.delete([FAULTS, id], options);
  }

  /**
   * Deletes all payments and transfers with their data and the declared faults, and makes the clock
   * the real one again. API keys stay, and webhook endpoints unless the input says otherwise.
   */
  reset(input: ResetSandboxInput = {}, options?: RequestOptions): Promise<SandboxReset> {
    return this.transport.post([`${SANDBOX}/reset`], input, options);
  }
}
