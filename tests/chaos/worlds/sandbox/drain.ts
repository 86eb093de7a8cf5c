/**
 * Waits for the last deliveries after the faults, and redelivers those whose attempts kills used
 * up. Reports deliveries that the service gave up too early.
 */

import { until } from "../../../support/common/until.ts";
import { type RepeatingClient, V1 } from "../../harness/client.ts";
import type { KeyedEnvironment, Stage } from "../../harness/stage.ts";
import type { Evidence } from "./evidence.ts";

const DELIVERY_DEADLINE_MS = 240_000;
/** Waits above this count as long: one minute after the second failure, ten after the third. */
const FAR_MS = 65_000;
/** Attempts of a sandbox's delivery until it fails, and until the wait is long (contract §4). */
const ATTEMPTS = { until_failed: 4, until_far: 3 } as const;

interface OpenDelivery {
  environment_id: string;
  id: string;
  event_id: string;
  status: string;
  attempt_count: number;
  is_far: boolean;
  /** Whether an earlier event of its payment is still pending, on which its wait then depends. */
  is_blocked: boolean;
}

/**
 * Waits until no delivery is pending. If the receiver refused a delivery and kills used up two more
 * attempts, it waits ten minutes or has failed; then this redelivers it, as a merchant would. A
 * delivery in that state with fewer attempts is a fault.
 */
export async function drain(
  { sql }: Stage,
  client: RepeatingClient,
  environments: readonly KeyedEnvironment[],
): Promise<Evidence["drained"]> {
  const keys = new Map(environments.map(({ environment_id, key }) => [environment_id, key]));
  const too_early = new Set<string>();
  const redelivered = new Set<string>();
  let late: string[] = [];
  await until("every delivery has ended", async () => {
    const open = await sql<OpenDelivery[]>`
      select v.public_id as environment_id, d.id, d.event_id, d.status,
        d.attempt_count,
        d.status = 'failed' or d.next_attempt_at > now() + ${`${FAR_MS} ms`}::interval as is_far,
        exists (
          select from pay.webhook_deliveries e
          where e.status = 'pending' and e.endpoint_id = d.endpoint_id
            and e.subject_id = d.subject_id and e.sequence < d.sequence
        ) as is_blocked
      from pay.webhook_deliveries d
      join pay.environments v on v.id = d.environment_id and v.retired_at is null
      where d.status in ('pending', 'failed')`;
    late = open.map(({ id }) => `late: ${id}`);
    for (const { id, status, attempt_count, is_far, is_blocked } of open) {
      const least = status === "failed" ? ATTEMPTS.until_failed : ATTEMPTS.until_far;
      if (is_far && !is_blocked && attempt_count < least) {
        too_early.add(`${id} is ${status} after ${attempt_count} attempts`);
      }
    }
    if (open.length === 0 || open.some(({ is_far }) => !is_far)) return open.length === 0;
    for (const { environment_id, id, event_id } of open) {
      const path = `${V1}/webhook_deliveries/${id}/redeliver`;
      const { status } = await client.send(keys.get(environment_id)!, path, { body: {} });
      if (status === 200) redelivered.add(event_id);
    }
    return false;
  }, DELIVERY_DEADLINE_MS).catch(({ message }) => late.push(message));
  return { redelivered, faults: [...too_early, ...late] };
}
