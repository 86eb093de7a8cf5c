/**
 * The store of what only banks need: orders, files, entries and sealed bank details. Each call runs
 * one entry function in one round trip (supabase/schemas/bank_*.sql).
 */

import type { Sealed } from "../core/vault.ts";
import type { Database } from "./database.ts";
import type { ProviderEvent } from "./provider_rows.ts";

/** An order that waits for its export. Bodies are JSON text. */
interface OrderToExport {
  /** The payment, refund or transfer. */
  id: string;
  kind: "collection" | "refund" | "transfer";
  amount_minor: number;
  currency: string;
  subject_body: string;
}

/** A file for the bank. */
export interface StoredExport {
  id: string;
  kind: string;
  name: string;
  sha256: string;
  payments: number;
  sum_minor: number;
  currency: string;
  /** Whether the bank shall not verify its payees. */
  is_opt_out: boolean;
  /** RFC 3339. */
  created_at: string;
  /** Whether the operator or a bridge has got it. */
  is_written: boolean;
  key_id: string;
  /** Its bytes, sealed; null in a list. */
  sealed: string | null;
}

/** A file to store, with its orders. */
type NewExport = Omit<StoredExport, "created_at" | "is_written" | "sealed"> & Sealed & {
  orders: { id: string; batch_id: string }[];
};

/** An order without a result, for the operator. */
export interface OpenOrder {
  id: string;
  /** The payment or transfer. */
  subject_id: string;
  kind: OrderToExport["kind"];
  state: "waiting" | "exported";
  payee_check: string | null;
  amount_minor: number;
  currency: string;
  /** The file and the batch that have it; null: none yet. */
  export_id: string | null;
  batch_id: string | null;
}

/** An exported order that a file of the bank names. */
interface FoundOrder {
  id: string;
  subject_id: string;
  amount_minor: number;
  currency: string;
  is_open: boolean;
}

/** An entry to store. */
interface NewEntry {
  id: string;
  booked_on: string;
  amount_minor: number;
  currency: string;
  is_total: boolean;
  provider_events: readonly ProviderEvent[];
}

/** A whole file to import. */
interface NewFile {
  sha256: string;
  name: string;
  entries: readonly NewEntry[];
  provider_events: readonly ProviderEvent[];
  checks: readonly { id: string; code: string }[];
  details: readonly (Sealed & { owner_id: string })[];
  result: unknown;
}

/** What the worker has made of the events of an imported file. */
export interface ImportState {
  waiting: number;
  booked: number;
  exceptions: number;
}

/** The store of banks. Each method throws `ApiError`. */
export interface BankStore {
  ordersToExport(account_id: string, limit: number): Promise<OrderToExport[]>;
  readDetails(
    account_id: string,
    owner_ids: readonly string[],
  ): Promise<(Sealed & { owner_id: string })[]>;
  /** Stores details, unless they are known. */
  keepDetails(
    account_id: string,
    details: readonly (Sealed & { owner_id: string })[],
  ): Promise<void>;
  /** Stores files. Throws if an order is in another file, or was ended meanwhile. */
  storeExports(account_id: string, exports: readonly NewExport[]): Promise<void>;
  /**
   * Returns the files of an account: those that nobody has got, then the newest, 1 000 at most; with
   * a name only that one, with its bytes.
   */
  listExports(account_id: string, name: string | null): Promise<StoredExport[]>;
  /** Notes that somebody has got a file. */
  noteExport(account_id: string, id: string): Promise<void>;
  listOrders(account_id: string): Promise<OpenOrder[]>;
  findOrders(account_id: string, id: string): Promise<FoundOrder[]>;
  /** Ends an order that waits. Returns the state that it has then; null: there is no such order. */
  endOrder(
    account_id: string,
    id: string,
    state: "withdrawn" | "rejected",
  ): Promise<OpenOrder["state"] | "withdrawn" | "rejected" | null>;
  /** Notes the result of the verification of a payee; null: the operator has approved it. */
  notePayeeCheck(account_id: string, id: string, code: string | null): Promise<void>;
  /** Begins an import. Returns null if the file is new, else the result of its import. */
  beginFile(account_id: string, sha256: string, name: string): Promise<unknown>;
  /** Returns the number of new entries. */
  storeEntries(account_id: string, sha256: string, entries: readonly NewEntry[]): Promise<number>;
  storeEvents(account_id: string, provider_events: readonly ProviderEvent[]): Promise<void>;
  endFile(account_id: string, sha256: string, result: unknown): Promise<void>;
  /** Imports a whole file. Returns null if it is new, else the result of its import. */
  importFile(account_id: string, file: NewFile): Promise<unknown>;
  /** Returns the hash of the token of an account's bridge in hex, or null without one. */
  readBridgeHash(account_id: string): Promise<string | null>;
  importState(account_id: string, sha256: string): Promise<ImportState>;
}

