/**
 * Secrets of endpoints: the database does not contain them, older ones sign for a while after a
 * rotation, and many rotations bound the number of secrets and the size of the signature header.
 */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { activeSecrets } from "../../shared/domain/webhooks/endpoint_secret.ts";
import { startSecondService } from "../support/service/second_service.ts";
import type { TestService } from "../support/service/service.ts";
import {
  addEndpoint,
  type Arrival,
  ENDPOINTS,
  settle,
  verifiedBy,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { dumpTables } from "../support/database/table_dump.ts";

const AT = Date.parse("2026-08-09T10:11:12.013Z");
/** The number of secrets that sign at the same time. */
const MAX_SECRETS = 5;
const LONGEST_OVERLAP_S = 604_800;
const ROTATIONS = 60;
/**
 * Characters of `Payment-Signature` with five secrets: `t=`, ten digits, and 68 for each secret.
 */
const MAX_HEADER = 12 + MAX_SECRETS * 68;

/** [end by the clock of the sandbox and in real time, seconds from now; whether it signs] */
const ENDS: [expires_in: number | null, ends_in: number | null, is_active: boolean][] = [
  [null, null, true],
  [1, 1, true],
  [0, 1, false],
  [1, 0, false],
  [0, 0, false],
];
for (const [expires_in, ends_in, is_active] of ENDS) {
  Deno.test(`activeSecrets() with the ends ${expires_in} and ${ends_in}: ${is_active}`, () => {
    const [now, real] = [AT, AT - 86_400_000];
    const at = (from: number, seconds: number | null) =>
      seconds === null ? null : new Date(from + seconds * 1000).toISOString();
    const ends_at = at(real, ends_in);
    const secret = { version: 1, salt: "", expires_at: at(now, expires_in) };
    const source = { ...secret, ...(ends_at !== null && { ends_at }) };
    const active = activeSecrets([source], { at_ms: now, real_ms: real });
    assert.equal(active.length, is_active ? 1 : 0);
  });
}

async function rotate(service: TestService, id: string, expires_in?: number): Promise<string> {
  const body = expires_in === undefined ? {} : { expires_in };
  return (await service.post(`${ENDPOINTS}/${id}/rotate_secret`, body)).secret;
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

webhookCase("a dump of the database is not enough to sign", async (t, service, receiver) => {
  const made = await service.call("POST", ENDPOINTS, {
    body: { url: receiver.url("/") },
    idempotency_key: "create",
  });
  const { id } = made.body;
  const rotated = await service.call("POST", `${ENDPOINTS}/${id}/rotate_secret`, {
    body: { expires_in: 600 },
    idempotency_key: "rotate",
  });
  await service.make({ outcome: "pending" });
  await settle(service);
  const [arrival] = receiver.arrivals;
  const text = await dumpTables(service);
  await t.step("the dump contains the endpoint and its events", () => {
    assert.ok(text.includes(id) && text.includes("payment.created"));
  });
  await t.step("the dump contains no secret in any form", () => {
    for (const { body: { secret } } of [made, rotated]) {
      const bytes = atob(secret.slice("whsec_".length));
      const hex = Array.from(bytes, (c) => c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
      for (const form of [secret, secret.slice(6), secret.slice(6, 46), hex]) {
        assert.ok(!text.includes(form));
      }
    }
    assert.deepEqual(text.match(/whsec_(?!reference:)\S+/g), null);
  });
  await t.step("the dump contains no text that verifies", () => {
    const content = `${arrival!.headers.get("Webhook-Timestamp")}.${arrival!.text}`;
    const signatures = arrival!.headers.get("Payment-Signature")!;
    const signs = (key: string) =>
      signatures.includes(createHmac("sha256", key).update(content).digest("hex"));
    assert.ok(signs(rotated.body.secret), "the check itself");
    const tokens = new Set(text.match(/[\w+/=:.-]{6,}/g));
    assert.ok(tokens.size > 50);
    for (const token of tokens) assert.ok(!signs(token) && !signs(`whsec_${token}`));
  });
});

webhookCase("POST /rotate_secret: older secrets sign for a time", async (t, service, hooks) => {
  await service.setClock(AT);
  const { id, secret: first } = await addEndpoint(service, hooks.url("/"));
  const second = await rotate(service, id, 60);
  const third = await rotate(service, id, 600);
  const secrets = [third, second, first];
  for (const [after_ms, count] of [[59_999, 3], [60_000, 2], [599_999, 2], [600_000, 1]] as const) {
    await t.step(`after ${after_ms} ms the newest ${count}, newest first`, async () => {
      await service.setClock(AT + after_ms);
      const { headers, text } = await deliver(service, hooks.arrivals);
      const expected = secrets.slice(0, count).map((secret) =>
        "v1=" + createHmac("sha256", secret).update(`${headers.get("Webhook-Timestamp")}.${text}`)
          .digest("hex")
      );
      assert.deepEqual(headers.get("Payment-Signature")!.split(",").slice(1), expected);
      assert.equal(headers.get("Webhook-Signature")!.split(" ").length, count);
    });
  }
  await t.step("without expires_in the older secret ends at once", async () => {
    const fourth = await rotate(service, id);
    const arrival = await deliver(service, hooks.arrivals);
    assert.deepEqual(await verifiedBy(arrival, [fourth, third]), [true, false]);
  });
});

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
    const expected = secrets.map((_, i) => i < MAX_SECRETS);
    assert.deepEqual(await verifiedBy(arrival, secrets), expected);
    assert.ok(arrival.headers.get("Payment-Signature")!.length <= MAX_HEADER);
    assert.equal(arrival.headers.get("Webhook-Signature")!.split(" ").length, MAX_SECRETS);
    assert.equal(await storedSecrets(service, id), MAX_SECRETS);
  });
  await t.step("a shorter overlap shortens every older one, a longer one none", async () => {
    const newest = await rotate(service, id, 60);
    await rotate(service, id, LONGEST_OVERLAP_S);
    await service.setClock(AT + ROTATIONS * 10 + 61_000);
    const arrival = await deliver(service, hooks.arrivals);
    assert.deepEqual(await verifiedBy(arrival, [newest, secrets[0]!]), [true, false]);
  });
  await t.step("expires_in 0 and an update delete ended secrets", async () => {
    await rotate(service, id, LONGEST_OVERLAP_S);
    await rotate(service, id, 0);
    assert.equal(await storedSecrets(service, id), 1);
    await rotate(service, id, 60);
    assert.equal(await storedSecrets(service, id), 2);
    await service.setClock(AT + 1_000_000);
    const updated = await service.call("PUT", `${ENDPOINTS}/${id}`, { body: { description: "x" } });
    assert.equal(updated.status, 200, updated.text);
    assert.equal(await storedSecrets(service, id), 1);
  });
});

webhookCase("POST /rotate_secret at once leaves five secrets", async (_t, service, hooks) => {
  await using second = startSecondService(service);
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
  assert.equal(await storedSecrets(service, id), MAX_SECRETS);
  const arrival = await deliver(service, hooks.arrivals);
  assert.equal(arrival.headers.get("Payment-Signature")!.split("v1=").length, 1 + MAX_SECRETS);
});
