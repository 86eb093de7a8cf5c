/**
 * Deliveries of live endpoints, and receivers for them. The deliveries are inserted as rows,
 * because no provider makes live payments yet. Host names resolve to a public address, which the
 * service accepts, and the seam of the sender connects them to receivers on loopback.
 */

import type { Settings } from "../../../shared/functions/settings.ts";
import { idGenerator } from "../../../shared/core/ids.ts";
import { startService, type TestService } from "../service/service.ts";
import {
  type AddedEndpoint,
  addEndpoint,
  openRecorder,
  type RecordingReceiver,
} from "./recording_receiver.ts";
import { HOOKS_CERTIFICATE, TEST_AUTHORITY } from "./test_certificates.ts";

/** A public address, which live endpoints may have. */
const PUBLIC_ADDRESS = "93.184.216.34";

/** Returns the attempt numbers of the webhooks at a path, in the order of arrival. */
export function attemptsAt(receiver: RecordingReceiver, path: string): number[] {
  return receiver.at(path).map(({ headers }) => Number(headers.get("Webhook-Attempt")));
}

/** Settings that resolve every host name publicly and connect it to a port on loopback. */
function leadingTo(port: number): Partial<Settings> {
  return {
    webhook_sender: {
      resolve: () => Promise.resolve([PUBLIC_ADDRESS]),
      seam: { ca_certs: [TEST_AUTHORITY], dial: () => ({ address: "127.0.0.1", port }) },
    },
  };
}

/** Inserts an event of a live payment and a delivery of it, due at `at_ms`. Returns its id. */
export async function addLiveDelivery(
  { sql, live }: TestService,
  endpoint_id: string,
  at_ms: number,
): Promise<string> {
  const newId = idGenerator(at_ms);
  const [event_id, delivery_id, payment_id] = [newId("evt_"), newId("whd_"), newId("pay_")];
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

/** Registers a test whose live endpoints at https://hooks.example.com lead to a receiver. */
export function liveCase(
  name: string,
  run: (t: Deno.TestContext, service: TestService, receiver: RecordingReceiver) => Promise<void>,
): void {
  Deno.test(name, async (t) => {
    await using receiver = openRecorder(() => 200, HOOKS_CERTIFICATE);
    await using service = await startService(leadingTo(receiver.port));
    await run(t, service, receiver);
  });
}

/** Adds a live endpoint at a path. */
export function addLive(
  service: TestService,
  path: string,
  events = ["*"],
): Promise<AddedEndpoint> {
  const options = { key: service.live.text };
  return addEndpoint(service, `https://hooks.example.com${path}`, { events }, options);
}
