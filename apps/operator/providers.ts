/**
 * `deno task providers` adds, lists, tests and disables accounts at payment providers, for the
 * operator, and settles operations and provider events that need a person (provider_work.ts). The
 * database stores the names of the variables with the secrets, never the secrets.
 *
 * provider_command.ts reads the options.
 */

import type postgres from "postgres";
import { createHash, randomBytes } from "node:crypto";
import { idGenerator } from "../../shared/core/ids.ts";
import type { Connector, ConnectorFinder } from "../../shared/domain/providers/connector.ts";
import { readCredentials } from "../server/data_dir/credentials.ts";
import {
  action,
  type Actions,
  CommandError,
  SQLSTATE,
  sqlstateOf,
  type Surroundings,
} from "./command_line.ts";
import {
  changeSettings,
  checkSettings,
  type OpenAccount,
  rereadAccount,
} from "./provider_chain.ts";
import { readAccountId, readChange, readNewAccount, readReread } from "./provider_command.ts";
import { listAccounts, type ListedAccount, renderAccounts } from "./provider_table.ts";
import { USAGE } from "./provider_usage.ts";
import { WORK_ACTIONS } from "./provider_work.ts";

export { USAGE };

/** Deadline of the call of `test`. */
const TEST_DEADLINE_MS = 10_000;

/** Makes an action whose one argument is an account. */
const withAccount = (work: (id: string, surroundings: Surroundings) => Promise<void>) =>
  action(["…"], (_, names) => {
    const id = readAccountId(names);
    return (surroundings) => work(id, surroundings);
  });

export const ACTIONS: Actions = {
  add: action(
    ["connector", "methods", "account", "secret", "notification-secret", "set", "json"],
    (values) => {
      const account = readNewAccount(values);
      return (surroundings) => addAccount(account, values.json === true, surroundings);
    },
  ),
  list: action([], () => async ({ sql, print }) => print(renderAccounts(await listAccounts(sql)))),
  test: withAccount(testAccount),
  disable: withAccount(disableAccount),
  "rotate-token": withAccount(async (id, { sql, print, printMessage }) => {
    print(`${await giveBridgeToken(sql, id)}\n`);
    printMessage(`The former token of ${id} opens nothing any more. This one is not shown again`);
  }),
  set: action(["…", "set", "unset", "secret"], (values, names) => {
    const change = readChange(values, names);
    return async (surroundings) =>
      await changeSettings(change, await openAccount(change.id, surroundings));
  }),
  reread: action(["…", "from", "json"], (values, names) => {
    const reread = readReread(values, names);
    return async (surroundings) => {
      const account = await openAccount(reread.id, surroundings);
      await rereadAccount(reread, values.json === true, account);
    };
  }),
  ...WORK_ACTIONS,
};

async function addAccount(
  command: ReturnType<typeof readNewAccount>,
  is_json: boolean,
  surroundings: Surroundings,
): Promise<void> {
  const { sql, findConnector, print, printMessage } = surroundings;
  const { account, connector: name, method_kinds } = command;
  const connector = connectorOf(findConnector, name);
  const settings = await checkSettings(connector, command.settings, method_kinds);
  const base_url = connector.notifications === null ? null : await findBaseUrl(surroundings);
  const environment_id = await findLiveEnvironment(sql, account);
  const id = idGenerator(Date.now())("pac_");
  try {
    await sql`select pay.add_provider_account(
      p_id => ${id}, p_environment_id => ${environment_id}, p_connector => ${name},
      p_method_kinds => ${method_kinds}::text[], p_settings => ${JSON.stringify(settings)},
      p_secret_name => ${command.secret_name},
      p_notification_secret_names => ${command.notification_secret_names}::text[])`;
  } catch (error) {
    if (sqlstateOf(error) === SQLSTATE.check_violation && name === "bank") {
      throw new CommandError(`Cannot add an account for the IBAN: another account has it`);
    }
    if (sqlstateOf(error) !== SQLSTATE.unique_violation) throw error;
    const others = (await listAccounts(sql)).filter((other) =>
      other.environment_id === environment_id &&
      other.method_kinds.some((kind) => (method_kinds as string[]).includes(kind))
    );
    const taken = others.map((other) => `${other.id} serves ${other.method_kinds.join(", ")}`);
    throw new CommandError(
      `Cannot add an account for --methods ${method_kinds.join(",")}: ${taken.join("; ")}. ` +
        "Disable it first",
    );
  }
  const notifications_url = base_url === null
    ? null
    : `${base_url}/api-v1-payments/providers/${id}/notifications`;
  const bridge_token = name === "bank" ? await giveBridgeToken(sql, id) : undefined;
  if (is_json) {
    return print(
      `${JSON.stringify({ id, notifications_url, ...(bridge_token && { bridge_token }) })}\n`,
    );
  }
  print(`${id}\n`);
  printMessage(`Added ${id} to the live environment of "${account}".`);
  printMessage(
    notifications_url === null
      ? `Now check its settings: deno task providers test ${id}`
      : `The provider must send notifications to ${notifications_url}`,
  );
}

