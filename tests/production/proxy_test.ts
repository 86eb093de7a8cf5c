/**
 * Two instances of `deno task serve` behind HAProxy with the configuration of examples/production
 * and TLS: a stop costs no request, and a killed instance at most one more attempt of some.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { openStage } from "../support/production/production_stage.ts";
import { findHaproxy, runHaproxy } from "../support/proxy/haproxy.ts";
import { HOOKS_CERTIFICATE, TEST_AUTHORITY } from "../support/webhook/test_certificates.ts";

const PAYMENTS = "/functions/v1/api-v1-payments/v1/payments";
const CLIENTS = 8;
/** Longer than the two failed checks after which the proxy leaves an instance out. */
const NOTICED_MS = 1_500;

const has_haproxy = await findHaproxy() !== null;
const in_ci = Deno.env.get("CI") !== undefined;
if (!has_haproxy) {
  console.warn("deno task serve is not tested behind a proxy unless CI is set: haproxy is missing");
}

/** Starts the proxy of the example with other ports and another certificate. */
async function openProxy(open: AsyncDisposableStack, ports: readonly number[]) {
  const folder = await Deno.makeTempDir({ prefix: "payments-proxy-" });
  open.defer(() => Deno.remove(folder, { recursive: true }));
  const certificate = join(folder, "payments.pem");
  await Deno.writeTextFile(certificate, HOOKS_CERTIFICATE.cert + HOOKS_CERTIFICATE.key);
  const [plain, secure] = [freePort(), freePort()];
  let config = await readProjectFile("examples/production/haproxy.cfg");
  for (
    const [own, other] of [
      ["bind :80\n", `bind 127.0.0.1:${plain}\n`],
      ["bind :443 ", `bind 127.0.0.1:${secure} `],
      ["/etc/haproxy/payments.pem", certificate],
      ["127.0.0.1:8001", `127.0.0.1:${ports[0]}`],
      ["127.0.0.1:8002", `127.0.0.1:${ports[1]}`],
      ["    log /dev/log local0\n    user haproxy\n    group haproxy\n", ""],
    ] as const
  ) {
    assert.equal(config.split(own).length, 2, own);
    config = config.replace(own, other);
  }
  await Deno.writeTextFile(join(folder, "haproxy.cfg"), config);
  const proxy = await runHaproxy(join(folder, "haproxy.cfg"), secure);
  open.defer(proxy.close);
  const client = Deno.createHttpClient({ caCerts: [TEST_AUTHORITY] });
  open.defer(() => client.close());
  return { client, plain: `http://127.0.0.1:${plain}`, origin: `https://127.0.0.1:${secure}` };
}

Deno.test({
  name: "two instances of deno task serve behind HAProxy",
  ignore: !has_haproxy && !in_ci,
  fn: async (t) => {
    await using open = new AsyncDisposableStack();
    const { key, sql, launch } = await openStage(open);
    const ports = [freePort(), freePort()];
    const instances = await Promise.all(ports.map((port) => launch(port)));
    const { client, plain, origin } = await openProxy(open, ports);
    const pay = async (order?: string) => {
      const response = await fetch(origin + PAYMENTS, {
        method: "POST",
        client,
        headers: {
          Authorization: `Bearer ${key}`,
          "Content-Type": "application/json",
          ...(order !== undefined && { "Idempotency-Key": order }),
        },
        body: JSON.stringify({ amount: 1000, currency: "EUR" }),
      });
      return { status: response.status, headers: response.headers, text: await response.text() };
    };
    const paid = async () => Number((await sql`select count(*) from pay.payments`)[0]!.count);
    /** Pays in parallel until the work ends, and returns the number of payments. */
    const underLoad = async (work: Promise<unknown>, payOne: () => Promise<void>) => {
      let is_over = false;
      work.finally(() => is_over = true);
      let count = 0;
      await Promise.all(Array.from({ length: CLIENTS }, async () => {
        for (; !is_over; count++) await payOne();
      }));
      await work;
      return count;
    };
    const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

    await t.step("the proxy redirects to TLS and hides the internal paths", async () => {
      const moved = await fetch(`${plain}/path`, { redirect: "manual" });
      await moved.body?.cancel();
      assert.equal(moved.status, 308);
      assert.match(moved.headers.get("Location")!, /^https:.*\/path$/);
      const internal = await fetch(
        `${origin}/functions/v1/api-v1-payments/internal/relay`,
        { method: "POST", client },
      );
      await internal.body?.cancel();
      assert.equal(internal.status, 404);
      assert.equal(internal.headers.get("Request-Id"), null);
    });

    await t.step("a stop costs no request, also without an idempotency key", async () => {
      const before = await paid();
      const stop = wait(300).then(() => instances[0]!.end("SIGTERM"));
      const count = await underLoad(stop, async () => {
        const { status, text } = await pay();
        assert.equal(status, 201, text);
      });
      const { code, output } = await stop;
      assert.equal(code, 0, output);
      assert.equal(await paid() - before, count);
    });

    await t.step("a killed instance costs at most one more attempt", async () => {
      instances[0] = await launch(ports[0]);
      await wait(NOTICED_MS);
      const before = await paid();
      const kill = wait(300).then(() => instances[1]!.end("SIGKILL")).then(() => wait(600));
      const count = await underLoad(kill, async () => {
        const order = crypto.randomUUID();
        // A response of which only the head has arrived is broken: no proxy can take it back.
        let response = await pay(order).catch((error: TypeError) => error);
        if (response instanceof TypeError || response.status === 503) {
          if (!(response instanceof TypeError)) {
            assert.equal(response.headers.get("Retry-After"), "1");
          }
          response = await pay(order);
        }
        assert.equal(response.status, 201, response.text);
      });
      assert.equal(await paid() - before, count);
    });

    await t.step("without an instance every request is 503 with Retry-After", async () => {
      await instances[0]!.end("SIGKILL");
      const { status, headers, text } = await pay();
      assert.deepEqual([status, headers.get("Retry-After")], [503, "1"]);
      assert.equal(JSON.parse(text).error.code, "service_unavailable");
      await launch(ports[0]);
      await until("the proxy finds the new instance", async () => (await pay()).status === 201);
    });
  },
});
