/**
 * What can go wrong with a request, as classes: the API said no (`ApiError`), something that is not
 * the API answered (`UnexpectedResponseError`), nothing answered (`ConnectionError`), or not in time
 * (`TimeoutError`). All are a `PaymentsError`. An aborted signal rejects with its own reason, as
 * `fetch` does; wrong arguments are a `TypeError`. Source: contract §6.
 */

import type { Payment } from "./payment.ts";
import type { DeclineCode, ErrorCode, ErrorType } from "./vocabulary.ts";

/** `error` of an error's body, as on the wire. */
export interface ErrorBody {
  type: ErrorType;
  code: ErrorCode;
  message: string;
  /** The field at fault, as a path: `card.number`. */
  param?: string;
  request_id: string;
  /** Where the code is explained, relative to the project's repository. */
  doc_url: string;
  /** With a `DeclineCode`: the stored payment. */
  payment?: Payment;
  /** With `invalid_state`: the status that does not allow it. */
  current_status?: string;
  /** With `invalid_state`: the statuses that can follow. */
  allowed?: string[];
  /** With a refund of too much: minor units that are left. */
  amount_refundable?: number;
  /** With `permission_denied`: the scope that the key lacks. */
  required_scope?: string;
}

/** Facts about the request that failed. */
export interface FailedRequest {
  /** For example `POST /api-v1-payments/v1/payments`. */
  operation: string;
  /** What the request was sent with, null for a read. Call again with it to ask for the result. */
  idempotencyKey: string | null;
  /** How often it was sent, the first time included. */
  attempts: number;
}

/** A request that did not give a result. */
export class PaymentsError extends Error {
  override readonly name: string = "PaymentsError";
  /** For example `POST /api-v1-payments/v1/payments`. */
  readonly operation: string;
  /**
   * The key that the request was sent with, null for a read. After a `ConnectionError`, a
   * `TimeoutError` or a status of 500 and more it is not known whether the request had an effect:
   * the same call with this key tells, and does nothing twice, for 24 hours.
   */
  readonly idempotencyKey: string | null;
  /** How often the request was sent, the first time included. */
  readonly attempts: number;

  constructor(message: string, request: FailedRequest, options?: { cause?: unknown }) {
    super(message, options);
    this.operation = request.operation;
    this.idempotencyKey = request.idempotencyKey;
    this.attempts = request.attempts;
  }
}

/** An error of the API. `is` tells it by its code. */
export class ApiError extends PaymentsError {
  override readonly name = "ApiError";
  /** HTTP status. */
  readonly status: number;
  readonly code: ErrorCode;
  readonly type: ErrorType;
  /** The field at fault, as a path: `card.number`. */
  readonly param: string | undefined;
  /** What the service's operator finds the request by. */
  readonly requestId: string;
  /** Where the code is explained, relative to the project's repository. */
  readonly docUrl: string;
  /** `error` of the body, with all its members. */
  readonly body: ErrorBody;
  /** How long the service asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    answer: { status: number; body: ErrorBody; retryAfterMs?: number | undefined },
    request: FailedRequest,
  ) {
    const { body } = answer;
    super(body.message, request);
    this.status = answer.status;
    this.code = body.code;
    this.type = body.type;
    this.param = body.param;
    this.requestId = body.request_id;
    this.docUrl = body.doc_url;
    this.body = body;
    this.retryAfterMs = answer.retryAfterMs;
  }

  /** The stored payment of a decline. */
  get payment(): Payment | undefined {
    return this.body.payment;
  }

  /**
   * Whether the error has one of the codes; narrows `code`, and `payment` for a `DeclineCode`.
   * @example
   * ```ts
   * if (error instanceof ApiError && error.is("insufficient_funds")) {
   *   console.log(error.payment.id);
   * }
   * ```
   */
  is<Code extends ErrorCode>(...codes: [Code, ...Code[]]): this is ApiErrorOf<Code> {
    return (codes as ErrorCode[]).includes(this.code);
  }
}

/** An `ApiError` of certain codes. */
export type ApiErrorOf<Code extends ErrorCode> =
  & ApiError
  & { readonly code: Code }
  & ([Code] extends [DeclineCode] ? { readonly payment: Payment } : unknown)
  & ([Code] extends ["invalid_state"]
    ? { readonly body: { current_status: string; allowed: string[] } }
    : unknown);

/** An answer that the API does not give: a proxy's page, a redirect, a wrong `baseUrl`. */
export class UnexpectedResponseError extends PaymentsError {
  override readonly name = "UnexpectedResponseError";
  /** HTTP status. */
  readonly status: number;
  /** The answer as text. */
  readonly body: string;

  constructor(answer: { status: number; body: string }, request: FailedRequest) {
    const hint = answer.status >= 300 && answer.status < 400
      ? "a redirect, which is not followed. Is baseUrl the functions' own address?"
      : "without a body of the payments API. Is baseUrl right, or did a proxy answer?";
    super(`${request.operation} was answered with ${answer.status}, ${hint}`, request);
    this.status = answer.status;
    this.body = answer.body;
  }
}

/** No answer: the service cannot be reached, or the connection broke. `cause` says why. */
export class ConnectionError extends PaymentsError {
  override readonly name = "ConnectionError";

  constructor(request: FailedRequest, cause: unknown) {
    super(`${request.operation} was not answered: ${reasonOf(cause)}`, request, { cause });
  }
}

/** No answer in time. */
export class TimeoutError extends PaymentsError {
  override readonly name = "TimeoutError";
  /** How long each attempt was waited for. */
  readonly timeoutMs: number;

  constructor(request: FailedRequest, timeoutMs: number) {
    super(`${request.operation} was not answered within ${timeoutMs} ms`, request);
    this.timeoutMs = timeoutMs;
  }
}

/** Node says no more than "fetch failed", and the reason in the cause of it. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { code, message } = (cause.cause ?? {}) as { code?: unknown; message?: unknown };
  const reason = message || code;
  return reason ? `${cause.message} (${reason})` : cause.message;
}
