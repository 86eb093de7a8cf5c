/** Declares faults in the sandbox of a test, and reads them. */

import type { Fault } from "../../../shared/schema/fault.ts";
import type { TestService } from "./service.ts";

export const FAULTS = "/api-v1-sandbox/faults";

/** Declares a fault in the first sandbox. */
export async function declare(service: TestService, body: Record<string, unknown>): Promise<Fault> {
  return await service.post(FAULTS, body);
}

/** Returns how often a fault will still happen. */
export async function left(service: TestService, { id }: Fault): Promise<number> {
  return (await service.get(`${FAULTS}/${id}`)).left;
}
