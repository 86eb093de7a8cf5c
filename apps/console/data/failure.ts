/**
 * Converts errors to failures that a page can show: an error of the API with its code and field, a
 * missing response, or a value that cannot be sent.
 */

import { ApiError, ConnectionError, TimeoutError } from "../../../packages/client/mod.ts";

/** The text of a field cannot become part of a request. */
export class FieldError extends Error {
  constructor(readonly param: string, message: string) {
    super(message);
  }
}

export interface Failure {
  /**
   * `refused`: the API responded with an error. `undecided`: the request may have had an effect.
   * `unsent`: the console has sent nothing.
   */
  kind: "refused" | "undecided" | "unsent";
  message: string;
  code: string | null;
  /** The field at fault, as the API names it: `card.number`. */
  param: string | null;
  request_id: string | null;
}

export function failureOf(error: unknown): Failure {
  const failure = { code: null, param: null, request_id: null };
  if (error instanceof ApiError) {
    return {
      kind: isUndecided(error) ? "undecided" : "refused",
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
    return { ...failure, kind: "undecided", message: "The API did not respond in time." };
  }
  if (error instanceof ConnectionError) {
    return { ...failure, kind: "undecided", message: "The API cannot be reached." };
  }
  return {
    ...failure,
    kind: "undecided",
    message: error instanceof Error ? error.message : String(error),
  };
}

/** Whether the request, or an earlier attempt with the same key, may have had an effect. */
function isUndecided(error: ApiError): boolean {
  return error.status >= 500 || error.is("idempotency_in_progress", "rate_limited");
}

/** Whether the failure is about one of the fields, or about a member of it. */
export function concerns(failure: Failure | null, params: readonly string[]): failure is Failure {
  const at_fault = failure?.param;
  return at_fault != null && params.some((param) => {
    return at_fault === param || at_fault.startsWith(`${param}.`) ||
      at_fault.startsWith(`${param}[`);
  });
}
