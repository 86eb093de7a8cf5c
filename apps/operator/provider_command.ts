/**
 * Parses and checks the arguments of `deno task providers`, before the command opens a database.
 * Every error message names the argument at fault. A secret is given by the name of its variable,
 * so no secret gets on a command line.
 */

import { parseArgs } from "node:util";
import { isId } from "../../shared/core/ids.ts";
import { LIVE_CONNECTORS, type LiveConnector, methodKindsOf } from "../../shared/domain/rails.ts";
import type { MethodKind } from "../../shared/schema/payment.ts";
import { MAX_KEY_NAME } from "../../shared/schema/limits.ts";
import { UsageError } from "./command_line.ts";
import { DEMO_ACCOUNT } from "./demo_account.ts";
import { PROVIDER_USAGE } from "./provider_usage.ts";
import { readWorkCommand, WORK_ACTIONS, type WorkCommand } from "./provider_work_command.ts";

/** The parsed command. */
export type ProviderCommand =
  | { action: "help" }
  | { action: "list" }
  | {
    action: "add";
    /** The account's live environment gets the provider. */
    account: string;
    connector: string;
    method_kinds: MethodKind[];
    settings: Record<string, string>;
    /** Name of the variable with the API secret. */
    secret_name: string | null;
    /** Names of the variables with the secrets that sign notifications. */
    notification_secret_names: string[];
    is_json: boolean;
  }
  | { action: "test" | "disable" | "rotate-token"; id: string }
  | {
    action: "set";
    id: string;
    settings: Record<string, string>;
    /** Names of the settings to remove. */
    removed: string[];
    /** Null: the name of the variable stays. */
    secret_name: string | null;
  }
  | {
    action: "reread";
    id: string;
    /** The block after which the service reads again. */
    from: number;
    is_json: boolean;
  }
  | WorkCommand;

/** The names of variables that an account can name, as in `provider_accounts_secret_name_form`. */
const SECRET_NAME = /^PROVIDER_[A-Z0-9_]{1,60}$/;
/** Two during a rotation. */
const MAX_NOTIFICATION_SECRETS = 2;

