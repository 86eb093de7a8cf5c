/**
 * Settings of the local start, read from the environment once and checked before anything runs.
 * An empty variable counts as absent.
 */

import { resolve } from "node:path";

/** What the local start is told. */
export interface Settings {
  /** PORT on 127.0.0.1; 0 takes a free one. */
  port: number;
  /** DATA_DIR as an absolute path. */
  data_dir: string;
  /** DATABASE_URL: a server to use instead of the embedded one. */
  database_url: string | null;
  /** LOG=1: log lines go to standard output instead of `<DATA_DIR>/server.log`. */
  log_to_stdout: boolean;
}

/** The port of the local Supabase stack, so that a base URL is the same with either. */
const DEFAULT_PORT = 54321;
const DEFAULT_DATA_DIR = ".local";

/** A setting that cannot be followed; the message names it and needs no stack trace. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/** Reads and checks the settings. Errors: `SettingsError` naming the variable. */
export function readSettings(
  env: (name: string) => string | undefined,
  project_dir: string,
): Settings {
  const read = (name: string) => env(name)?.trim() || undefined;
  return {
    port: readPort(read("PORT")),
    data_dir: resolve(project_dir, read("DATA_DIR") ?? DEFAULT_DATA_DIR),
    database_url: readDatabaseUrl(read("DATABASE_URL")),
    log_to_stdout: readSwitch("LOG", read("LOG")),
  };
}

function readPort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT;
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535) {
    throw new SettingsError(`PORT "${text}" cannot be used: it must be a number from 0 to 65535`);
  }
  return port;
}

function readDatabaseUrl(text: string | undefined): string | null {
  if (text === undefined) return null;
  const url = URL.parse(text);
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol)) {
    // The text may hold a password: it is not repeated.
    throw new SettingsError(
      "DATABASE_URL cannot be used: it must look like postgres://user:password@host:5432/database",
    );
  }
  return text;
}

function readSwitch(name: string, text: string | undefined): boolean {
  if (text === undefined || text === "0") return false;
  if (text === "1") return true;
  throw new SettingsError(`${name} "${text}" cannot be used: it must be 0 or 1`);
}
