/**
 * The settings of `deno task serve`: where it listens, and the variables of the functions. They are
 * checked before anything else runs. An empty variable counts as unset.
 */

import { isIP } from "node:net";
import { availableParallelism } from "node:os";
import { readSettings } from "../../../shared/functions/read_settings.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import { randomPassword } from "../data_dir/private_file.ts";
import {
  INSTANCES_MAX,
  readInstances,
  readPort,
  readSwitch,
  SettingsError,
} from "../data_dir/settings.ts";
import { CHECKOUT_PATH } from "../local/local_server.ts";

type Environment = (name: string) => string | undefined;

export interface ServeSettings {
  /** HOST: the address to listen at. */
  hostname: string;
  /** PORT. 0 stands for any free port. */
  port: number;
  /** INSTANCES: the processes at the port; by default one for each processor, on Linux. */
  instances: number;
  /** CONSOLE=1: the console is served too. */
  has_console: boolean;
  /** CHECKOUT=1: the page for payers is served too. */
  has_checkout: boolean;
  functions: Settings;
  /** The variables of the functions, with the values that this program adds. */
  env(name: string): string | undefined;
}

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8000;
const DEFAULT_INSTANCES = Deno.build.os === "linux"
  ? Math.min(availableParallelism(), INSTANCES_MAX)
  : 1;

/**
 * Reads and checks the settings.
 * @throws {SettingsError} with the name of the variable that is missing or invalid
 */
export function readServeSettings(env: Environment): ServeSettings {
  const read = (name: string) => env(name)?.trim() || undefined;
  const has_console = readSwitch("CONSOLE", read("CONSOLE"));
  const has_checkout = readSwitch("CHECKOUT", read("CHECKOUT"));
  const added: Record<string, string> = { RELAY_TOKEN: randomPassword() };
  const { origin } = URL.parse(read("PUBLIC_BASE_URL") ?? "") ?? {};
  if (has_console && origin !== undefined) added["CONSOLE_ORIGINS"] = origin;
  if (has_checkout && origin !== undefined) added["CHECKOUT_URL"] = origin + CHECKOUT_PATH;
  const functions_env = (name: string) => read(name) ?? added[name];
  if (read("WEBHOOK_MASTER_SECRET") === undefined) {
    throw new SettingsError(
      "Set WEBHOOK_MASTER_SECRET to a secret of 32 bytes or more, and keep it: the secrets of " +
        "webhook endpoints are derived from it",
    );
  }
  return {
    hostname: readHost(read("HOST") ?? DEFAULT_HOST),
    port: readPort(read("PORT"), DEFAULT_PORT),
    instances: readInstances("INSTANCES", read("INSTANCES") ?? String(DEFAULT_INSTANCES)),
    has_console,
    has_checkout,
    functions: readFunctions(functions_env),
    env: functions_env,
  };
}

function readFunctions(env: Environment): Settings {
  try {
    return readSettings(env);
  } catch (error) {
    throw new SettingsError((error as Error).message);
  }
}

function readHost(text: string): string {
  if (isIP(text) !== 0) return text;
  throw new SettingsError(`HOST "${text}" cannot be used: it must be an IP address`);
}
