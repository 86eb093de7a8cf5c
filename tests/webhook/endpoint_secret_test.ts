/**
 * Secrets of endpoints: duplicates show the same one, the database does not contain them, and
 * older ones sign for a while after a rotation.
 */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { deriveEndpointSecret } from "../../shared/core/webhook_signature.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";
import { addEndpoint, ENDPOINTS, settle } from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { verifiedBy } from "../support/webhook/verified_by.ts";
import { dumpTables } from "../support/database/table_dump.ts";

const URL = "https://hooks.example.com/payments";
const AT = Date.parse("2026-08-09T10:11:12.013Z");

serviceCase("duplicates of a request on endpoints get one response", async (t, service) => {
  const duplicates = async (method: string, path: string, body: unknown) => {
    const responses = await Promise.all(
      Array.from(
        { length: 6 },
        () => service.call(method, path, { body, idempotency_key: `${method}:${path}` }),
      ),
    );
    assert.deepEqual([...new Set(responses.map(({ status, text }) => `${status} ${text}`))], [
      `${responses[0]!.status} ${responses[0]!.text}`,
    ]);
    return responses[0]!;
  };
  const { body: { id } } = await duplicates("POST", ENDPOINTS, { url: URL });
  const path = `${ENDPOINTS}/${id}`;
  const cases: [string, string, string, unknown][] = [
    ["update", "PUT", path, { description: "new" }],
    ["rotate", "POST", `${path}/rotate_secret`, {}],
    ["delete", "DELETE", path, {}],
  ];
  for (const [name, method, url, body] of cases) {
    await t.step(name, async () => {
      assert.equal((await duplicates(method, url, body)).status, 200);
    });
  }
});

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
  await t.step("another master secret derives other secrets", async () => {
    const [row] = await service.sql`select secrets from pay.webhook_endpoints where id = ${id}`;
    const derive = (master_secret: string, { version, salt }: { version: number; salt: string }) =>
      deriveEndpointSecret({ master_secret, endpoint_id: id, version, salt });
    const secrets = [rotated.body.secret, made.body.secret];
    for (const [i, source] of row!.secrets.entries()) {
      assert.notEqual(derive("another master secret of at least 32 bytes", source), secrets[i]);
    }
  });
});

webhookCase(
  "POST /rotate_secret: older secrets sign until they expire",
  async (t, service, hooks) => {
    await service.setClock(AT);
    const { id, secret: first } = await addEndpoint(service, hooks.url("/"));
    const rotate = async (expires_in?: number) => {
      const body = expires_in === undefined ? {} : { expires_in };
      const response = await service.call("POST", `${ENDPOINTS}/${id}/rotate_secret`, { body });
      assert.equal(response.status, 200, response.text);
      return response.body.secret as string;
    };
    const deliver = async () => {
      await service.make({ outcome: "pending" });
      await settle(service);
      return hooks.arrivals.at(-1)!;
    };
    const second = await rotate(60);
    const third = await rotate(600);
    const secrets = [third, second, first];
    const cases: [name: string, after_ms: number, verified: boolean[]][] = [
      ["at once: newest first", 0, [true, true, true]],
      ["before the first has expired", 59_999, [true, true, true]],
      ["when it expires", 60_000, [true, true, false]],
      ["before the second has expired", 599_999, [true, true, false]],
      ["when it expires", 600_000, [true, false, false]],
    ];
    for (const [name, after_ms, verified] of cases) {
      await t.step(`${after_ms} ms, ${name}`, async () => {
        await service.setClock(AT + after_ms);
        const arrival = await deliver();
        assert.deepEqual(await verifiedBy(arrival, secrets), verified);
        const parts = arrival.headers.get("Payment-Signature")!.split(",").slice(1);
        const timestamp = arrival.headers.get("Webhook-Timestamp");
        const expected = secrets.filter((_, i) => verified[i]).map((secret) =>
          "v1=" + createHmac("sha256", secret).update(`${timestamp}.${arrival.text}`).digest("hex")
        );
        assert.deepEqual(parts, expected);
        assert.equal(arrival.headers.get("Webhook-Signature")!.split(" ").length, expected.length);
      });
    }
    await t.step("without expires_in the older secret ends at once", async () => {
      const fourth = await rotate();
      assert.deepEqual(await verifiedBy(await deliver(), [fourth, third]), [true, false]);
    });
  },
);

const OVERLAPS: [expires_in: unknown, status: number][] = [
  [-1, 400],
  [604_801, 400],
  [1.5, 400],
  ["60", 400],
  [null, 400],
  [0, 200],
  [604_800, 200],
];
serviceCase("POST /rotate_secret takes 0 to 604 800 seconds", async (t, service) => {
  const { id } = await addEndpoint(service, URL);
  for (const [expires_in, status] of OVERLAPS) {
    await t.step(`${JSON.stringify(expires_in)}: ${status}`, async () => {
      const response = await service.call("POST", `${ENDPOINTS}/${id}/rotate_secret`, {
        body: { expires_in },
      });
      assert.equal(response.status, status);
      if (status === 400) assertRefused(response, 400, "invalid_parameter", "expires_in");
    });
  }
});
