/**
 * Several processes of one instance at one port: requests to them share keys, limits and
 * idempotency, each event is delivered once, a killed process is replaced, and all end together.
 */

import assert from "node:assert/strict";
import { childrenOf } from "../support/common/child_processes.ts";
import { pause, until } from "../support/common/until.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { launchStart } from "../support/local/local_start.ts";
import { Workers } from "../../apps/server/local/workers.ts";
import { START_COMMAND } from "../../packages/sandbox/start_command.ts";
import { openStage } from "../support/production/production_stage.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import { PAYMENTS } from "../support/service/service_case.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

const PAYMENT = { amount: 1000, currency: "EUR" };
const REQUESTS = 32;

const INSTANCES = { ignore: Deno.build.os !== "linux" };

/** Waits for the worker that serves in place of the old ones. */
async function newWorker(pid: number, base_url: string, old: number[] = []): Promise<number> {
  const port = Number(new URL(base_url).port).toString(16).toUpperCase().padStart(4, "0");
  const listening = new RegExp(`:${port} 00000000:0000 0A`, "g");
  let worker: number | undefined;
  await until("a worker serves", async () => {
    worker = childrenOf(pid).find((one) => !old.includes(one));
    const sockets = await Deno.readTextFile("/proc/net/tcp");
    return worker !== undefined && sockets.match(listening)?.length === 2;
  });
  return worker!;
}

/** Sends requests at once, each over a connection of its own. */
async function sendAtOnce(
  base_url: string,
  key: string,
  idempotency_key: (index: number) => string,
  count = REQUESTS,
) {
  return await Promise.all(
    Array.from({ length: count }, (_, index) =>
      keyedCall(base_url, "POST", PAYMENTS, {
        key,
        body: PAYMENT,
        idempotency_key: idempotency_key(index),
        headers: { Connection: "close" },
      })),
  );
}

Deno.test("Workers.poolSize() divides the connections of one process, and leaves each two", () => {
  const sizes: [instances: number, size: string | undefined, each: string | undefined][] = [
    [1, undefined, undefined],
    [1, "9", "9"],
    [2, undefined, "2"],
    [2, "9", "5"],
    [64, "4", "2"],
    [2, "x", "x"],
  ];
  for (const [instances, size, each] of sizes) {
    assert.equal(new Workers(START_COMMAND, instances).poolSize(size), each);
  }
});

const unique = () => crypto.randomUUID();
const statuses = (responses: { status: number }[]) => [...new Set(responses.map((r) => r.status))];

Deno.test({
  ...INSTANCES,
  name: "processes at one port share keys and limits, and deliver each event once",
  async fn() {
    await using open = new AsyncDisposableStack();
    const { key, sql, launch, send } = await openStage(open);
    const receiver = open.use(openRecorder(() => 200));
    const instance = await launch(0, { INSTANCES: "2", RATE_LIMIT_PER_SECOND: "50" });
    assert.match(instance.output(), /; this instance runs the jobs; 2 processes\n$/);
    const { pid, base_url } = instance;
    const worker = await newWorker(pid, base_url);

    // The worker's part of the requests waits while it is stopped.
    Deno.kill(worker, "SIGSTOP");
    let answered = 0;
    const sending = Promise.all(
      Array.from({ length: REQUESTS }, async () => {
        const [response] = await sendAtOnce(base_url, key, unique, 1);
        answered++;
        return response!;
      }),
    );
    await until("this process answers", () => answered > 0);
    await pause(500);
    assert.ok(answered < REQUESTS, `${answered}`);
    Deno.kill(worker, "SIGCONT");
    assert.deepEqual(statuses(await sending), [201]);

    const same = await sendAtOnce(base_url, key, () => "one-order");
    assert.deepEqual(statuses(same), [201]);
    assert.equal(new Set(same.map(({ body }) => body.id)).size, 1);

    await send(instance, "webhook_endpoints", { url: receiver.url("/hooks"), events: ["*"] });
    assert.deepEqual(statuses(await sendAtOnce(base_url, key, unique)), [201]);
    await until("every event arrives", () => receiver.arrivals.length >= REQUESTS);
    await pause(200);
    assert.equal(receiver.arrivals.length, REQUESTS);

    // A burst is twice the limit of a second.
    const many = await sendAtOnce(base_url, key, unique, 500);
    const refused = many.filter(({ status }) => status === 429).length;
    assert.ok(refused > 0 && refused < 500, `${refused}`);

    await sql`update pay.api_key_secrets set revoked_at = now()`;
    assert.deepEqual(statuses(await sendAtOnce(base_url, key, unique)), [401]);
    const { code, output } = await instance.end("SIGTERM");
    assert.equal(code, 0, output);
    assert.throws(() => Deno.kill(worker, "SIGCONT"), Deno.errors.NotFound);
  },
});

Deno.test({
  ...INSTANCES,
  name: "a killed process is replaced, and all end with the first",
  async fn() {
    await using open = new AsyncDisposableStack();
    const { key, launch } = await openStage(open);
    const instance = await launch(0, { INSTANCES: "2" });
    const { pid, base_url } = instance;
    const worker = await newWorker(pid, base_url);
    Deno.kill(worker, "SIGKILL");
    await until("it has ended", () => childrenOf(pid).length === 0);
    assert.deepEqual(statuses(await sendAtOnce(base_url, key, unique)), [201]);
    const next = await newWorker(pid, base_url, [worker]);
    assert.deepEqual(statuses(await sendAtOnce(base_url, key, unique)), [201]);
    const { output } = await instance.end("SIGKILL");
    assert.match(output, /"fault":"worker ended"/);
    await until("the worker has ended", () => !isRunning(next));
  },
});

function isRunning(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return true;
  } catch {
    return false;
  }
}

Deno.test({
  ...INSTANCES,
  name: "deno task start --instances 2 serves the sites and writes one log",
  fn: () =>
    withTemporaryFolder(async (data_dir) => {
      const command = [...START_COMMAND, "--instances", "2"];
      const start = await launchStart({ DATA_DIR: data_dir }, command);
      const { pid, base_url, test_key } = start;
      await newWorker(pid, base_url);
      assert.deepEqual(statuses(await sendAtOnce(base_url, test_key, unique)), [201]);
      for (let i = 0; i < REQUESTS; i++) {
        const response = await fetch(base_url.replace("/functions/v1", "/"), {
          headers: { Connection: "close" },
        });
        assert.match(await response.text(), /^Payments API/);
      }
      const { code, output } = await start.end();
      assert.equal(code, 0, output);
      const log = await Deno.readTextFile(`${data_dir}/server.log`);
      const lines = log.trimEnd().split("\n").map((line) => JSON.parse(line));
      assert.equal(lines.filter(({ status }) => status === 201).length, REQUESTS);
    }),
});
