/** The accounts at providers, and the output of `deno task providers list`. */

import type postgres from "postgres";

/** A row of `pay.list_provider_accounts`. */
export interface ListedAccount {
  id: string;
  environment_id: string;
  account: string;
  connector: string;
  /** Empty if the account is disabled. */
  method_kinds: string[];
  settings: Record<string, string>;
  secret_name: string | null;
  notification_secret_names: string[];
  status: "enabled" | "disabled";
  created_at: Date;
  disabled_at: Date | null;
  /** Signed notifications about other accounts of the provider. A bigint as text. */
  ignored_notifications: string;
  /** Null if the worker has not polled it yet. */
  polled_at: Date | null;
  /** A bigint as text. */
  unsettled_operations: string;
  /** Time of the first failed reading after the last good one; null: the last one worked. */
  stalled_since: Date | null;
  last_error: string | null;
}

export async function listAccounts(sql: postgres.Sql): Promise<ListedAccount[]> {
  return await sql<ListedAccount[]>`select * from pay.list_provider_accounts()`;
}

/** Renders the accounts, each with its state, settings and names of secrets. */
export function renderAccounts(accounts: readonly ListedAccount[]): string {
  if (accounts.length === 0) return "No accounts\n";
  return accounts.map((account) => {
    const { secret_name, notification_secret_names: signs, unsettled_operations } = account;
    const { stalled_since, last_error } = account;
    const settings = Object.entries(account.settings).map(([name, value]) => `${name}=${value}`);
    const secrets = [...secret_name === null ? [] : [secret_name], ...signs];
    return [
      `${account.id}  ${account.account}  ${account.connector}  ${stateOf(account)}\n`,
      ...settings.length === 0 ? [] : [`  settings: ${settings.join(" ")}\n`],
      ...secrets.length === 0 ? [] : [`  secrets: ${secrets.join(" ")}\n`],
      ...account.ignored_notifications === "0"
        ? []
        : [`  ignored notifications of other accounts: ${account.ignored_notifications}\n`],
      ...unsettled_operations === "0"
        ? []
        : [`  operations without a result: ${unsettled_operations}\n`],
      ...stalled_since === null
        ? []
        : [`  readings have failed since ${stalled_since.toISOString()}: ${last_error}\n`],
    ].join("");
  }).join("");
}

function stateOf({ method_kinds, disabled_at, polled_at }: ListedAccount): string {
  if (disabled_at !== null) return `disabled ${disabled_at.toISOString()}`;
  const polled = polled_at === null ? "never polled" : `polled ${polled_at.toISOString()}`;
  return `${method_kinds.join(",")}, ${polled}`;
}
