/**
 * The error classes of requests. All extend `PaymentsError`: the API responds with an error
 * (`ApiError`), the response is not from the API (`UnexpectedResponseError`), there is no response
 * (`ConnectionError`), or none in time (`TimeoutError`). After an abort the promise rejects with
 * the reason of the signal, as with `fetch`. Invalid arguments throw a `TypeError`. Source:
 * contract §6.
 */

import type {
  DeclineAdvice,
  DeclineCode,
  ErrorBody,
  ErrorCode,
  ErrorType,
  Payment,
} from "./resources.ts";

/** A failed request. */
export interface FailedRequest {
  /** Method and path, such as `POST /api-v1-payments/v1/payments`. */
  operation: string;
  /** The idempotency key of the request. Null for a read. */
  idempotencyKey: string | null;
  /** Number of attempts, with the first one. */
  attempts: number;
}

/** The base class: a request failed. */
export class PaymentsError extends Error {
  override readonly name: string = "PaymentsError";
  /** Method and path, such as `POST /api-v1-payments/v1/payments`. */
  readonly operation: string;
  /**
   * The idempotency key of the request. Null for a read. After a `ConnectionError`, a
   * `TimeoutError` or a status of 500 or more you do not know whether the request had an effect.
   * Make the same call with this key within 24 hours to get its result: it has no effect twice.
   */
  readonly idempotencyKey: string | null;
  /** Number of attempts, with the first one. */
  readonly attempts: number;

  constructor(message: string, request: FailedRequest, options?: { cause?: unknown }) {
    super(message, options);
    this.operation = request.operation;
    this.idempotencyKey = request.idempotencyKey;
    this.attempts = request.attempts;
  }
}

/** The API responded with an error. Use `is` to compare its code. */
export class ApiError extends PaymentsError {
  override readonly name = "ApiError";
  /** HTTP status. */
  readonly status: number;
  readonly code: ErrorCode;
  readonly type: ErrorType;
  /** The field at fault, as a path: `card.number`. */
  readonly param: string | undefined;
  /** Id of the request. The operator of the service can find the request with it. */
  readonly requestId: string;
  /** The page that explains the code; absent if the operator publishes no documentation. */
  readonly docUrl: string | undefined;
  /** The member `error` of the body. */
  readonly body: ErrorBody;
  /** The header `Retry-After` in milliseconds, if the response has it. */
  readonly retryAfterMs: number | undefined;

  constructor(
    response: { status: number; body: ErrorBody; retryAfterMs?: number | undefined },
    request: FailedRequest,
  ) {
    const { body } = response;
    super(body.message, request);
    this.status = response.status;
    this.code = body.code;
    this.type = body.type;
    this.param = body.param;
    this.requestId = body.request_id;
    this.docUrl = body.doc_url;
    this.body = body;
    this.retryAfterMs = response.retryAfterMs;
  }

  /** The stored payment, if the payment was declined. */
  get payment(): Payment | undefined {
    return this.body.payment;
  }

  /** The next step that helps, if the payment was declined. */
  get advice(): DeclineAdvice | undefined {
    return this.body.advice;
  }

  /**
   * Whether the error has one of the codes. Narrows the types of `code`, and of `payment` and
   * `advice` for a `DeclineCode`.
   * @example
   * ```ts
   * if (error instanceof ApiError && error.is("insufficient_funds")) {
   *   console.log(error.payment.id, error.advice);
   * }
   * ```
   */
  is<Code extends ErrorCode>(...codes: [Code, ...Code[]]): this is ApiErrorOf<Code> {
    return (codes as ErrorCode[]).includes(this.code);
  }
}

/** An `ApiError` with one of certain codes. */
export type ApiErrorOf<Code extends ErrorCode> =
  & ApiError
  & { readonly code: Code }
  & ([Code] extends [DeclineCode] ? { readonly payment: Payment; readonly advice: DeclineAdvice }
    : unknown)
  & ([Code] extends ["invalid_state"]
    ? { readonly body: { current_status: string; allowed: string[] } }
    : unknown);

/** The response is not from the API: a page of a proxy, a redirect, or `baseUrl` is wrong. */
export class UnexpectedResponseError extends PaymentsError {
  override readonly name = "UnexpectedResponseError";
  /** HTTP status. */
  readonly status: number;
  /** The response as text. */
  readonly body: string;

  constructor(response: { status: number; body: string }, request: FailedRequest) {
    const hint = response.status >= 300 && response.status < 400
      ? "a redirect, which the client does not follow. Is baseUrl the address of the functions?"
      : "without a body of the payments API. Is baseUrl correct, or did a proxy respond?";
    super(`${request.operation} got a response with status ${response.status}, ${hint}`, request);
    this.status = response.status;
    this.body = response.body;
  }
}

/** There is no response: the connection failed or was closed. `cause` is the error of `fetch`. */
export class ConnectionError extends PaymentsError {
  override readonly name = "ConnectionError";

  constructor(request: FailedRequest, cause: unknown) {
    super(`${request.operation} got no response: ${reasonOf(cause)}`, request, { cause });
  }
}

/** There is no complete response within the timeout. */
export class TimeoutError extends PaymentsError {
  override readonly name = "TimeoutError";
  /** Timeout of each attempt in milliseconds. */
  readonly timeoutMs: number;

  constructor(request: FailedRequest, timeoutMs: number) {
    super(`${request.operation} got no response within ${timeoutMs} ms`, request);
    this.timeoutMs = timeoutMs;
  }
}

/** In Node the message of the error is only "fetch failed". Its cause has the reason. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const { code, message } = (cause.cause ?? {}) as { code?: unknown; message?: unknown };
  const reason = message || code;
  return reason ? `${cause.message} (${reason})` : cause.message;
}
