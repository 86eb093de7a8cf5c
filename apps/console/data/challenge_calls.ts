/**
 * The calls of the payer's page. They have the token of the page and no API key, so they do not
 * use the client.
 */

import type { Challenge } from "../../../shared/schema/challenge.ts";
import { apiBaseUrl } from "./api_base_url.ts";

/** The API has refused a call of the payer's page. */
export class ChallengeRefused extends Error {
  constructor(readonly code: string, message: string) {
    super(message);
  }
}

/** Longest wait for a response. */
const DEADLINE_MS = 30_000;

/** Reads the challenge of a token. Throws `ChallengeRefused`, or else there was no response. */
export function readChallenge(token: string): Promise<Challenge> {
  return callChallenge(token, { method: "GET" });
}

/** Completes the challenge of a token. Throws as `readChallenge` does. */
export function completeChallenge(
  token: string,
  result: "success" | "failure",
): Promise<Challenge> {
  return callChallenge(token, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ result }),
  });
}

async function callChallenge(token: string, init: RequestInit): Promise<Challenge> {
  const url = `${apiBaseUrl()}/api-v1-sandbox/challenges/${encodeURIComponent(token)}`;
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(DEADLINE_MS) });
  const body = await response.json();
  if (response.ok) return body;
  throw new ChallengeRefused(body.error.code, body.error.message);
}
