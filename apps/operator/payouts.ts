/**
 * `deno task payouts` writes the open payouts of an account without a signer as a batch, which
 * people sign in their Safe. The poll of the chain settles these payouts too (ADR 0020).
 */

import type postgres from "postgres";
import { transferData } from "../../shared/connectors/evm/evm_payout.ts";
import { readEvmSettings } from "../../shared/connectors/evm/evm_settings.ts";
import type { ChainPayout } from "../../shared/store/chain_store.ts";
import {
  action,
  type Actions,
  CommandError,
  type Surroundings,
  UsageError,
} from "./command_line.ts";
import { listAccounts, type ListedAccount } from "./provider_table.ts";
import { safeBatch } from "./safe_batch.ts";

export const USAGE =
  `Usage: deno task payouts export --account NAME [--network NAME] [--again] > batch.json

Writes the open refunds and transfers in stablecoins as a batch for the Transaction Builder of Safe.
The Safe is the signer_address of the account. A payout is exported once.

  --account  the account whose live environment pays
  --network  selects the network if the account has several accounts on chains
  --again    exports earlier payouts again. Signing both batches pays twice
`;

interface ExportCommand {
  account: string;
  network: string | null;
  is_again: boolean;
}

export const ACTIONS: Actions = {
  export: action(["account", "network", "again"], (values) => {
    const { account, network = null, again: is_again = false } = values;
    if (account === undefined) throw new UsageError(`--account is required\n\n${USAGE}`);
    return (surroundings) => exportPayouts({ account, network, is_again }, surroundings);
  }),
};

/** Exports the payouts of an account. Throws `CommandError`. */
async function exportPayouts(
  command: ExportCommand,
  { sql, print, printMessage }: Surroundings,
): Promise<void> {
  const { id, settings: texts } = await findAccount(sql, command);
  const { chain_id, contracts, signer_url, signer_address } = readEvmSettings(texts);
  if (signer_url !== null) {
    throw new CommandError(
      `${id} has a signer_url, so its signer sends the payouts. To let people sign: ` +
        `deno task providers set ${id} --unset signer_url`,
    );
  }
  if (signer_address === null) {
    throw new CommandError(
      `${id} has no signer_address: add an account with the address of the Safe`,
    );
  }
  const rows = await sql<{ payout: string }[]>`
    select p::text as payout
    from pay.export_payouts(p_account_id => ${id}, p_again => ${command.is_again}) p`;
  const payouts = rows.map(({ payout }) => JSON.parse(payout) as ChainPayout);
  if (payouts.length === 0) {
    throw new CommandError(`Nothing was written: ${id} has no payout to export`);
  }
  const calls = payouts.map(({ currency, destination, amount_minor }) => ({
    to: contracts[currency]!,
    data: transferData(destination, amount_minor),
  }));
  print(`${JSON.stringify(safeBatch(chain_id, signer_address, calls, Date.now()), null, 2)}\n`);
  printMessage(
    `Exported ${payouts.length} payouts of ${id}. Import the file into the Safe ${signer_address}.`,
  );
  if (!command.is_again) return;
  printMessage("Warning: earlier batches may contain some of them. Signing both pays twice.");
}

async function findAccount(
  sql: postgres.Sql,
  { account, network }: ExportCommand,
): Promise<ListedAccount> {
  const found = (await listAccounts(sql)).filter((each) =>
    each.account === account && each.connector === "evm" &&
    (network === null || each.settings.network === network)
  );
  if (found.length === 1) return found[0]!;
  const where = network === null ? "" : ` on ${network}`;
  throw new CommandError(
    found.length === 0
      ? `--account "${account}" has no account on a chain${where}`
      : `--account "${account}" has several accounts on chains: name one with --network`,
  );
}