/** Gives the bridge of an account a token, which only its hash remembers. */
async function giveBridgeToken(sql: postgres.Sql, id: string): Promise<string> {
  const token = `bridge_${randomBytes(24).toString("base64url")}`;
  const hash = createHash("sha256").update(token).digest("hex");
  const [row] =
    await sql`select pay.set_bridge_hash(p_account_id => ${id}, p_hash => ${hash}) as done`;
  if (!row!.done) throw new CommandError(`${id}: no such account at a bank`);
  return token;
}

async function findLiveEnvironment(sql: postgres.Sql, account: string): Promise<string> {
  const [found] = await sql<{ id: string | null }[]>`
    select pay.find_environment(p_account => ${account}, p_livemode => true) as id`;
  if (found!.id !== null) return found!.id;
  throw new CommandError(
    `--account "${account}" has no live environment: create one with ` +
      `deno task keys create --mode live --account ${JSON.stringify(account)}`,
  );
}

async function testAccount(id: string, surroundings: Surroundings): Promise<void> {
  const { connector, openedAccount } = await openAccount(id, surroundings);
  const signal = AbortSignal.timeout(TEST_DEADLINE_MS);
  const line = await connector.test(openedAccount(), signal).catch((error) => {
    throw new CommandError(`${id} does not work: ${error.message}`);
  });
  surroundings.print(`${line}\n`);
}

async function openAccount(id: string, surroundings: Surroundings): Promise<OpenAccount> {
  const { sql, findConnector, env } = surroundings;
  const stored = await findAccount(sql, id);
  const secretOf = (name: string) => {
    const secret = env(name);
    if (secret !== undefined) return secret;
    throw new CommandError(
      `Cannot test ${id}: the variable ${name} is not set here. Set it as the functions have it`,
    );
  };
  const { environment_id, connector, settings, secret_name } = stored;
  return {
    ...surroundings,
    stored,
    connector: connectorOf(findConnector, connector),
    openedAccount: () => ({
      id,
      environment_id,
      connector,
      settings,
      secret: secret_name === null ? null : secretOf(secret_name),
      notification_secrets: stored.notification_secret_names.map(secretOf),
    }),
  };
}

async function disableAccount(
  id: string,
  { sql, printMessage }: Surroundings,
): Promise<void> {
  const account = await findAccount(sql, id);
  const [row] = await sql`select pay.disable_provider_account(p_id => ${id}) as done`;
  if (!row!.done) throw new CommandError(`Cannot disable ${id}: it is disabled already`);
  const methods = account.method_kinds.join(", ");
  printMessage(`Disabled ${id}. No account of "${account.account}" serves ${methods} now`);
}

async function findAccount(sql: postgres.Sql, id: string): Promise<ListedAccount> {
  const account = (await listAccounts(sql)).find((account) => account.id === id);
  if (account === undefined) throw new CommandError(`${id}: no such account`);
  return account;
}

function connectorOf(findConnector: ConnectorFinder, name: string): Connector {
  const connector = findConnector(name);
  if (connector === null) {
    throw new CommandError(`The connector "${name}" is not part of this version`);
  }
  return connector;
}

/** The base URL as the functions read it, or that of the last local start. */
async function findBaseUrl({ env, settings }: Surroundings): Promise<string> {
  const { data_dir, database_url } = settings;
  const project_url = env("SUPABASE_URL");
  const base_url = env("PUBLIC_BASE_URL") ?? (project_url && `${project_url}/functions/v1`) ??
    (database_url === null ? (await readCredentials(data_dir)).base_url : null);
  if (base_url) return base_url.replace(/\/$/, "");
  throw new CommandError(
    "Set PUBLIC_BASE_URL to the public URL of the functions: the provider sends notifications to it",
  );
}
