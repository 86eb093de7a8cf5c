/**
 * Two instances of `deno task serve` behind HAProxy with the configuration of examples/production
 * and TLS: a stop costs no request, and a killed instance at most one more attempt of some.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { testWith } from "../support/common/programs.ts";
import { freePort } from "../support/common/free_port.ts";
import { until } from "../support/common/until.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { openStage } from "../support/production/production_stage.ts";
import { keepConnection, rawConnection } from "../support/proxy/raw_connection.ts";
import { findHaproxy, runHaproxy } from "../support/proxy/haproxy.ts";
import { HOOKS_CERTIFICATE, TEST_AUTHORITY } from "../support/webhook/test_certificates.ts";

const PAYMENTS = "/functions/v1/api-v1-payments/v1/payments";
const CLIENTS = 8;
/** Longer than the two failed checks after which the proxy leaves an instance out. */
const NOTICED_MS = 1_500;

/** Limits of the proxy in this test, in place of 10 s and 1 000. */
const REQUEST_MS = 1_500;
const NETWORK_REQUESTS = 20;

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
      ["timeout http-request 10s", `timeout http-request ${REQUEST_MS}ms`],
      ["sc1_conn_cur gt 1000", `sc1_conn_cur gt ${NETWORK_REQUESTS}`],
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

testWith(
  "haproxy",
  await findHaproxy() !== null,
  "two instances of deno task serve behind HAProxy",
  async (t) => {
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

    await t.step("bodies that do not arrive wait at the proxy, limited by network", async () => {
      const { port } = new URL(origin);
      const slow = await Promise.all(Array.from({ length: NETWORK_REQUESTS + 5 }, async () => {
        const connection = await Deno.connectTls({ port: Number(port), caCerts: [TEST_AUTHORITY] });
        const { send, close } = rawConnection(connection);
        const line = `POST ${PAYMENTS}`;
        const response = await send({ line, headers: { "Content-Length": "100" }, body: "{" });
        close();
        return response;
      }));
      const refused = slow.filter((text) => text.startsWith("HTTP/1.1 429 "));
      assert.equal(refused.length, 5);
      for (const text of slow) {
        assert.match(
          text,
          /^HTTP\/1\.1 (400 [^]*"invalid_json"|429 [^]*retry-after: 1\r[^]*"rate_)/i,
        );
        // An instance has not seen the request.
        assert.doesNotMatch(text, /^request-id/im);
      }
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

    await t.step("a request on a kept connection goes to the other instance", async () => {
      instances[1] = await launch(ports[1]);
      await wait(NOTICED_MS);
      const { port } = new URL(origin);
      const Authorization = `Bearer ${key}`;
      const kept = await Promise.all(
        Array.from({ length: CLIENTS }, async () =>
          await keepConnection(
            await Deno.connectTls({ port: Number(port), caCerts: [TEST_AUTHORITY] }),
            { line: `GET ${PAYMENTS}?limit=1`, headers: { Authorization } },
          )),
      );
      const before = await paid();
      instances[1]!.send("SIGSTOP");
      const responses = kept.map(({ send }) =>
        send({
          line: `POST ${PAYMENTS}`,
          headers: {
            Authorization,
            "Content-Type": "application/json",
            "Idempotency-Key": crypto.randomUUID(),
          },
          body: JSON.stringify({ amount: 1000, currency: "EUR" }),
        })
      );
      await wait(100);
      await instances[1]!.end("SIGKILL");
      for (const text of await Promise.all(responses)) assert.match(text, /^HTTP\/1\.1 201 /);
      assert.equal(await paid() - before, CLIENTS);
      for (const { close } of kept) close();
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
);
