/**
 * The store of what only banks need: orders, files, entries and sealed bank details. Each call runs
 * one entry function in one round trip (supabase/schemas/bank_*.sql).
 */

import type { Sealed } from "../core/vault.ts";
import { arrayOf, type Database } from "./database.ts";
import type { RateLimits } from "./outcome.ts";
import type { ProviderEvent } from "./provider_rows.ts";
import { callsOf, sql } from "./statement.ts";

/** An order that waits for its export. Bodies are JSON text. */
interface OrderToExport {
  /** The payment, refund or transfer. */
  id: string;
  kind: "collection" | "refund" | "transfer";
  amount_minor: number;
  currency: string;
  /** Of a payout. */
  speed: "standard" | "instant";
  subject_body: string;
}

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
}

type NewExport = Omit<StoredExport, "created_at" | "is_written"> & Sealed & {
  /** `uetr` of a payout by SWIFT. */
  orders: { id: string; batch_id: string; uetr?: string }[];
};

export interface BankOrder {
  /** The payment, refund or transfer. */
  id: string;
  /** The payment or transfer. */
  subject_id: string;
  kind: OrderToExport["kind"];
  state: "waiting" | "exported" | "withdrawn" | "rejected";
  /** The bank's last code of the verification of the payee; null: none. */
  payee_check: string | null;
  /** Whether the operator has approved it in spite of that code. */
  is_approved: boolean;
  amount_minor: number;
  currency: string;
  /** That of the payment, refund or transfer. */
  status: string;
  /** Whether it has no result yet. */
  is_open: boolean;
  /** The batch and the file that have it; null: it is in none. */
  batch_id: string | null;
  export_id: string | null;
  file_kind: string | null;
  file_name: string | null;
  /** RFC 3339. */
  file_created_at: string | null;
}

/** A reference of an operation that begins with a text. */
export interface FoundReference {
  beginning: string;
  /** The whole one: of a payment by bank transfer, or the written id of an order. */
  reference: string;
  amount_minor: number;
  currency: string;
  /** Whether its payment, refund or transfer has no result yet. */
  is_open: boolean;
}

/** A batch or a file for the bank, as an entry names it. */
export interface NewBatch {
  /** As the bank repeats it, in lower case. */
  id: string;
  /** The amount of the entry without the bank's charge. */
  sum_minor: number;
}

interface NewEntry {
  id: string;
  booked_on: string;
  amount_minor: number;
  currency: string;
  is_total: boolean;
  /** Of which it is the total; null: of none. */
  batch: NewBatch | null;
  /** That of its file, such as `camt.053`, which is complete. */
  kind: string;
  provider_events: readonly ProviderEvent[];
}

/** A result of the verification of the payee of an order. */
export interface NewCheck {
  id: string;
  /** The bank's code. */
  code: string;
  /** Stored if the code changes that of the order. */
  provider_event: ProviderEvent;
}

/** The camt.053 that entries stand in. */
export interface NewStatement {
  /** Which part of which statement it is, if it comes in several; null: it is whole. */
  page: { statement_id: string; number: number } | null;
  /** Its booked balances, with their days (`YYYY-MM-DD`); null: the closing one is not known. */
  balances: {
    currency: string;
    opened_on: string | null;
    opening_minor: number | null;
    closed_on: string;
    closing_minor: number;
  } | null;
}

export interface NewRows {
  /** Null for rows of another kind of file. */
  statement: NewStatement | null;
  /** Whether its entries end here, and come to the difference of its balances. */
  proves_balances: boolean;
  entries: NewEntry[];
  provider_events: ProviderEvent[];
  checks: NewCheck[];
  /**
   * The details of payers that were not known, to whom refunds can go back, by the reference of
   * their payment, with the member without which none can be written; nulls: it has several payers.
   */
  payers: ((Sealed & { lacks?: string } | { key_id: null; sealed: null }) & {
    reference: string;
  })[];
}

interface NewFile {
  sha256: string;
  name: string;
  result: unknown;
  /** JSON texts of `NewRows`, in the order of the file. */
  parts: readonly string[];
}

/** What the worker has made of the events of an imported file. */
export interface ImportState {
  waiting: number;
  booked: number;
  exceptions: number;
}

/** The store of banks. Each method throws `ApiError`. */
export class BankStore {
  readonly #rows: ReturnType<typeof callsOf>;

  constructor(database: Pick<Database, "query">) {
    this.#rows = callsOf(database);
  }

  ordersToExport(account_id: string, limit: number): Promise<OrderToExport[]> {
    return this.#rows`pay.bank_orders_to_export(${account_id}, ${limit}::int)`;
  }

