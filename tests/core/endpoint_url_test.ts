/**
 * The URL rules and address lists with the vectors of tests/vectors/endpoint_urls.json. The vectors
 * are written from the registries and the WHATWG rules, independently of the code. And the names of
 * the own machine, and the parameter of a return URL.
 */

import assert from "node:assert/strict";
import {
  checkEndpointUrl,
  ENDPOINT_URL_REASONS,
  EndpointUrlError,
} from "../../shared/core/endpoint_url.ts";
import { isLoopback, ownHosts } from "../../shared/core/loopback.ts";
import { isPrivateAddress, isPublicAddress } from "../../shared/core/public_address.ts";
import { withPaymentId } from "../../shared/core/return_url.ts";
import { ADDRESS_VECTORS, URL_VECTORS, type UrlVector } from "../support/core/vectors.ts";

for (const vector of URL_VECTORS) {
  const place = vector.allow_private ? " with allow_private" : "";
  const shown = JSON.stringify(vector.url).slice(0, 70);
  Deno.test(`checkEndpointUrl() ${shown}${place}: ${vector.result}`, () => {
    assert.equal(judge(vector), vector.result);
    if (vector.result !== "ok") return;
    const { url: { href }, host, port } = checkEndpointUrl(vector.url, rulesOf(vector));
    assert.equal(href, vector.href ?? vector.url);
    const url = new URL(href);
    assert.equal(host, url.hostname.replace(/[[\]]/g, ""));
    assert.equal(port, Number(url.port) || (url.protocol === "https:" ? 443 : 80));
    // The stored form is accepted again without a change.
    assert.equal(checkEndpointUrl(href, rulesOf(vector)).url.href, href);
  });
}

Deno.test("checkEndpointUrl() has a vector for every reason", () => {
  const seen = new Set(URL_VECTORS.map(({ result }) => result));
  assert.deepEqual(ENDPOINT_URL_REASONS.filter((reason) => !seen.has(reason)), []);
});

Deno.test("checkEndpointUrl() refuses a lone surrogate", () => {
  assert.equal(judge({ url: "https://example.com/\ud800", result: "" }), "characters");
});

Deno.test("EndpointUrlError names the attempt and the reason", () => {
  assert.throws(
    () => checkEndpointUrl("https://127.1/", { allow_private: false, own_hosts: [] }),
    { message: 'This URL cannot be used for webhooks: "127.0.0.1" is not a public address' },
  );
});

for (const { ip, result } of ADDRESS_VECTORS) {
  Deno.test(`isPublicAddress() ${JSON.stringify(ip)}: ${result}`, () => {
    assert.equal(isPublicAddress(ip), result === "public");
    assert.equal(isPrivateAddress(ip), result === "private");
  });
}

function judge(vector: UrlVector): string {
  try {
    checkEndpointUrl(vector.url, rulesOf(vector));
    return "ok";
  } catch (error) {
    if (!(error instanceof EndpointUrlError)) throw error;
    return error.reason;
  }
}

function rulesOf(vector: UrlVector) {
  return { allow_private: vector.allow_private ?? false, own_hosts: vector.own_hosts ?? [] };
}

const NAMES = ["127.0.0.1", "localhost", "[::1]"];

for (const name of NAMES) {
  Deno.test(`ownHosts() of ${name} has every name of the machine, with the port`, () => {
    assert.ok(isLoopback(name));
    const hosts = NAMES.map((own) => `${own}:54321`);
    assert.deepEqual(ownHosts(new URL(`http://${name}:54321/functions/v1`)), hosts);
    assert.deepEqual(ownHosts(new URL(`http://${name}/functions/v1`)), NAMES);
  });
}

Deno.test("ownHosts() of a public host is this host", () => {
  assert.ok(!isLoopback("pay.example.com"));
  assert.deepEqual(ownHosts(new URL("https://pay.example.com/functions/v1")), ["pay.example.com"]);
  assert.deepEqual(ownHosts(new URL("https://pay.example.com:8443/")), ["pay.example.com:8443"]);
});

/** The merchant's own query and fragment stay. */
const RETURN_URLS: [url: string, expected: string][] = [
  ["https://shop.example", "https://shop.example/?payment_id=pay_1"],
  ["https://shop.example/back", "https://shop.example/back?payment_id=pay_1"],
  ["https://shop.example/back?", "https://shop.example/back?payment_id=pay_1"],
  ["https://shop.example/back?order=7", "https://shop.example/back?order=7&payment_id=pay_1"],
  ["https://shop.example/back#paid", "https://shop.example/back?payment_id=pay_1#paid"],
  [
    "https://shop.example/back?a=%20+b&a=#/x?y=1",
    "https://shop.example/back?a=%20+b&a=&payment_id=pay_1#/x?y=1",
  ],
  ["http://localhost:3000/ ", "http://localhost:3000/?payment_id=pay_1"],
];

for (const [url, expected] of RETURN_URLS) {
  Deno.test(`withPaymentId() ${JSON.stringify(url)}`, () => {
    assert.equal(withPaymentId(url, { id: "pay_1", checkout_id: null }), expected);
  });
}
