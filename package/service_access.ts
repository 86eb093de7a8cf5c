/** Which service a command calls, and with which key. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PaymentsClient } from "../client/mod.ts";
import { fetchSparingFaults } from "../console/sparing_fetch.ts";
import { CommandError, type Surroundings, textOf, UsageError, type Values } from "./command.ts";
import { dataDir } from "./data_folder.ts";

/** The base URL of a service and a key of it. */
export interface ServiceAccess {
  base_url: string;
  key: string;
  /** The error of a value that is wrong: of the arguments, or of another place. */
  Fault: typeof UsageError | typeof CommandError;
}

/** Variables of the environment, which `run` sets for the program that it starts. */
export const VARIABLES = { base_url: "PAYMENTS_BASE_URL", key: "PAYMENTS_API_KEY" } as const;

/**
 * Finds the service: the options, or else the environment, or else the credentials that the local
 * start has written. A base URL and a key come from one place only, so that no key is sent to the
 * service of another.
 * @throws {UsageError} if only one of the options is given
 * @throws {CommandError} if none of these places has both
 */
export function findService(values: Values, surroundings: Surroundings): ServiceAccess {
  const { env } = surroundings;
  const places = [
    {
      base_url: textOf(values, "base-url"),
      key: textOf(values, "key"),
      are: "--base-url and --key",
      Fault: UsageError,
    },
    {
      base_url: env(VARIABLES.base_url),
      key: env(VARIABLES.key),
      are: `${VARIABLES.base_url} and ${VARIABLES.key}`,
      Fault: CommandError,
    },
  ];
  for (const { base_url, key, are, Fault } of places) {
    if (base_url && key) return { base_url, key, Fault };
    if (base_url || key) throw new Fault(`Set both ${are}, or neither`);
  }
  return readCredentials(join(dataDir(values, surroundings), "credentials.json"));
}

/**
 * Returns a client of that service. With a test key its reads use up no declared faults: `listen` and
 * `logs tail` read all the time, beside the program for which the faults are.
 */
export function openClient(values: Values, surroundings: Surroundings): PaymentsClient {
  const { base_url, key, Fault } = findService(values, surroundings);
  try {
    return new PaymentsClient({
      apiKey: key,
      baseUrl: base_url,
      fetch: key.includes("_test_") ? fetchSparingFaults : undefined,
    });
  } catch (error) {
    throw new Fault((error as Error).message);
  }
}

function readCredentials(path: string): ServiceAccess {
  try {
    const { base_url, test_key } = JSON.parse(readFileSync(path, "utf8"));
    if (typeof base_url === "string" && typeof test_key === "string") {
      return { base_url, key: test_key, Fault: CommandError };
    }
  } catch {
    // The message is the same for a missing file and for one that another program has written.
  }
  throw new CommandError(
    `No service: there is no "${path}". Run the command start in this folder, or give --base-url ` +
      "and --key",
  );
}
