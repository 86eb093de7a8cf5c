/**
 * Live endpoints and their deliveries, written as rows: no provider makes live payments yet. The
 * addresses are public to every check; the seam leads them to receivers on loopback.
 */

import type { Settings } from "../../../shared/http/settings.ts";
import { idMint } from "../../../shared/core/ids.ts";
import type { TestService } from "../service/service.ts";
import { HOOKS_CERTIFICATE, TEST_AUTHORITY } from "./test_certificates.ts";

/** A public address to the checks. */
export const PUBLIC_ADDRESS = "93.184.216.34";

/** A TLS receiver of https://hooks.example.com that answers as it is told and counts. */
export interface PublicReceiver {
  port: number;
  /** Attempt numbers, by path. */
  attempts: Map<string, number[]>;
  judge: (path: string) => Response;
  close(): Promise<void>;
}

/** Starts the receiver. */
export function openPublicReceiver(): PublicReceiver {
  const attempts = new Map<string, number[]>();
  const abort = new AbortController();
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    signal: abort.signal,
    onListen: () => {},
    ...HOOKS_CERTIFICATE,
  }, async (request) => {
    await request.arrayBuffer();
    const { pathname } = new URL(request.url);
    const number = Number(request.headers.get("Webhook-Attempt"));
    attempts.set(pathname, [...attempts.get(pathname) ?? [], number]);
    return receiver.judge(pathname);
  });
  const receiver: PublicReceiver = {
    port: server.addr.port,
    attempts,
    judge: () => new Response(),
    close() {
      abort.abort();
      return server.finished;
    },
  };
  return receiver;
}

/** Settings with which every public name leads to a port on loopback. */
export function leadingTo(port: number): Partial<Settings> {
  return {
    webhook_sender: {
      resolve: () => Promise.resolve([PUBLIC_ADDRESS]),
      seam: { ca_certs: [TEST_AUTHORITY], dial: () => ({ address: "127.0.0.1", port }) },
    },
  };
}

/** Writes an event of a live payment and its delivery, due at `at_ms`; the delivery's id. */
export async function addLiveDelivery(
  { sql, live }: TestService,
  endpoint_id: string,
  at_ms: number,
): Promise<string> {
  const mint = idMint(at_ms);
  const [event_id, delivery_id, payment_id] = [mint("evt_"), mint("whd_"), mint("pay_")];
  const at = new Date(at_ms).toISOString();
  await sql`insert into pay.events
    (environment_id, id, type, subject_id, sequence, created_at, body)
    values (${live.environment_id}, ${event_id}, 'payment.created', ${payment_id}, 1, ${at},
      ${JSON.stringify({ id: event_id, type: "payment.created" })})`;
  await sql`insert into pay.webhook_deliveries
    (environment_id, id, event_id, event_type, endpoint_id, subject_id, sequence, status,
      next_attempt_at, created_at)
    values (${live.environment_id}, ${delivery_id}, ${event_id}, 'payment.created', ${endpoint_id},
      ${payment_id}, 1, 'pending', ${at}, ${at})`;
  return delivery_id;
}
