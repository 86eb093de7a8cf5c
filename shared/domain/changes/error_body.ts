/**
 * Renders the bodies of all errors (contract §6).
 */

import { type ApiError, docUrl, ERROR_CATALOGUE } from "../../core/errors.ts";

/** Returns `{"error":{type, code, message, param?, request_id, doc_url, …}}` as JSON text. */
export function renderError(error: ApiError, request_id: string): string {
  const { param, ...more } = error.details;
  return JSON.stringify({
    error: {
      type: ERROR_CATALOGUE[error.code].type,
      code: error.code,
      message: error.message,
      ...(param !== undefined && { param }),
      request_id,
      doc_url: docUrl(error.code),
      ...more,
    },
  });
}
