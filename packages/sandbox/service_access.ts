/** Which service a command calls, and with which key. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PaymentsClient, type RequestOptions } from "../client/mod.ts";
import { fetchSparingFaults } from "./sparing_fetch.ts";
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
  const [base_url, key] = [textOf(values, "base-url"), textOf(values, "key")];
  return bothOrNeither({ base_url, key, Fault: UsageError }, "--base-url and --key") ??
    serviceOfEnvironment(surroundings) ??
    readCredentials(join(dataDir(values, surroundings), "credentials.json"));
}

/**
 * Returns the service that the environment names, or null if it names none.
 * @throws {CommandError} if only one of the variables is set
 */
export function serviceOfEnvironment({ env }: Pick<Surroundings, "env">): ServiceAccess | null {
  const [base_url, key] = [env(VARIABLES.base_url), env(VARIABLES.key)];
  const names = `${VARIABLES.base_url} and ${VARIABLES.key}`;
  return bothOrNeither({ base_url, key, Fault: CommandError }, names);
}

/** Values of one place, of which some can be missing. */
type Found = Partial<Record<"base_url" | "key", string | undefined>> & Pick<ServiceAccess, "Fault">;

function bothOrNeither({ base_url, key, Fault }: Found, names: string): ServiceAccess | null {
  if (base_url && key) return { base_url, key, Fault };
  if (base_url || key) throw new Fault(`Set both ${names}, or neither`);
  return null;
}

/**
 * Returns a client of that service. With a test key its reads use up no declared faults: `listen`
 * and `logs tail` read all the time, beside the program for which the faults are.
 */
export function openClient(values: Values, surroundings: Surroundings): PaymentsClient {
  return clientOf(findService(values, surroundings));
}

/**
 * Returns a client of that service for a command that changes something, and the options of its
 * request.
 * @throws {UsageError} if the key is a live key and `--live` is not given, or a value is invalid
 */
export function openChange(
  values: Values,
  surroundings: Surroundings,
): { client: PaymentsClient; options: RequestOptions } {
  const access = findService(values, surroundings);
  if (!isTestKey(access.key) && !values["live"]) {
    throw new UsageError(
      "The key is no test key, and the command changes real data: give --live, or use a test key",
    );
  }
  const idempotencyKey = textOf(values, "idempotency-key");
  if (idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(idempotencyKey)) {
    throw new UsageError("--idempotency-key must have 1 to 255 visible ASCII characters");
  }
  return { client: clientOf(access), options: { idempotencyKey } };
}

/** Returns a client of a service. */
export function clientOf({ base_url, key, Fault }: ServiceAccess): PaymentsClient {
  try {
    return new PaymentsClient({
      apiKey: key,
      baseUrl: base_url,
      fetch: isTestKey(key) ? fetchSparingFaults : undefined,
    });
  } catch (error) {
    throw new Fault((error as Error).message);
  }
}

/** Whether a key has the form of a test key. Only these move no real money. */
export function isTestKey(key: string): boolean {
  return /^[a-z][a-z0-9]*_test_/.test(key);
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
