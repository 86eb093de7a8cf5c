/** Declares faults in the sandbox of a test, and reads them. */

import assert from "node:assert/strict";
import type { Fault } from "../../../shared/schema/fault.ts";
import type { TestService } from "./service.ts";

export const FAULTS = "/api-v1-sandbox/faults";

/** Declares a fault in the first sandbox. */
export async function declare(
  service: TestService,
  body: Record<string, unknown>,
): Promise<Fault> {
  const answer = await service.call("POST", FAULTS, { body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

/** Returns how often a fault will still happen. */
export async function left(service: TestService, { id }: Fault): Promise<number> {
  const answer = await service.call("GET", `${FAULTS}/${id}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.left;
}