const ADD_OPTIONS = {
  connector: { type: "string" },
  methods: { type: "string" },
  account: { type: "string" },
  secret: { type: "string" },
  "notification-secret": { type: "string", multiple: true },
  set: { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;
const SET_OPTIONS = {
  set: { type: "string", multiple: true },
  unset: { type: "string", multiple: true },
  secret: { type: "string" },
} as const;
const REREAD_OPTIONS = { from: { type: "string" }, json: { type: "boolean" } } as const;
const ACTIONS = ["add", "list", "test", "disable", "rotate-token", "set", "reread"];
const WORK: readonly string[] = WORK_ACTIONS;

/**
 * Parses the arguments.
 * @throws {UsageError} if an argument is invalid
 */
export function readProviderCommand(args: readonly string[]): ProviderCommand {
  const [action, ...rest] = args;
  if (action === undefined || args.includes("--help") || action === "help") {
    return { action: "help" };
  }
  if (!ACTIONS.includes(action) && !WORK.includes(action)) {
    throw new UsageError(`Unknown command "${action}"\n\n${PROVIDER_USAGE}`);
  }
  try {
    if (action === "add") return readAdd(rest);
    if (action === "set") return readSet(rest);
    if (action === "reread") return readReread(rest);
    if (WORK.includes(action)) return readWorkCommand(action as WorkCommand["action"], rest);
    const { positionals } = parseArgs({
      args: rest,
      allowPositionals: action !== "list",
      strict: true,
    });
    return action === "list"
      ? { action }
      : { action: action as "test" | "disable" | "rotate-token", id: readId(positionals) };
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`providers ${action}: ${(error as Error).message}`);
  }
}

function readAdd(args: string[]): ProviderCommand {
  const { values } = parseArgs({ args, options: ADD_OPTIONS, strict: true });
  const { methods, account = DEMO_ACCOUNT, secret } = values;
  const connector = readConnector(values.connector);
  const name = account.trim();
  if (name === "" || name.length > MAX_KEY_NAME) {
    throw new UsageError(`--account "${account}" must have 1 to ${MAX_KEY_NAME} characters`);
  }
  return {
    action: "add",
    account: name,
    connector,
    method_kinds: readMethods(methods, connector, methodKindsOf(connector)),
    settings: readSettings(values.set ?? []),
    secret_name: secret === undefined ? null : readSecretName("--secret", secret),
    notification_secret_names: readNotificationSecrets(values["notification-secret"] ?? []),
    is_json: values.json === true,
  };
}

function readSet(args: string[]): ProviderCommand {
  const { values, positionals } = parseArgs({
    args,
    options: SET_OPTIONS,
    allowPositionals: true,
    strict: true,
  });
  const { set = [], unset = [], secret } = values;
  const settings = readSettings(set);
  const both = unset.find((name) => Object.hasOwn(settings, name));
  if (both !== undefined) throw new UsageError(`--unset "${both}" is given with --set too`);
  if (set.length + unset.length === 0 && secret === undefined) {
    throw new UsageError("set needs --set NAME=VALUE, --unset NAME or --secret NAME");
  }
  return {
    action: "set",
    id: readId(positionals),
    settings,
    removed: unset,
    secret_name: secret === undefined ? null : readSecretName("--secret", secret),
  };
}

function readReread(args: string[]): ProviderCommand {
  const { values, positionals } = parseArgs({
    args,
    options: REREAD_OPTIONS,
    allowPositionals: true,
    strict: true,
  });
  const { from = "", json = false } = values;
  if (!/^\d{1,15}$/.test(from)) throw new UsageError("--from must be the number of a block");
  return { action: "reread", id: readId(positionals), from: Number(from), is_json: json };
}

function readConnector(name: string | undefined): LiveConnector {
  const names = LIVE_CONNECTORS.join(", ");
  if (name === undefined) throw new UsageError(`--connector is required: ${names}`);
  const connector = LIVE_CONNECTORS.find((known) => known === name);
  if (connector !== undefined) return connector;
  throw new UsageError(
    `--connector "${name}" is not part of this version: choose from ${names}`,
  );
}

function readMethods(
  text: string | undefined,
  name: string,
  known: readonly string[],
): MethodKind[] {
  const choice = known.join(", ");
  if (text === undefined) throw new UsageError(`--methods is required: ${choice}`);
  const kinds = [...new Set(text.split(",").map((kind) => kind.trim()))];
  const unserved = kinds.filter((kind) => !known.includes(kind));
  if (unserved.length === 0) return kinds as MethodKind[];
  throw new UsageError(
    `--methods "${unserved.join(",")}" is not served by --connector ${name}: choose from ${choice}`,
  );
}

function readSettings(pairs: readonly string[]): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const pair of pairs) {
    const [, name, value] = /^([a-z][A-Za-z0-9_.]{0,59})=(.+)$/s.exec(pair) ?? [];
    if (name === undefined || value === undefined) {
      throw new UsageError("--set must look like name=value, such as base_url=http://127.0.0.1:1");
    }
    if (Object.hasOwn(settings, name)) throw new UsageError(`--set has "${name}" twice`);
    settings[name] = value;
  }
  return settings;
}

function readNotificationSecrets(names: readonly string[]): string[] {
  if (names.length > MAX_NOTIFICATION_SECRETS) {
    throw new UsageError(`--notification-secret can be given ${MAX_NOTIFICATION_SECRETS} times`);
  }
  return names.map((name) => readSecretName("--notification-secret", name));
}

function readSecretName(flag: string, text: string): string {
  if (SECRET_NAME.test(text)) return text;
  // The argument is not repeated, because it can be the secret itself.
  throw new UsageError(
    `${flag} must be the name of a variable, not its value: PROVIDER_ and up to 60 upper-case ` +
      "letters, digits and _",
  );
}

function readId(positionals: readonly string[]): string {
  const [id, ...more] = positionals;
  if (id === undefined) throw new UsageError("The id of the account is missing: pac_...");
  if (more.length > 0) {
    throw new UsageError(`Unexpected argument "${more[0]}": give the id of one account`);
  }
  if (isId("pac_", id)) return id;
  throw new UsageError("The argument is not the id of an account: an id begins with pac_");
}
