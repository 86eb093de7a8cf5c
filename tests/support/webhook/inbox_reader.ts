/** Functions that register endpoints with an inbox and read them. */

import assert from "node:assert/strict";
import type { CallOptions, TestResponse, TestService } from "../service/service.ts";
import { type AddedEndpoint, ENDPOINTS } from "./recording_receiver.ts";

/** Registers an endpoint with an inbox. */
export async function addInbox(
  service: TestService,
  body: Record<string, unknown> = {},
  options: CallOptions = {},
): Promise<AddedEndpoint> {
  const made = await service.post(ENDPOINTS, { delivery: "inbox", ...body }, options);
  assert.deepEqual([made.delivery, made.url], ["inbox", null]);
  return made;
}

/** Reads the inbox of an endpoint once. */
export function readInbox(
  service: TestService,
  id: string,
  query = "",
  options: CallOptions = {},
): Promise<TestResponse> {
  return service.call("GET", `${ENDPOINTS}/${id}/inbox?${query}`, options);
}

/** Returns the types of the events in a response, in its order. */
export function typesIn({ data }: { data: { body: string }[] }): string[] {
  return data.map(({ body }) => JSON.parse(body).type);
}
