/** Idempotency keys that a test stores itself, as a request of another server does. */

import type postgres from "postgres";
import type { TestService } from "../service/service.ts";
import { openSession } from "./database.ts";

/** Claims a key in a transaction that stays open. `await using` rolls it back. */
export async function claimKey(
  service: TestService,
  key: string,
  hash: string,
  body: string,
): ReturnType<typeof openSession> {
  const session = await openSession(service.sql);
  try {
    await session`begin`;
    await storeKey(service, key, hash, body, Date.now(), session);
    return session;
  } catch (error) {
    await session[Symbol.asyncDispose]();
    throw error;
  }
}

/** Stores the response of a request at a time. */
export async function storeKey(
  service: TestService,
  key: string,
  hash: string,
  body: string,
  at_ms: number,
  sql: postgres.Sql = service.sql,
): Promise<void> {
  const { id } = service.key;
  const environment_id = await service.environmentOf(service.key);
  await sql`insert into pay.idempotency_keys
    (environment_id, api_key_id, key, fingerprint, request_id, request_line, status, body,
      created_at)
    values (${environment_id}, ${id}, ${key}, decode(${hash}, 'hex'), ${`req_${"0".repeat(26)}`},
      'POST /', 201, ${body}, ${new Date(at_ms)})`;
}
