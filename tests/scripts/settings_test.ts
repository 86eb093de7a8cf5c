/** The settings of the local start: defaults, the variables that set them, and refused values. */

import assert from "node:assert/strict";
import { readSettings, SettingsError } from "../../apps/server/data_dir/settings.ts";

const read = (env: Record<string, string>) => readSettings((name) => env[name], "/project");

Deno.test("readSettings() has defaults", () => {
  const expected = {
    port: 54321,
    data_dir: "/project/.local",
    database_url: null,
    log_to_stdout: false,
  };
  assert.deepEqual(read({}), expected);
  assert.deepEqual(read({ PORT: "", DATA_DIR: " ", DATABASE_URL: "", LOG: "" }), expected);
});

Deno.test("readSettings() reads the variables", () => {
  const env = { PORT: "0", DATA_DIR: "/srv/pay", DATABASE_URL: "postgresql://u@h/d", LOG: "1" };
  assert.deepEqual(read(env), {
    port: 0,
    data_dir: "/srv/pay",
    database_url: "postgresql://u@h/d",
    log_to_stdout: true,
  });
});

Deno.test("readSettings() takes DATA_DIR relative to the project", () => {
  assert.equal(read({ DATA_DIR: "data/one" }).data_dir, "/project/data/one");
});

/** A variable and a value that is refused. The message names the variable. */
const REFUSED: readonly [string, string][] = [
  ["PORT", "abc"],
  ["PORT", "-1"],
  ["PORT", "65536"],
  ["PORT", "80.5"],
  ["PORT", "0x50"],
  ["PORT", "1e3"],
  ["DATABASE_URL", "host/database"],
  ["DATABASE_URL", "mysql://u:hush@h/d"],
  ["LOG", "yes"],
];

for (const [name, value] of REFUSED) {
  Deno.test(`readSettings() refuses ${name}=${value}`, () => {
    assert.throws(() => read({ [name]: value }), (error) => {
      assert(error instanceof SettingsError);
      assert(error.message.startsWith(name));
      assert(!error.message.includes("hush"), "a password must not be repeated");
      return true;
    });
  });
}
