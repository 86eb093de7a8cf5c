/** Errors that nothing catches, in a process that starts and in one that serves. */

import assert from "node:assert/strict";

const LAUNCH = new URL("../../apps/server/local/launch.ts", import.meta.url);
const SHUTDOWN = new URL("../../apps/server/local/shutdown.ts", import.meta.url);

/** Runs a start that prints "stopped" when it is stopped. `work` runs before it is ready. */
async function run(work: string): Promise<{ code: number; output: string }> {
  const program = `
    import { runUntilEnd } from "${LAUNCH}";
    import { Shutdown } from "${SHUTDOWN}";
    const shutdown = new Shutdown();
    shutdown.add(() => console.log("stopped"));
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const fault = () => { throw new TypeError("hidden"); };
    await runUntilEnd(shutdown, async () => {
      ${work}
      return { exited: wait(200).then(() => new Error("the database is gone")) };
    });`;
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", program],
    env: { NO_COLOR: "1" },
  }).output();
  return { code, output: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

/** [when, the work, the output] */
const ERRORS: [when: string, work: string, output: RegExp][] = [
  ["a callback at the start", "setTimeout(fault); await wait(100_000);", /TypeError: hidden/],
  ["a promise at the start", "wait(0).then(fault); await wait(100_000);", /TypeError: hidden/],
  ["a callback after it", "setTimeout(fault, 50);", /"uncaught TypeError".*"count":1[^]*is gone/],
  [
    "promises after it",
    "wait(50).then(fault); wait(60).then(fault);",
    /"uncaught TypeError".*"count":1[^]*"uncaught TypeError".*"count":2[^]*is gone/,
  ],
];
for (const [when, work, expected] of ERRORS) {
  Deno.test(`runUntilEnd() with an uncaught error of ${when}`, async () => {
    const { code, output } = await run(work);
    assert.equal(code, 1, output);
    assert.match(output, expected);
    assert.match(output, /^stopped$/m);
    // A message can contain data of a request.
    assert.equal(output.includes("hidden"), when.includes("at the start"));
  });
}
