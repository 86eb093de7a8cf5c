/**
 * The settings of the local start and of the operator's commands. They are read from environment
 * variables once and checked before anything else runs. An empty variable counts as unset.
 */

import { resolve } from "node:path";

export interface Settings {
  /** PORT on 127.0.0.1. 0 stands for any free port. */
  port: number;
  /** DATA_DIR as an absolute path. */
  data_dir: string;
  /** DATABASE_URL: a server to use in place of the embedded one. */
  database_url: string | null;
  /** LOG=1: log lines go to standard output, not to `<DATA_DIR>/server.log`. */
  log_to_stdout: boolean;
}

/** The same port as the local Supabase stack, so that both have the same base URL. */
const DEFAULT_PORT = 54321;
const DEFAULT_DATA_DIR = ".local";

/**
 * A setting that is invalid or does not work. The message names the setting and is complete for
 * the user, so it is printed without a stack trace.
 */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/** The message of whatever was thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The error of a setting with an address that refuses the connection. Errors of settings stay. */
export function connectionFailed(setting: string, error: unknown): SettingsError {
  if (error instanceof SettingsError) return error;
  return new SettingsError(
    `${setting} cannot be used: the connection failed: ${reasonOf(error)}`,
  );
}

/**
 * Reads and checks the settings.
 * @param env reads an environment variable
 * @param project_dir the folder that a relative DATA_DIR starts from
 * @throws {SettingsError} if a variable is invalid
 */
export function readSettings(
  env: (name: string) => string | undefined,
  project_dir: string,
): Settings {
  const read = (name: string) => env(name)?.trim() || undefined;
  return {
    port: readPort(read("PORT"), DEFAULT_PORT),
    data_dir: resolve(project_dir, read("DATA_DIR") ?? DEFAULT_DATA_DIR),
    database_url: readDatabaseUrl(read("DATABASE_URL")),
    log_to_stdout: readSwitch("LOG", read("LOG")),
  };
}

export function readPort(text: string | undefined, standard: number): number {
  if (text === undefined) return standard;
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) {
    throw new SettingsError(`PORT "${text}" cannot be used: it must be a number from 0 to 65535`);
  }
  return port;
}

/** Most processes of an instance. */
export const INSTANCES_MAX = 64;

/**
 * Reads the number of processes that share a port. Only Linux distributes connections to them.
 * @param name as the user has given it
 */
export function readInstances(name: string, text: string): number {
  const instances = Number(text);
  if (!/^\d+$/.test(text) || instances < 1 || instances > INSTANCES_MAX) {
    throw new SettingsError(
      `${name} "${text}" cannot be used: it must be a number from 1 to ${INSTANCES_MAX}`,
    );
  }
  if (instances > 1 && Deno.build.os !== "linux") {
    throw new SettingsError(`${name} "${text}" cannot be used: it must be 1, except on Linux`);
  }
  return instances;
}

function readDatabaseUrl(text: string | undefined): string | null {
  if (text === undefined) return null;
  const url = URL.parse(text);
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol)) {
    // The text is not repeated, because it can contain a password.
    throw new SettingsError(
      "DATABASE_URL cannot be used: it must look like postgres://user:password@host:5432/database",
    );
  }
  return text;
}

/** Reads a variable that is 0 or 1. By default it is false. */
export function readSwitch(name: string, text: string | undefined): boolean {
  if (text === undefined || text === "0") return false;
  if (text === "1") return true;
  throw new SettingsError(`${name} "${text}" cannot be used: it must be 0 or 1`);
}
