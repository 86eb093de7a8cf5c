/** The data folder of a user's project: `.local`, unless another is named. */

import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { CommandError, type Surroundings, textOf, type Values } from "./command.ts";

const DEFAULT_DATA_DIR = ".local";

/** Returns the data folder of the local start. */
export function dataDir(values: Values, { env, cwd }: Surroundings): string {
  return resolve(cwd, textOf(values, "data-dir") || env("DATA_DIR") || DEFAULT_DATA_DIR);
}

/**
 * Makes the folder if it is missing. It has keys, so Git must not add it to the user's project.
 * @throws {CommandError} if the folder cannot be made
 */
export function makeDataDir(data_dir: string): void {
  try {
    mkdirSync(data_dir, { recursive: true });
    writeFileSync(join(data_dir, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST") {
      throw new CommandError(`The data folder "${data_dir}" cannot be made: ${message}`);
    }
  }
}

/**
 * Writes a file as JSON. Only the account of this process can read it, and a reader sees the old or
 * the new content. Throws `CommandError` if the file cannot be written.
 */
export function writePrivately(path: string, value: unknown): void {
  const unfinished = `${path}.${process.pid}.unfinished`;
  try {
    writeFileSync(unfinished, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
    renameSync(unfinished, path);
  } catch (error) {
    throw new CommandError(`"${path}" cannot be written: ${(error as Error).message}`);
  }
}
