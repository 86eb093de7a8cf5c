/**
 * The commands of `deno task providers` that change the settings of an account and that make the
 * service read blocks again. The operator needs them when an account can no longer be read: its
 * node is gone, or the chain has undone a final block.
 */

import { goneFrom, rereadAfter } from "../../shared/connectors/evm/evm_reread.ts";
import { formatAmount } from "../../shared/core/currency.ts";
import { ApiError } from "../../shared/core/errors.ts";
import type { Connector, ProviderAccount } from "../../shared/domain/providers/connector.ts";
import type { MethodKind } from "../../shared/schema/payment_body.ts";
import { CommandError, type Surroundings } from "./command_line.ts";
import type { readChange, readReread } from "./provider_command.ts";
import type { ListedAccount } from "./provider_table.ts";

/** Deadline of the requests to the nodes. */
const DEADLINE_MS = 30_000;
/** Earlier provider events are compared too, because undone blocks had other times. */
const SLACK_MS = 3_600_000;

export interface OpenAccount extends Surroundings {
  stored: ListedAccount;
  connector: Connector;
  /** Returns the account with its secrets. Throws `CommandError` if a variable is not set. */
  openedAccount(): ProviderAccount;
}

/**
 * Checks settings, and resolves to those to store. Throws `CommandError`.
 * @param method_kinds that the account serves
 */
export async function checkSettings(
  connector: Connector,
  settings: Readonly<Record<string, string>>,
  method_kinds: readonly MethodKind[],
): Promise<Record<string, string>> {
  try {
    return await connector.checkSettings(settings, method_kinds);
  } catch (error) {
    if (error instanceof ApiError) throw new CommandError(`--set: ${error.message}`);
    throw error;
  }
}

/** Changes settings that no stored object depends on. Throws `CommandError`. */
export async function changeSettings(
  command: ReturnType<typeof readChange>,
  { sql, stored, connector, printMessage }: OpenAccount,
): Promise<void> {
  const { id, removed } = command;
  const changed = [...Object.keys(command.settings), ...removed];
  const can_change = connector.changeable_settings;
  const fixed = changed.find((name) => !can_change.includes(name));
  if (fixed !== undefined) {
    const list = can_change.length === 0 ? "none" : can_change.join(", ");
    throw new CommandError(
      `Cannot change "${fixed}" of ${id}: the settings of ${connector.name} that can change: ${list}`,
    );
  }
  const kept = Object.entries(stored.settings).filter(([name]) => !removed.includes(name));
  const settings = await checkSettings(
    connector,
    { ...Object.fromEntries(kept), ...command.settings },
    stored.method_kinds as MethodKind[],
  );
  const [row] = await sql`select pay.change_provider_settings(
    p_id => ${id}, p_before => ${JSON.stringify(stored.settings)},
    p_settings => ${JSON.stringify(settings)},
    p_secret_name => ${command.secret_name ?? stored.secret_name}) as done`;
  if (!row!.done) throw new CommandError(`Cannot change ${id}: another command has changed it`);
  printMessage(`Changed ${id}. Now check it: deno task providers test ${id}`);
}

/** A row of `pay.list_final_events`. */
interface FinalProviderEvent {
  reference: string;
  tx_hash: string;
  log_index: number;
  payment_id: string | null;
  address: string;
  /** A bigint as text. */
  amount_minor: string;
  currency: string;
}

/** Makes the service read the blocks after a final one again. Prints transfers that are gone. */
export async function rereadAccount(
  { id, from }: ReturnType<typeof readReread>,
  is_json: boolean,
  { sql, connector, openedAccount, print, printMessage }: OpenAccount,
): Promise<void> {
  if (connector.name !== "evm") {
    throw new CommandError(`Cannot read ${id} again: ${connector.name} has no blocks`);
  }
  const account = openedAccount();
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const failed = (error: Error) => {
    throw new CommandError(`Cannot read ${id} again after block ${from}: ${error.message}`);
  };
  const place = await rereadAfter(account, from, signal).catch(failed);
  const since = new Date(place.at_ms - SLACK_MS);
  const provider_events = await sql<FinalProviderEvent[]>`select * from pay.list_final_events(
    p_account_id => ${id}, p_since => ${since})`;
  const amounts = provider_events.map((event) => ({
    ...event,
    amount_minor: Number(event.amount_minor),
  }));
  const gone = new Set(await goneFrom(account, amounts, signal).catch(failed));
  const [row] = await sql`select pay.reread_account(
    p_account_id => ${id}, p_cursor => ${JSON.stringify(place.cursor)}) as done`;
  if (!row!.done) throw new CommandError(`${id} is being read at present: repeat the command`);
  const missing = amounts.filter(({ reference }) => gone.has(reference));
  if (is_json) return print(`${JSON.stringify({ id, from, compared: amounts.length, missing })}\n`);
  printMessage(`The service reads the blocks after block ${from} again`);
  print(`Booked transfers since then: ${amounts.length}. Gone from the chain: ${missing.length}\n`);
  for (const { reference, payment_id, amount_minor, currency } of missing) {
    print(
      `${reference}\n  ${payment_id ?? "no payment"}  ${formatAmount(amount_minor, currency)}\n`,
    );
  }
}
