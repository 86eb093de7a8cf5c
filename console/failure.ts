/**
 * What went wrong, in the words of the page: an answer of the API with its code and field, no answer
 * at all, or something typed that cannot be sent.
 */

import { ApiError, ConnectionError, TimeoutError } from "../client/mod.ts";

/** A text in a field that cannot become a request. */
export class FieldError extends Error {
  constructor(readonly param: string, message: string) {
    super(message);
  }
}

/** A failure as it is shown. */
export interface Failure {
  /** `unanswered`: it is not known whether the request had an effect. */
  kind: "refused" | "unanswered" | "unsent";
  message: string;
  /** The API's code. */
  code: string | null;
  /** The field at fault, as the API names it: `card.number`. */
  param: string | null;
  request_id: string | null;
}

/** Puts an error into words. */
export function failureOf(error: unknown): Failure {
  const failure = { code: null, param: null, request_id: null };
  if (error instanceof ApiError) {
    return {
      kind: isUndecided(error) ? "unanswered" : "refused",
      message: error.message,
      code: error.code,
      param: error.param ?? null,
      request_id: error.requestId,
    };
  }
  if (error instanceof FieldError) {
    return { ...failure, kind: "unsent", message: error.message, param: error.param };
  }
  if (error instanceof TimeoutError) {
    return { ...failure, kind: "unanswered", message: "The API did not answer in time." };
  }
  if (error instanceof ConnectionError) {
    return { ...failure, kind: "unanswered", message: "The API cannot be reached." };
  }
  return {
    ...failure,
    kind: "unanswered",
    message: error instanceof Error ? error.message : String(error),
  };
}

/** Whether the answer leaves open what became of the request, or of an earlier try under its key. */
function isUndecided(error: ApiError): boolean {
  return error.status >= 500 || error.is("idempotency_in_progress", "rate_limited");
}

/** Whether the failure is about the field, or about something inside it. */
export function concerns(failure: Failure | null, params: readonly string[]): failure is Failure {
  const at_fault = failure?.param;
  return at_fault != null && params.some((param) => {
    return at_fault === param || at_fault.startsWith(`${param}.`) ||
      at_fault.startsWith(`${param}[`);
  });
}
