/**
 * A line of a transcript: a request of a seeded sandbox and its response as JSON, without secrets
 * and without what differs from one installation or run to the next (ADR 0023, contract §5).
 */

import type { Context } from "hono";
import { LEFT_OUT, withoutKeys } from "../core/masked_secrets.ts";
import type { Env } from "../http/request_state.ts";
import {
  maskedQuery,
  maskedRequest,
  maskedResponse,
  maskedText,
  MAX_BYTES,
} from "./masked_body.ts";

/** Ids of API keys, which do not follow from the seed. */
const KEY_IDS = /\bkey_[0-9a-z]{26}\b/g;
/** The addresses in errors. Each operator decides where the documentation is, if anywhere. */
const DOC_URLS = /,"doc_url":"[^"\\]*\/errors\.html#[a-z_]+"/g;
/** The path of the functions on Supabase, which is the part of a path that a deployment decides. */
const MOUNT = /^\/functions\/v1(?=\/)/;

export async function transcriptLine(c: Context<Env>, n: number): Promise<string> {
  const { route, request_id, body, body_bytes, response_body } = c.get("state");
  const { method, url } = c.req.raw;
  const { pathname, search } = new URL(url);
  const { base_url, checkout_url } = c.get("deps");
  // The response itself can be compressed.
  const sent = response_body ?? await c.res.clone().text();
  const text = withoutHosts(sent, [base_url, checkout_url]);
  const line = JSON.stringify({
    n,
    request: {
      method,
      // The id of a key is random, and its digits can look like a card number.
      path: maskedText(pathname.replace(MOUNT, "").replace(KEY_IDS, "key_…")) +
        maskedQuery(search, route?.query),
      idempotency_key: maskedText(c.req.header("Idempotency-Key") ?? null),
      body: body_bytes > MAX_BYTES ? LEFT_OUT : maskedRequest(body, route?.body),
    },
    answer: {
      status: c.res.status,
      request_id,
      replayed: c.get("state").is_replay,
      body: maskedResponse(text.replace(DOC_URLS, "")),
    },
  });
  return withoutKeys(line.replace(KEY_IDS, "key_…"));
}

/** Replaces the scheme, host and port of the service's addresses. */
function withoutHosts(text: string, urls: readonly (string | null)[]): string {
  return urls.reduce<string>(
    (rest, url) => url === null ? rest : rest.replaceAll(new URL(url).origin, LEFT_OUT),
    text,
  );
}
