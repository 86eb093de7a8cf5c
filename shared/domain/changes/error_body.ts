/** Renders the bodies of all errors (contract §6). */

import { type ApiError, docUrl, ERROR_CATALOGUE } from "../../core/errors.ts";

/** The members of an error body that come from the request and from the deployment. */
export interface ErrorOrigin {
  request_id: string;
  /** URL of the documentation without a slash at its end; null: errors have no `doc_url`. */
  docs_url: string | null;
}

/** Returns `{"error":{type, code, message, param?, request_id, doc_url?, …}}` as JSON text. */
export function renderError(error: ApiError, { request_id, docs_url }: ErrorOrigin): string {
  const { param, ...more } = error.details;
  return JSON.stringify({
    error: {
      type: ERROR_CATALOGUE[error.code].type,
      code: error.code,
      message: error.message,
      ...(param !== undefined && { param }),
      request_id,
      ...(docs_url !== null && { doc_url: docUrl(docs_url, error.code) }),
      ...more,
    },
  });
}
