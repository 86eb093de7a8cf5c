/** Sealed texts open with their own key and context, and with no other. */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Vault } from "../../shared/core/vault.ts";

const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");
const TEXT = '{"iban":"DE89370400440532013000","holder_name":"Müller"}';

Deno.test("Vault seals and opens", async (t) => {
  const vault = Vault.read(`k1:${key(1)}`);
  await t.step("the same text, differently each time", async () => {
    const [a, b] = [await vault.seal(TEXT, "tr_1"), await vault.seal(TEXT, "tr_1")];
    assert.equal(await vault.open(a, "tr_1"), TEXT);
    assert.notEqual(a.sealed, b.sealed);
    assert.ok(!Buffer.from(a.sealed, "base64").toString("latin1").includes("DE89"));
  });
  await t.step("after a rotation, also what the former key has sealed", async () => {
    const sealed = await vault.seal(TEXT, "tr_1");
    const rotated = Vault.read(`k2:${key(2)}, k1:${key(1)}`);
    assert.equal(await rotated.open(sealed, "tr_1"), TEXT);
    assert.equal((await rotated.seal(TEXT, "tr_1")).key_id, "k2");
  });
  await t.step("nothing in another context, with another key, or changed", async () => {
    const sealed = await vault.seal(TEXT, "tr_1");
    await assert.rejects(vault.open(sealed, "tr_2"));
    await assert.rejects(Vault.read(`k1:${key(2)}`).open(sealed, "tr_1"));
    await assert.rejects(Vault.read(`k2:${key(2)}`).open(sealed, "tr_1"), /"k1" is missing/);
    const { length } = Buffer.from(sealed.sealed, "base64");
    for (const at of [0, 15, length - 1]) {
      const bytes = Buffer.from(sealed.sealed, "base64");
      bytes[at]! ^= 1;
      await assert.rejects(vault.open({ ...sealed, sealed: bytes.toString("base64") }, "tr_1"));
    }
  });
});

const REFUSED = ["", "k1", `k1:${key(1).slice(4)}`, `K1:${key(1)}`, `k1:${key(1)},k1:${key(2)}`];

Deno.test("Vault.read() refuses malformed keys, and repeats none", async (t) => {
  for (const text of REFUSED) {
    await t.step(text.slice(0, 10), () => {
      assert.throws(() => Vault.read(text), (error: Error) => {
        assert.match(error.message, /openssl rand -base64 32/);
        return text.length < 10 || !error.message.includes(text.slice(5, 20));
      });
    });
  }
});