  /** Returns the sealed texts of payments, refunds, transfers and files. */
  readSealed(environment_id: string, ids: readonly string[]): Promise<(Sealed & { id: string })[]> {
    return this.#rows`pay.read_sealed_texts(${environment_id}, ${arrayOf(ids)}::text[])`;
  }

  readPayers(
    account_id: string,
    references: readonly string[],
  ): Promise<(Sealed & { reference: string })[]> {
    return this.#rows`pay.read_payer_details(${account_id}, ${arrayOf(references)}::text[])`;
  }

  /** Stores files. Throws if an order is in another file, or was ended meanwhile. */
  async storeExports(account_id: string, exports: readonly NewExport[]): Promise<void> {
    await this.#rows`pay.store_bank_exports(${account_id}, ${exports})`;
  }

  /**
   * Returns the files of an account whose bytes are still there: those that nobody has got, then
   * the newest, 1 000 at most; with a name only that one.
   */
  listExports(account_id: string, name: string | null): Promise<StoredExport[]> {
    return this.#rows`pay.list_bank_exports(${account_id}, ${name})`;
  }

  /** Notes that somebody has got a file. */
  async noteExport(account_id: string, id: string): Promise<void> {
    await this.#rows`pay.note_bank_export(${account_id}, ${id})`;
  }

  /** Returns the orders without a result. */
  listOrders(account_id: string): Promise<BankOrder[]> {
    return this.#rows`pay.list_bank_orders(${account_id})`;
  }

  /** Returns the order of an id or a UETR, and those of a batch or file with it. */
  findOrders(account_id: string, id: string): Promise<BankOrder[]> {
    return this.#rows`pay.find_bank_orders(${account_id}, ${id})`;
  }

  /** Returns the references of an account that begin with one of these texts. */
  findReferences(account_id: string, beginnings: readonly string[]): Promise<FoundReference[]> {
    return this.#rows`pay.find_bank_references(${account_id}, ${arrayOf(beginnings)}::text[])`;
  }

  /** Ends an order that waits. Returns the state that it has then; null: there is no such order. */
  endOrder(
    account_id: string,
    id: string,
    state: "withdrawn" | "rejected",
  ): Promise<BankOrder["state"] | null> {
    return this.#value`pay.end_bank_order(${account_id}, ${id}, ${state})`;
  }

  /** Notes that the operator approves an order. Returns false if somebody has done so before. */
  approveOrder(account_id: string, id: string): Promise<boolean> {
    return this.#value`pay.approve_bank_order(${account_id}, ${id})`;
  }

  /** Begins an import. Returns null if the file is new, else the result of its import. */
  beginFile(account_id: string, sha256: string, name: string): Promise<unknown> {
    return this.#value`pay.begin_bank_file(${account_id}, ${sha256}, ${name})`;
  }

  /** Stores rows of a file. Returns the number of new entries. */
  storeRows(account_id: string, sha256: string, rows: NewRows): Promise<number> {
    return this.#value`pay.store_bank_rows(${account_id}, ${sha256}, ${rows})`;
  }

  async storeEvents(account_id: string, provider_events: readonly ProviderEvent[]): Promise<void> {
    await this.#rows`pay.store_provider_events(${account_id}, ${provider_events})`;
  }

  /** Ends an import. Returns its result, with the warnings about entries of other files. */
  endFile(account_id: string, sha256: string, result: unknown): Promise<unknown> {
    return this.#value`pay.end_bank_file(${account_id}, ${sha256}, ${JSON.stringify(result)})`;
  }

  /** Imports a whole file. Returns the result of its import, now or earlier. */
  importFile(
    account_id: string,
    { parts, ...file }: NewFile,
  ): Promise<{ is_new: boolean; result: unknown }> {
    const text = `${JSON.stringify(file).slice(0, -1)},"parts":[${parts.join(",")}]}`;
    return this.#value`pay.import_bank_file(${account_id}, ${text})`;
  }

  /** Returns the hash of the token of an account's bridge in hex, or null without one. */
  readBridgeHash(account_id: string): Promise<string | null> {
    return this.#value`pay.read_bridge_hash(${account_id})`;
  }

  /** Counts a request of a bridge with those of the live keys. False: it is one too many. */
  countBridgeRequest(account_id: string, { key, account }: RateLimits): Promise<boolean> {
    return this.#value`pay.count_bridge_request(${account_id}, ${key}::int, ${account}::int)`;
  }

  importState(account_id: string, sha256: string): Promise<ImportState> {
    return this.#value`pay.bank_file_state(${account_id}, ${sha256})`;
  }

  async #value<T>(...call: Parameters<typeof sql>): Promise<T> {
    const [row] = await this.#rows<T>(...call);
    return row as T;
  }
}
