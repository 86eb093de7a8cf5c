/** `GET /health` needs no key and tells whether the database responds. */

import assert from "node:assert/strict";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../shared/functions/sandbox_function.ts";
import { BASE_URL, DOCS_URL, type TestResponse } from "../support/service/service.ts";
import { assertCommonHeaders, assertError } from "../support/http/error_envelope.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { freePort } from "../support/common/free_port.ts";

/** R12: the response comes within this time (security design §3). */
const AWAY_WITHIN_MS = 2_000;

serviceCase("GET /health", async (t, service) => {
  await t.step("requests at the same time share one statement", async () => {
    service.forgetStatements();
    const path = "/api-v1-payments/health";
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => service.call("GET", path, { key: null })),
    );
    for (const { status } of responses) assert.equal(status, 200);
    service.assertStatements(1);
  });
  for (const name of ["api-v1-payments", "api-v1-sandbox"]) {
    await t.step(`${name} is healthy without a key, in one statement`, async () => {
      service.forgetStatements();
      const response = await service.call("GET", `/${name}/health`, { key: null });
      assert.deepEqual([response.status, response.body], [200, { status: "ok" }]);
      assertCommonHeaders(response);
      service.assertStatements(1);
    });
    for (const method of ["POST", "PUT", "DELETE"]) {
      await t.step(`${method} on ${name} needs a key`, async () => {
        const response = await service.call(method, `/${name}/health`, { key: null });
        assertError(response, "unauthorized");
      });
    }
  }
});

Deno.test("GET /health without a database is 503 with Retry-After within 2 s", async (t) => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  // Accepts connections and never responds, like a server process that is stopped.
  const silent: Deno.Conn[] = [];
  const taking = (async () => {
    for await (const connection of listener) silent.push(connection);
  })();
  for (const [name, at] of [["refuses", freePort()], ["is silent", port]] as const) {
    const deps = createDependencies({
      database_url: `postgres://nobody:none@127.0.0.1:${at}/none`,
      base_url: BASE_URL,
      docs_url: DOCS_URL,
      log: () => {},
    });
    for (
      const [prefix, serve] of [
        ["api-v1-payments", createPaymentsFunction(deps)],
        ["api-v1-sandbox", createSandboxFunction(deps)],
      ] as const
    ) {
      await t.step(`${prefix}: the server ${name}`, async () => {
        const started = performance.now();
        const response = await serve(new Request(`http://localhost/${prefix}/health`));
        const { status, headers } = response;
        const text = await response.text();
        assertError(
          { status, headers, text, body: JSON.parse(text) } as TestResponse,
          "service_unavailable",
        );
        assert.ok(performance.now() - started < AWAY_WITHIN_MS);
      });
    }
    await deps.close();
  }
  listener.close();
  await taking.catch(() => {});
  for (const connection of silent) connection.close();
});
