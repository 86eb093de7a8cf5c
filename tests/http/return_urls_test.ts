/**
 * `return_url` of a create (contract §2): https, or http on the own machine with a test key. The
 * payment shows its normal form.
 */

import assert from "node:assert/strict";
import { MAX_RETURN_URL } from "../../shared/schema/limits.ts";
import { rowCounts } from "../support/database/payment_records.ts";
import { assertRefused, card, PAYMENTS, serviceCase } from "../support/service/service_case.ts";

const SHOP = "https://shop.example/return";
const LONGEST = `${SHOP}?x=${"y".repeat(MAX_RETURN_URL - SHOP.length - 3)}`;

const ACCEPTED: [string, url: string][] = [
  ["https", SHOP],
  ["a query and a fragment", `${SHOP}?order=1001&lang=en#paid`],
  ["a port", "https://shop.example:8443/"],
  ["http on localhost", "http://localhost:3000/return"],
  ["http on 127.0.0.1", "http://127.0.0.1/return"],
  ["http on [::1]", "http://[::1]:3000/return"],
  ["https on localhost", "https://localhost/return"],
  [`${MAX_RETURN_URL} characters`, LONGEST],
];

/** URLs that a parser repairs, and their normal forms. */
const REPAIRED: [string, url: string, stored: string][] = [
  ["no path", "https://shop.example", "https://shop.example/"],
  ["upper case", "HTTPS://Shop.Example/Return", "https://shop.example/Return"],
  ["spaces around it", ` ${SHOP}\n`, SHOP],
  ["a line break in it", "https://shop.example/\nreturn", SHOP],
  ["a tab in the scheme", "ht\ttps://shop.example/return", SHOP],
  ["backslashes", "https:\\\\shop.example\\return", SHOP],
  ["no slashes", "https:shop.example/return", SHOP],
  ["a path with dots", "https://shop.example/a/../return", SHOP],
  ["quotes and spaces", 'https://shop.example/a b"<>', "https://shop.example/a%20b%22%3C%3E"],
  ["letters outside ASCII", "https://käse.example/ü", "https://xn--kse-qla.example/%C3%BC"],
  ["the port of the scheme", "https://shop.example:443/return", SHOP],
];

const REFUSED: [string, url: unknown][] = [
  ["http elsewhere", "http://shop.example/return"],
  ["http on a name that begins with localhost", "http://localhost.shop.example/"],
  ["http on a private address", "http://192.168.0.1/"],
  ["a user name", "https://ada@shop.example/return"],
  ["a user name and a password", "https://ada:secret@shop.example/return"],
  ["a password on localhost", "http://:secret@localhost/return"],
  ["javascript:", "javascript:alert(1)"],
  ["data:", "data:text/html,hello"],
  ["an app's own scheme", "shop://return"],
  ["no scheme", "shop.example/return"],
  ["no host", "https://"],
  ["a path", "/return"],
  ["an empty text", ""],
  [`${MAX_RETURN_URL + 1} characters`, `${LONGEST}y`],
  [`${MAX_RETURN_URL + 1} characters in its normal form`, LONGEST.replace(/yyy$/, "éy")],
  ["a number", 5],
  ["null", null],
  ["a list", [SHOP]],
];

serviceCase("POST /v1/payments keeps a return URL", async (t, service) => {
  for (const [name, return_url] of ACCEPTED) {
    await t.step(name, async () => {
      const response = await service.pay({ return_url, ...card("4000 0025 0000 3155") });
      assert.deepEqual([response.status, response.body.return_url], [201, return_url]);
      const { body } = await service.call("GET", `${PAYMENTS}/${response.body.id}`);
      assert.equal(body.return_url, return_url);
    });
  }
  for (const [name, return_url, stored] of REPAIRED) {
    await t.step(`${name}: in its normal form`, async () => {
      const response = await service.pay({ return_url });
      assert.deepEqual([response.status, response.body.return_url], [201, stored], response.text);
      const { body } = await service.call("GET", `${PAYMENTS}/${response.body.id}`);
      assert.equal(body.return_url, stored);
    });
  }
  await t.step("no return URL is null", async () => {
    assert.equal((await service.pay({})).body.return_url, null);
  });
});

serviceCase("POST /v1/payments refuses other return URLs", async (t, service) => {
  const before = await rowCounts(service);
  for (const [name, return_url] of REFUSED) {
    await t.step(name, async () => {
      const response = await service.pay({ return_url }, { idempotency_key: "refused" });
      assertRefused(response, 400, "invalid_parameter", "return_url");
      assert.ok(!response.text.includes("secret"), response.text);
      assert.deepEqual(await rowCounts(service), before);
    });
  }
  const { text: key } = service.live;
  for (const url of ["http://localhost:3000/return", "http://127.0.0.1/", "http://[::1]/"]) {
    await t.step(`${url} with a live key`, async () => {
      const response = await service.pay({ return_url: url }, { key });
      assertRefused(response, 400, "invalid_parameter", "return_url");
      assert.match(response.body.error.message, /https/);
    });
  }
  await t.step("https with a live key reaches the provider", async () => {
    const response = await service.pay({ return_url: SHOP }, { key });
    assertRefused(response, 503, "provider_not_configured");
    assert.deepEqual(await rowCounts(service), before);
  });
});
