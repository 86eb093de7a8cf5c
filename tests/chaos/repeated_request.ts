/** Requests that clients repeat under their keys while processes are killed. */

import type postgres from "postgres";
import { until } from "../support/common/until.ts";
import type { ApiServer } from "./stage.ts";

const RESPONSE_DEADLINE_MS = 15_000;
/** An account that moves waits behind its fence while databases are killed. */
const GIVE_UP_MS = 300_000;

/** The servers, and the API key of the clients. */
export interface RepeatedApi {
  servers: readonly ApiServer[];
  key: string;
}

/**
 * Sends a request under its idempotency key until it has created something. Returns the body.
 *
 * @param duplicate requests with the next number go to the next server
 */
export async function postAgain(
  { servers, key }: RepeatedApi,
  path: string,
  body: object,
  idempotency_key: string,
  duplicate: number,
): Promise<string> {
  let text = "";
  await until(`the response to ${path}`, async () => {
    const { base_url } = servers[duplicate % servers.length]!;
    const response = await fetch(`${base_url}/api-v1-payments/v1/${path}`, {
      method: "POST",
      headers: {
        "Authorization": `Bearer ${key}`,
        "Content-Type": "application/json",
        "Idempotency-Key": idempotency_key,
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
    }).catch(() => null);
    text = await response?.text().catch(() => "") ?? "";
    return response?.status === 201 && text !== "";
  }, GIVE_UP_MS).catch((error) => {
    throw new Error(`${error.message}: ${text}`);
  });
  return text;
}

/**
 * Returns the body of a created payment with its next action. If the server died before it recorded
 * the action, the service records it later.
 */
export async function untilNextAction(sql: postgres.Sql, created: string): Promise<string> {
  const { id, next_action } = JSON.parse(created);
  let body = created;
  if (next_action !== null) return body;
  await until(`${id} has a next action`, async () => {
    const [row] = await sql<{ body: string }[]>`
      select body from pay.payments where id = ${id}`.catch(() => []);
    body = row?.body ?? "";
    return body !== "" && JSON.parse(body).next_action !== null;
  }, GIVE_UP_MS);
  return body;
}
