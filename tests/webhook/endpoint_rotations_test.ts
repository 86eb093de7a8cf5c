/**
 * Many rotations of one endpoint: the number of secrets that sign, the size of the signature
 * header, and the deletion of ended secrets.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { startSecondService } from "../support/service/second_service.ts";
import {
  addEndpoint,
  type Arrival,
  ENDPOINTS,
  settle,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { verifiedBy } from "../support/webhook/verified_by.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
/** The number of secrets that sign at the same time. */
const MAX_LIVE = 5;
const LONGEST_OVERLAP_S = 604_800;
const ROTATIONS = 60;
/**
 * Characters of `Payment-Signature` with five secrets: `t=`, ten digits, and 68 for each secret.
 */
const MAX_HEADER = 12 + MAX_LIVE * 68;

async function rotate(service: TestService, id: string, expires_in: number): Promise<string> {
  const response = await service.call("POST", `${ENDPOINTS}/${id}/rotate_secret`, {
    body: { expires_in },
  });
  assert.equal(response.status, 200, response.text);
  return response.body.secret;
}

async function deliver(service: TestService, arrivals: Arrival[]): Promise<Arrival> {
  await service.make({ outcome: "pending" });
  await settle(service);
  return arrivals.at(-1)!;
}

async function storedSecrets({ sql }: TestService, id: string): Promise<number> {
  const [row] = await sql`
    select json_array_length(secrets) as count from pay.webhook_endpoints where id = ${id}`;
  return row!.count;
}

webhookCase("POST /rotate_secret keeps at most five secrets", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id, secret } = await addEndpoint(service, hooks.url("/"));
  const secrets = [secret];
  for (let i = 0; i < ROTATIONS; i++) {
    await service.setClock(AT + i * 10);
    secrets.unshift(await rotate(service, id, LONGEST_OVERLAP_S));
  }
  await t.step(`after ${ROTATIONS} long overlaps only the newest five sign`, async () => {
    const arrival = await deliver(service, hooks.arrivals);
    const expected = secrets.map((_, i) => i < MAX_LIVE);
    assert.deepEqual(await verifiedBy(arrival, secrets), expected);
    assert.ok(arrival.headers.get("Payment-Signature")!.length <= MAX_HEADER);
    assert.equal(arrival.headers.get("Webhook-Signature")!.split(" ").length, MAX_LIVE);
    assert.equal(await storedSecrets(service, id), MAX_LIVE);
  });
  await t.step("a shorter overlap shortens every older one, a longer one none", async () => {
    const newest = await rotate(service, id, 60);
    await rotate(service, id, LONGEST_OVERLAP_S);
    await service.setClock(AT + ROTATIONS * 10 + 61_000);
    const arrival = await deliver(service, hooks.arrivals);
    assert.deepEqual(await verifiedBy(arrival, [newest, secrets[0]!]), [true, false]);
  });
  await t.step("expires_in 0 ends all older secrets now", async () => {
    await rotate(service, id, LONGEST_OVERLAP_S);
    await rotate(service, id, LONGEST_OVERLAP_S);
    const last = await rotate(service, id, 0);
    const arrival = await deliver(service, hooks.arrivals);
    assert.deepEqual(await verifiedBy(arrival, [last]), [true]);
    assert.equal(arrival.headers.get("Payment-Signature")!.split("v1=").length, 2);
    assert.equal(await storedSecrets(service, id), 1);
  });
  await t.step("an update deletes ended secrets", async () => {
    await rotate(service, id, 60);
    assert.equal(await storedSecrets(service, id), 2);
    await service.setClock(AT + 1_000_000);
    const updated = await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { description: "x" } });
    assert.equal(updated.status, 200, updated.text);
    assert.equal(await storedSecrets(service, id), 1);
  });
});

webhookCase("POST /rotate_secret at once leaves five secrets", async (_t, service, hooks) => {
  const second = startSecondService(service);
  try {
    const { id } = await addEndpoint(service, hooks.url("/"));
    const path = `${ENDPOINTS}/${id}/rotate_secret`;
    for (let round = 0; round < 6; round++) {
      const responses = await Promise.all(
        Array.from({ length: 4 }, (_, i) =>
          [service, second][i % 2]!.call("POST", path, {
            body: { expires_in: LONGEST_OVERLAP_S },
          })),
      );
      assert.ok(responses.every(({ status }) => status === 200 || status === 503));
    }
    assert.equal(await storedSecrets(service, id), MAX_LIVE);
    const arrival = await deliver(service, hooks.arrivals);
    assert.equal(arrival.headers.get("Payment-Signature")!.split("v1=").length, 1 + MAX_LIVE);
  } finally {
    await second.close();
  }
});
