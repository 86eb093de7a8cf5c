/** The tools of each part of the run of sandboxes (R15). */

import type { ApiRequest, ApiResponse, RepeatingClient } from "../../harness/client.ts";
import type { KeyedEnvironment, Stage } from "../../harness/stage.ts";

/** A part: its sandbox and its client. */
export interface Part {
  stage: Stage;
  client: RepeatingClient;
  sandbox: KeyedEnvironment;
  /** Sends a request in its sandbox until it has a final response. */
  send(path: string, request?: ApiRequest): Promise<ApiResponse>;
  /** True after the last kill: a part then ends what it has begun. */
  isOver(): boolean;
}

/** The result of a part: its figures, and its breaches. */
export interface PartReport {
  says: string;
  breaches: string[];
}

/** Runs clients that repeat a step until it returns false. */
export async function untilDone(
  clients: number,
  step: (client: number, i: number) => Promise<boolean>,
): Promise<void> {
  await Promise.all(Array.from({ length: clients }, async (_, client) => {
    for (let i = 0; await step(client, i); i++);
  }));
}
