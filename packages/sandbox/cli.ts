#!/usr/bin/env node
/** The command line of the package. */

import process from "node:process";
import { EXIT } from "./command.ts";
import { runCommand } from "./run_command.ts";

// The reader of the output can end first, such as `head`.
process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
  process.exit(code === "EPIPE" ? EXIT.success : EXIT.failure);
});
process.exitCode = await runCommand(process.argv.slice(2), {
  env: (name) => process.env[name]?.trim() || undefined,
  cwd: process.cwd(),
  print: (text) => void process.stdout.write(text),
  printMessage: (line) => void process.stderr.write(`${line}\n`),
});
