/**
 * The URL rules and address lists with the vectors of tests/vectors/endpoint_urls.json. The vectors
 * are written from the registries and the WHATWG rules, independently of the code.
 */
import assert from "node:assert/strict";
import {
  checkEndpointUrl,
  ENDPOINT_URL_REASONS,
  EndpointUrlError,
} from "../../shared/core/endpoint_url.ts";
import { isPrivateAddress, isPublicAddress } from "../../shared/core/public_address.ts";
import { ADDRESS_VECTORS, URL_VECTORS, type UrlVector } from "../support/core/vectors.ts";

for (const vector of URL_VECTORS) {
  const place = vector.allow_private ? " with allow_private" : "";
  const shown = JSON.stringify(vector.url).slice(0, 70);
  Deno.test(`checkEndpointUrl() ${shown}${place}: ${vector.result}`, () => {
    assert.equal(judge(vector), vector.result);
    if (vector.result !== "ok") return;
    const { href, host, port } = checkEndpointUrl(vector.url, rulesOf(vector));
    assert.equal(href, vector.href ?? vector.url);
    const url = new URL(href);
    assert.equal(host, url.hostname.replace(/[[\]]/g, ""));
    assert.equal(port, Number(url.port) || (url.protocol === "https:" ? 443 : 80));
    // The stored form is accepted again without a change.
    assert.equal(checkEndpointUrl(href, rulesOf(vector)).href, href);
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