/** Creates the store over one database. */
export function createBankStore(database: Pick<Database, "query">): BankStore {
  /** Runs an entry function, and returns its rows as objects. */
  async function rows<T>(call: string, ...parameters: (string | null)[]): Promise<T[]> {
    const texts = parameters.map((_, i) => `$${i + 1}::text`);
    const list = call.replace(/\$/g, () => texts.shift()!);
    const found = await database.query<{ found: string }>(
      `select to_jsonb(t)::text as found from ${list} t`,
      parameters,
    );
    return found.map(({ found }) => JSON.parse(found));
  }
  async function value<T>(call: string, ...parameters: (string | null)[]): Promise<T> {
    const [row] = await rows<T>(call, ...parameters);
    return row as T;
  }
  return {
    ordersToExport: (account_id, limit) =>
      rows("pay.bank_orders_to_export($, $::int)", account_id, String(limit)),
    readDetails: (account_id, owner_ids) =>
      rows("pay.read_bank_details($, $::text[])", account_id, arrayOf(owner_ids)),
    async keepDetails(account_id, details) {
      if (details.length === 0) return;
      await value("pay.keep_bank_details($, $)", account_id, JSON.stringify(details));
    },
    async storeExports(account_id, exports) {
      await value("pay.store_bank_exports($, $)", account_id, JSON.stringify(exports));
    },
    listExports: (account_id, name) => rows("pay.list_bank_exports($, $)", account_id, name),
    async noteExport(account_id, id) {
      await value("pay.note_bank_export($, $)", account_id, id);
    },
    listOrders: (account_id) => rows("pay.list_bank_orders($)", account_id),
    findOrders: (account_id, id) => rows("pay.find_bank_orders($, $)", account_id, id),
    endOrder: (account_id, id, state) =>
      value("pay.end_bank_order($, $, $)", account_id, id, state),
    async notePayeeCheck(account_id, id, code) {
      await value("pay.note_payee_check($, $, $)", account_id, id, code);
    },
    beginFile: (account_id, sha256, name) =>
      value("pay.begin_bank_file($, $, $)", account_id, sha256, name),
    storeEntries: (account_id, sha256, entries) =>
      value("pay.store_bank_entries($, $, $)", account_id, sha256, JSON.stringify(entries)),
    async storeEvents(account_id, provider_events) {
      if (provider_events.length === 0) return;
      await value("pay.store_provider_events($, $)", account_id, JSON.stringify(provider_events));
    },
    async endFile(account_id, sha256, result) {
      await value("pay.end_bank_file($, $, $)", account_id, sha256, JSON.stringify(result));
    },
    importFile: (account_id, file) =>
      value("pay.import_bank_file($, $)", account_id, JSON.stringify(file)),
    readBridgeHash: (account_id) => value("pay.read_bridge_hash($)", account_id),
    importState: (account_id, sha256) => value("pay.bank_file_state($, $)", account_id, sha256),
  };
}

/** Makes the text of an array of ids. */
function arrayOf(ids: readonly string[]): string {
  return `{${ids.join(",")}}`;
}
