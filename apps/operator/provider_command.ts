/**
 * Reads and checks the options of `deno task providers`, before the command opens a database. Every
 * error message names the argument at fault. A secret is given by the name of its variable,
 * so no secret gets on a command line.
 */

import { LIVE_CONNECTORS, type LiveConnector, methodKindsOf } from "../../shared/domain/rails.ts";
import type { MethodKind } from "../../shared/schema/payment_body.ts";
import { readId, UsageError, type Values } from "./command_line.ts";
import { DEMO_ACCOUNT } from "./demo_account.ts";
import { readName } from "./key_command.ts";

/** The names of variables that an account can name, as in `provider_accounts_secret_name_form`. */
const SECRET_NAME = /^PROVIDER_[A-Z0-9_]{1,60}$/;
/** Two during a rotation. */
const MAX_NOTIFICATION_SECRETS = 2;

/** Reads the options of an account to add. Throws `UsageError`. */
export function readNewAccount(
  values: Values<"connector" | "methods" | "account" | "secret" | "notification-secret" | "set">,
) {
  const { methods, account = DEMO_ACCOUNT, secret } = values;
  const connector = readConnector(values.connector);
  return {
    /** The account's live environment gets the provider. */
    account: readName("--account", account),
    connector,
    method_kinds: readMethods(methods, connector, methodKindsOf(connector)),
    settings: readSettings(values.set ?? []),
    secret_name: secret === undefined ? null : readSecretName("--secret", secret),
    /** Names of the variables with the secrets that sign notifications. */
    notification_secret_names: readNotificationSecrets(values["notification-secret"] ?? []),
  };
}

/** Reads the changes of an account. Throws `UsageError`. */
export function readChange(values: Values<"set" | "unset" | "secret">, names: readonly string[]) {
  const { set = [], unset = [], secret } = values;
  const settings = readSettings(set);
  const both = unset.find((name) => Object.hasOwn(settings, name));
  if (both !== undefined) throw new UsageError(`--unset "${both}" is given with --set too`);
  if (set.length + unset.length === 0 && secret === undefined) {
    throw new UsageError("set needs --set NAME=VALUE, --unset NAME or --secret NAME");
  }
  return {
    id: readAccountId(names),
    settings,
    removed: unset,
    /** Null: the name of the variable stays. */
    secret_name: secret === undefined ? null : readSecretName("--secret", secret),
  };
}

/** Reads an account, and the block after which the service reads again. Throws `UsageError`. */
export function readReread({ from = "" }: Values<"from">, names: readonly string[]) {
  if (!/^\d{1,15}$/.test(from)) throw new UsageError("--from must be the number of a block");
  return { id: readAccountId(names), from: Number(from) };
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

export function readAccountId(names: readonly string[]): string {
  return readId(names, "pac_", "account");
}
