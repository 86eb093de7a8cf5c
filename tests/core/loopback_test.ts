/** The host names of the own machine are in one list. */

import assert from "node:assert/strict";
import { isLoopback, ownHosts } from "../../shared/core/loopback.ts";

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
