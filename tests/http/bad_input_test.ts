/** Malformed paths, queries and headers get a documented 4xx, never a 500, and store nothing. */

import assert from "node:assert/strict";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { createSandboxFunction } from "../../shared/functions/sandbox_function.ts";
import type { TestService } from "../support/service/service.ts";
import { bodyOf, pathOf, ROUTES } from "../support/http/routes.ts";
import {
  assertRefused,
  PAYMENTS,
  REFUNDS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";
import { rowCounts } from "../support/database/payment_records.ts";

const V1 = "/api-v1-payments/v1";
const ID = "0".repeat(26);
/** Makes a URL of nearly the most characters. */
const LONG = "a".repeat(8_000);

/** Texts in the place of an id: of another kind or form, or with characters that are no text. */
const IDS = [
  ...[`pay_${ID}`, `re_${ID}`, "pay_", "pay_1", `pay_${ID}0`, `PAY_${ID}`, `pay_${LONG}`],
  ...["x", "1", "4242424242424242", "__proto__", ":id", "'%3b--", "%25", "%20", "%f0%9f%98%80"],
  // U+0000, and a line break that would begin another header.
  ...["%00", `pay_${ID}%00`, "%0d%0aX-Injected:%201"],
  // Malformed escapes, invalid UTF-8, a surrogate, an escaped slash and an escaped question mark.
  ...["%", "%e", "%zz", "%ff%fe", "%ed%a0%80", "a%2fb", "a%3fb"],
];

serviceCase("a malformed path", async (t, service) => {
  const before = await service.count("payments");
  for (const route of ROUTES.filter(([, path]) => path.includes(":"))) {
    await t.step(`${route[0]} ${route[1]} with ${IDS.length} ids that do not exist`, async () => {
      for (const id of IDS) {
        const body = route[0] === "GET" ? undefined : bodyOf(route[0], route[1]);
        const response = await service.call(route[0], pathOf(route, id), { body });
        assert.equal(response.headers.get("X-Injected"), null);
        // Nearly any text is the id of a customer.
        if (response.status === 200 && response.body.object === "customer") continue;
        if (route[1].includes("/customers/")) {
          assertRefused(response, "invalid_parameter", "customer");
        } else assertRefused(response, "not_found");
      }
    });
  }
  const unknown = [
    "/api-v1-payments",
    "/api-v1-payments/v1",
    "/api-v1-payments/v2/payments",
    `${PAYMENTS}/`,
    `${PAYMENTS}/pay_${ID}/`,
    `${PAYMENTS}/pay_${ID}/refund/x`,
    `${PAYMENTS}//pay_${ID}`,
    "/api-v1-payments//v1/payments",
    "/api-v1-payments/v1/Payments",
    "/api-v1-payments/v1/payments%2f",
    `/api-v1-payments/v1/${LONG}`,
    `${SANDBOX}/v1/refunds`,
    `${SANDBOX}/v1/sandbox/pay_${ID}/advance`,
  ];
  for (const path of unknown) {
    await t.step(`${path.slice(0, 60)} is not a route`, async () => {
      for (const method of ["GET", "POST"]) {
        const response = await service.call(method, path);
        assertRefused(response, "not_found");
        await followHint(service, response.body.error.message);
        assertRefused(await service.call(method, path, { key: null }), "unauthorized");
      }
    });
  }
  await t.step("none of them stores a payment", async () => {
    assert.equal(await service.count("payments"), before);
  });
});

/** Asserts that the message of a 404 names an address, and that the address is served. */
async function followHint(service: TestService, message: string): Promise<void> {
  const [, path] = message.match(/http:\/\/127\.0\.0\.1:54321\/functions\/v1(\S+)/) ?? [];
  assert.ok(path, `no address: ${message}`);
  const { text } = await service.call("GET", path.replace("{id}", `pay_${ID}`));
  assert.doesNotMatch(text, /Nothing is served/, message);
}

serviceCase("the method of a request", async (t, service) => {
  const paths = [...new Set(ROUTES.map(([, path]) => path))];
  for (const path of paths) {
    const allowed = ROUTES.filter((route) => route[1] === path).map(([method]) => method).sort();
    await t.step(`${path} allows ${allowed.join(", ")}, and a 405 names them`, async () => {
      for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PURGE"]) {
        if (allowed.includes(method)) continue;
        const response = await service.call(method, pathOf([method, path, ""]));
        assertRefused(response, "method_not_allowed");
        assert.equal(response.headers.get("Allow"), allowed.join(", "));
      }
    });
    await t.step(
      `HEAD of ${path} is ${allowed.includes("GET") ? "a GET" : "405"} without body`,
      async () => {
        const url = `http://localhost${pathOf(["HEAD", path, ""])}`;
        const handle = path.startsWith(SANDBOX)
          ? createSandboxFunction(service.deps)
          : createPaymentsFunction(service.deps);
        for (const key of [service.key.text, "none"]) {
          const headers = { Authorization: `Bearer ${key}` };
          const [head, get] = await Promise.all(
            ["HEAD", "GET"].map((method) => handle(new Request(url, { method, headers }))),
          );
          assert.deepEqual([head!.status, await head!.text()], [get!.status, ""]);
          const { byteLength } = await get!.arrayBuffer();
          assert.equal(head!.headers.get("Content-Length"), String(byteLength));
        }
      },
    );
  }
});

