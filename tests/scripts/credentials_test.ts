/**
 * The file with the credentials of the local start: private, and readable in every state of the
 * file.
 */

import assert from "node:assert/strict";
import {
  credentialsPath,
  readDemoKeys,
  writeCredentials,
} from "../../apps/server/data_dir/credentials.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

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

/** The content of the file, and the keys that readDemoKeys() finds. */
const READ: readonly [string, string | null, object][] = [
  ["no file", null, {}],
  ["no JSON", "sk_test_1", {}],
  ["null", "null", {}],
  ["keys that are not text", '{"test_key":1,"live_key":null}', {}],
  ["one key", '{"test_key":"sk_test_1"}', { test_key: "sk_test_1" }],
  ["all", JSON.stringify(CREDENTIALS), { test_key: "sk_test_1", live_key: "sk_live_1" }],
];

for (const [criterion, text, expected] of READ) {
  Deno.test(`readDemoKeys() ${criterion}`, () =>
    withTemporaryFolder(async (data_dir) => {
      await Deno.mkdir(data_dir);
      if (text !== null) await Deno.writeTextFile(credentialsPath(data_dir), text);
      assert.deepEqual(await readDemoKeys(data_dir), expected);
    }));
}
