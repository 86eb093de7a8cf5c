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
  const response = await service.call("POST", FAULTS, { body });
  assert.equal(response.status, 201, response.text);
  return response.body;
}

/** Returns how often a fault will still happen. */
export async function left(service: TestService, { id }: Fault): Promise<number> {
  const response = await service.call("GET", `${FAULTS}/${id}`);
  assert.equal(response.status, 200, response.text);
  return response.body.left;
}
