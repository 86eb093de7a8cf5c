/**
 * Details of bank entries that a person has to assign. They are sealed, so only a command with
 * BANK_DETAILS_KEYS shows them.
 */

import type postgres from "postgres";
import type { EntryAbout } from "../../shared/connectors/bank/booked_entries.ts";
import { payersToKeep } from "../../shared/connectors/bank/payers_to_keep.ts";
import { type BankDetails, payerDetails } from "../../shared/domain/providers/bank_details.ts";
import { entryId, sealContextOf } from "../../shared/domain/providers/sealed_details.ts";
import { BankStore } from "../../shared/store/bank_store.ts";
import { readVault } from "./command_line.ts";
import { databaseOf } from "./operator_database.ts";

interface EntryEvent {
  environment_id: string;
  account_id: string;
  reference: string;
  subject_id: string | null;
}

/** Opens sealed texts about entries. */
export class EntryDetails {
  readonly #sql: postgres.Sql;
  readonly #env: (name: string) => string | undefined;

  constructor(sql: postgres.Sql, env: (name: string) => string | undefined) {
    this.#sql = sql;
    this.#env = env;
  }

  /**
   * Returns what the bank tells about an entry, or the payer of the payment that it is for. Null:
   * nothing is kept. "sealed": the command has no keys.
   */
  async read(event: EntryEvent): Promise<EntryAbout | "sealed" | null> {
    const { environment_id, subject_id } = event;
    const id = entryId(event);
    const store = new BankStore(databaseOf(this.#sql));
    const found = await store.readSealed(environment_id, [id, ...subject_id ? [subject_id] : []]);
    const text = found.find((each) => each.id === id) ?? found[0];
    if (text === undefined) return null;
    if (this.#env("BANK_DETAILS_KEYS") === undefined) return "sealed";
    let opened: unknown;
    try {
      opened = JSON.parse(await readVault(this.#env).open(text, sealContextOf(text.id)));
    } catch {
      // Sealed with a key that is missing. The other entries are still shown.
      return "sealed";
    }
    if (text.id === id) return opened as EntryAbout;
    const { holder_name: name, iban, bic } = opened as BankDetails;
    return { counterparty: { name, iban, bic, account: null }, text: null };
  }

  /**
   * Returns the payer of an entry as `settle` takes it, for the payment that it is matched with.
   * @param payment_id null: the entry is no money of a payer
   * @throws {CommandError} if the command has no keys
   */
  async payers(event: EntryEvent, payment_id: string | null): Promise<unknown[]> {
    const { environment_id, account_id } = event;
    const store = new BankStore(databaseOf(this.#sql));
    const [text] = await store.readSealed(environment_id, [entryId(event)]);
    if (text === undefined || payment_id === null) return [];
    const vault = readVault(this.#env);
    const { counterparty }: EntryAbout = JSON.parse(
      await vault.open(text, sealContextOf(text.id)),
    );
    const details = payerDetails(counterparty);
    if (details === null) return [];
    const reference = sealContextOf(payment_id);
    const known = await store.readPayers(account_id, [reference]);
    return await payersToKeep(
      [{ reference, details }],
      known,
      vault,
      (payer) => vault.open(payer, reference),
    );
  }

  /** Stores the payers of a matched entry, and deletes what was kept about it. */
  async settle(
    { account_id, reference }: Pick<EntryEvent, "account_id" | "reference">,
    payers: unknown[],
  ): Promise<void> {
    await this.#sql`select pay.settle_entry_details(p_account_id => ${account_id},
      p_reference => ${reference}, p_payers => ${JSON.stringify(payers)})`;
  }
}
