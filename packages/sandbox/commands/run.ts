/** `run`: starts a sandbox for one command, such as the tests of a project in any language. */

import process from "node:process";
import { runProgram } from "../child_program.ts";
import { type Command, UsageError } from "../command.ts";
import { VARIABLES } from "../service_access.ts";
import { startSandbox } from "../start_sandbox.ts";

export const RUN: Command = {
  name: "run",
  args: "-- COMMAND…",
  summary: "Run a command with a sandbox of its own, which ends with it",
  options: {},
  examples: ["run -- npm test", "run -- pytest -q"],
  takesRest: true,
  async run(_values, [program, ...args], { printMessage }) {
    if (program === undefined) throw new UsageError("The command is missing: run -- npm test");
    const sandbox = await startSandbox({ onProgress: printMessage });
    try {
      const environment = {
        [VARIABLES.base_url]: sandbox.baseUrl,
        [VARIABLES.key]: sandbox.testKey,
      };
      // On Windows programs such as npm are scripts, which only a shell can start.
      const shell = process.platform === "win32";
      return await runProgram(program, args, environment, { shell });
    } finally {
      await sandbox.stop();
    }
  },
};
