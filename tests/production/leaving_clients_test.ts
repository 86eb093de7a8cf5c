/**
 * `deno task start` and `deno task serve` with clients that leave: 1 100 without a key at the limit
 * of connections, and one whose request is to lose its connection. The process goes on.
 */

import assert from "node:assert/strict";
import { connect } from "node:http2";
import { CONNECTION_LIMITS } from "../../apps/server/local/http_connections.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { launchStart } from "../support/local/local_start.ts";
import { openStage } from "../support/production/production_stage.ts";

const PAYMENTS = "/api-v1-payments/v1/payments";
const CLIENTS = CONNECTION_LIMITS.connections + 76;
const ATTACK_MS = 3_000;

interface Target {
  base_url: string;
  key: string;
}

/** Connects, reads a 401 and leaves, with many clients at a time. */
async function leaveAtLimit({ base_url }: Target): Promise<void> {
  const { hostname, port, pathname } = new URL(base_url + PAYMENTS);
  const request = new TextEncoder().encode(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const until = performance.now() + ATTACK_MS;
  let refused = 0;
  await Promise.all(Array.from({ length: CLIENTS }, async () => {
    while (performance.now() < until) {
      const client = await Deno.connect({ hostname, port: Number(port) });
      const head = new Uint8Array(12);
      // The server resets some connections, because there are too many.
      await client.write(request).then(() => client.read(head)).catch(() => {});
      if (new TextDecoder().decode(head) === "HTTP/1.1 401") refused++;
      client.close();
    }
  }));
  assert.ok(refused > CLIENTS / 2, `${refused}`);
}

/** Sends a request over HTTP/2 and leaves before the service ends the connection. */
async function leaveBeforeLoss({ base_url, key }: Target): Promise<void> {
  const { origin, pathname } = new URL(base_url + PAYMENTS);
  for (const leaves_after_ms of [2, 5, 10, 20]) {
    const session = connect(origin).on("error", () => {});
    const stream = session.request({
      ":method": "POST",
      ":path": pathname,
      "authorization": `Bearer ${key}`,
      "content-type": "application/json",
      "sandbox-fault": "connection_lost_after",
    }).on("error", () => {});
    stream.end(JSON.stringify({ amount: 1000, currency: "EUR" }));
    await new Promise((resolve) => setTimeout(resolve, leaves_after_ms));
    session.destroy();
  }
}

async function attack(target: Target): Promise<void> {
  await leaveBeforeLoss(target);
  await leaveAtLimit(target);
  const response = await fetch(`${target.base_url}/api-v1-payments/health`);
  assert.equal(response.status, 200, await response.text());
}

Deno.test("deno task start outlives clients that leave", () =>
  withTemporaryFolder(async (data_dir) => {
    const start = await launchStart({ DATA_DIR: data_dir });
    try {
      await attack({ base_url: start.base_url, key: start.test_key });
    } finally {
      const { code, output } = await start.end();
      assert.equal(code, 0, output);
    }
    assert.doesNotMatch(await Deno.readTextFile(`${data_dir}/server.log`), /"uncaught/);
  }));

Deno.test("deno task serve outlives clients that leave", async () => {
  await using open = new AsyncDisposableStack();
  const { key, launch } = await openStage(open);
  const instance = await launch();
  await attack({ base_url: instance.base_url, key });
  const { code, output } = await instance.end("SIGTERM");
  assert.equal(code, 0, output);
  assert.doesNotMatch(output, /"uncaught/);
});