/** Malformed values of the parameters of a list. openapi_fuzz_test.ts has others of each. */
const VALUES: [path: string, param: string, values: string[]][] = [
  [PAYMENTS, "limit", [
    ...["-1", "1.0", "1e1", "0x1", "+1", "%201", "ten", "٣", "%00", "1".repeat(8_000)],
    ...["1&limit=1", "1&limit=2"],
  ]],
  [PAYMENTS, "starting_after", [
    ...[`re_${ID}`, `pay_${ID}`, `pay_${LONG}`, `pay_${"A".repeat(26)}`, "12", `pay_${ID}%00`],
    "%ff",
  ]],
  [PAYMENTS, "currency", ["XXZ", "EURO", LONG]],
  [PAYMENTS, "reference", [LONG, "r".repeat(256), "a%00b", "4242424242424242"]],
  [PAYMENTS, "created_after", ["yesterday", "2026-01-01", "9999-12-31T23:59:59-14:00"]],
  [PAYMENTS, "created_before", ["2026-02-30T00:00:00Z", "1767225600", "2026-02-01T00:00:00"]],
  [PAYMENTS, "customer_id", ["u".repeat(65), "u%00"]],
  [PAYMENTS, "customer", ["ada", "ada@example.com%00", `${"a".repeat(250)}@example.com`]],
  [REFUNDS, "payment_id", [`re_${ID}`, "%00"]],
  [`${V1}/events`, "transfer_id", [`tr_${ID}&payment_id=pay_${ID}`]],
  [`${V1}/ledger_entries`, "transfer_id", [`tr_${ID}&payment_id=pay_${ID}`]],
  [`${V1}/webhook_deliveries`, "transfer_id", [`tr_${ID}&payment_id=pay_${ID}`]],
];
const QUERIES: [path: string, query: string, param: string][] = [
  ...VALUES.flatMap(([path, param, values]) =>
    values.map((value) => [path, `${param}=${value}`, param] as [string, string, string])
  ),
  [PAYMENTS, "%", "%"],
  [PAYMENTS, "%zz=%zz", "%zz"],
  [PAYMENTS, "&&=&", "…"],
  [PAYMENTS, "toString=1&constructor=2", "toString"],
  [PAYMENTS, `${LONG}=1`, "a".repeat(100)],
];

/** Queries that match nothing. */
const HARMLESS: [path: string, query: string][] = [
  [PAYMENTS, "reference=%ff%fe"],
  [PAYMENTS, "reference=%ed%a0%80"],
  [PAYMENTS, "reference='%3bdrop table pay.payments--"],
  [PAYMENTS, "created_after=0001-01-01T00:00:00Z"],
  [PAYMENTS, "created_before=9999-12-31T13:59:59.999-10:00"],
  [REFUNDS, `payment_id=pay_${ID}`],
];

serviceCase("a query of a list", async (t, service) => {
  for (const [path, query, param] of QUERIES) {
    await t.step(`${query.slice(0, 60)} is 400 and names ${param}`, async () => {
      const response = await service.call("GET", `${path}?${query}`);
      assertRefused(response, "invalid_parameter", param);
    });
  }
  for (const [path, query] of HARMLESS) {
    await t.step(`${query.slice(0, 60)} finds nothing`, async () => {
      const { status, body } = await service.call("GET", `${path}?${query}`);
      assert.deepEqual([status, body.data], [200, []]);
    });
  }
});

/** Refused idempotency keys. idempotency_test.ts has those that are taken. */
const KEYS: [name: string, key: string][] = [
  ["no character", ""],
  ["256 characters", "a".repeat(256)],
  ["60 000 characters", LONG],
  ["a space", " "],
  ["a space within", "a b"],
  ["a tab within", "a\tb"],
  ["a letter outside of ASCII", "é"],
  ["U+007F", "\x7f"],
  ["a card number", "4242424242424242"],
  ["two headers' worth", "a, b"],
];

serviceCase("an Idempotency-Key", async (t, service) => {
  for (const [name, idempotency_key] of KEYS) {
    await t.step(`of ${name} is 400`, async () => {
      for (
        const [method, path, body] of [
          ["POST", PAYMENTS, { amount: 1, currency: "EUR" }],
          ["PUT", `/api-v1-payments/v1/webhook_endpoints/whe_${ID}`, {}],
          ["DELETE", `/api-v1-payments/v1/webhook_endpoints/whe_${ID}`, {}],
        ] as const
      ) {
        const before = await rowCounts(service);
        const response = await service.call(method, path, { body, idempotency_key });
        assertRefused(response, "invalid_parameter", "Idempotency-Key");
        assert.deepEqual(await rowCounts(service), before);
      }
    });
  }
  await t.step("is ignored on a GET", async () => {
    await service.get(PAYMENTS, { idempotency_key: "not visible" });
  });
});
