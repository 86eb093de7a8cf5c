/** The encryption of the connection to the database, by host and `sslmode`. */

import assert from "node:assert/strict";
import { driverEncryption, encryptionOf } from "../../shared/store/database_encryption.ts";

/** Host and query of a URL, its encryption mode, and the `ssl` option of postgres.js. */
const CASES: readonly [string, string, string | false][] = [
  ["127.0.0.1:54322/d", "disable", false],
  ["127.0.0.2/d", "disable", false],
  ["localhost/d", "disable", false],
  ["[::1]:5432/d", "disable", false],
  ["localhost/d?sslmode=require", "require", "require"],
  // The host inside `supabase start`, and a host on Supabase.
  ["db:5432/d", "prefer", "prefer"],
  ["db.ref.supabase.co/d", "prefer", "prefer"],
  ["localhost.example.com/d", "prefer", "prefer"],
  ["db.ref.supabase.co/d?sslmode=disable", "disable", false],
  ["db.ref.supabase.co/d?sslmode=allow", "prefer", "prefer"],
  ["db.ref.supabase.co/d?sslmode=prefer", "prefer", "prefer"],
  ["db.ref.supabase.co/d?sslmode=require", "require", "require"],
  ["db.ref.supabase.co/d?sslmode=verify-ca", "verify", "verify-full"],
  ["db.ref.supabase.co/d?sslmode=verify-full", "verify", "verify-full"],
];

for (const [place, mode, ssl] of CASES) {
  Deno.test(`encryptionOf() ${place} is ${mode}`, () => {
    const url = `postgres://user:password@${place}`;
    assert.equal(encryptionOf(url), mode);
    assert.deepEqual(driverEncryption(url), { ssl });
  });
}

Deno.test("encryptionOf() refuses an unknown sslmode, and its message has no password", () => {
  assert.throws(() => encryptionOf("postgres://u:hush@h/d?sslmode=on"), ({ message }: Error) => {
    assert.match(message, /^sslmode "on" does not exist/);
    assert.doesNotMatch(message, /hush/);
    return true;
  });
});
