/**
 * The settings of the local start, and the files of its data folder: the credentials, private and
 * readable in every state of the file, and the log.
 */

import assert from "node:assert/strict";
import { readSettings, SettingsError } from "../../apps/server/data_dir/settings.ts";
import {
  credentialsPath,
  readCredentials,
  writeCredentials,
} from "../../apps/server/data_dir/credentials.ts";
import { openServerLog } from "../../apps/server/local/server_log.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

const read = (env: Record<string, string>) => readSettings((name) => env[name], "/project");

const DEFAULTS = {
  port: 54321,
  data_dir: "/project/.local",
  database_url: null,
  log_to_stdout: false,
};
const GIVEN = {
  port: 0,
  data_dir: "/srv/pay",
  database_url: "postgresql://u@h/d",
  log_to_stdout: true,
};
/** Variables, and the settings that they give. DATA_DIR is relative to the project. */
const READ_FROM: [env: Record<string, string>, settings: object][] = [
  [{}, DEFAULTS],
  [{ PORT: "", DATA_DIR: " ", DATABASE_URL: "", LOG: "" }, DEFAULTS],
  [{ PORT: "0", DATA_DIR: "/srv/pay", DATABASE_URL: "postgresql://u@h/d", LOG: "1" }, GIVEN],
  [{ DATA_DIR: "data/one" }, { ...DEFAULTS, data_dir: "/project/data/one" }],
];
for (const [env, settings] of READ_FROM) {
  Deno.test(`readSettings() of ${JSON.stringify(env)}`, () =>
    assert.deepEqual(read(env), settings));
}

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

const CREDENTIALS = {
  base_url: "http://127.0.0.1:1",
  test_key: "sk_test_1",
  live_key: "sk_live_1",
};

Deno.test("writeCredentials() replaces a file with open permissions", () =>
  withTemporaryFolder(async (data_dir) => {
    await Deno.mkdir(data_dir);
    await Deno.writeTextFile(credentialsPath(data_dir), "{}", { mode: 0o644 });
    writeCredentials(data_dir, CREDENTIALS);
    assert.equal((await Deno.stat(credentialsPath(data_dir))).mode! & 0o777, 0o600);
    const text = await Deno.readTextFile(credentialsPath(data_dir));
    assert.deepEqual(JSON.parse(text), CREDENTIALS);
  }));

/** The content of the file, and what readCredentials() finds. */
const READ: readonly [string, string | null, object][] = [
  ["no file", null, {}],
  ["no JSON", "sk_test_1", {}],
  ["null", "null", {}],
  ["keys that are not text", '{"test_key":1,"live_key":null}', {}],
  ["one key", '{"test_key":"sk_test_1"}', { test_key: "sk_test_1" }],
  ["all", JSON.stringify(CREDENTIALS), CREDENTIALS],
];

for (const [criterion, text, expected] of READ) {
  Deno.test(`readCredentials() ${criterion}`, () =>
    withTemporaryFolder(async (data_dir) => {
      await Deno.mkdir(data_dir);
      if (text !== null) await Deno.writeTextFile(credentialsPath(data_dir), text);
      assert.deepEqual(await readCredentials(data_dir), expected);
    }));
}

Deno.test("openServerLog() appends every line in order, in a private file", () =>
  withTemporaryFolder(async (path) => {
    for (const lines of [["one", "two"], ["three"]]) {
      const log = openServerLog(path);
      for (const line of lines) log.write(line);
      log.close();
    }
    assert.equal(await Deno.readTextFile(path), "one\ntwo\nthree\n");
    assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
  }));

Deno.test("openServerLog() starts a new file at 64 MiB and keeps the previous one", () =>
  withTemporaryFolder(async (path) => {
    await Deno.writeTextFile(path, "old\n");
    await Deno.truncate(path, 64 * 1024 * 1024);
    const log = openServerLog(path);
    log.write("last");
    log.close();
    assert.equal((await Deno.stat(path)).size, 0);
    assert.equal((await Deno.stat(`${path}.1`)).size, 64 * 1024 * 1024 + "last\n".length);
  }));
