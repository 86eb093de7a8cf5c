/** The log file of the local server: order, permissions and rotation. */

import assert from "node:assert/strict";
import { openServerLog } from "../../apps/server/local/server_log.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

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
