/**
 * `deno task bank` exchanges files with a bank by hand: it imports statements, notifications and
 * status reports, and exports collections and payouts (ADR 0021). bank_command.ts reads the
 * options.
 */

import type postgres from "postgres";
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { BankFileError } from "../../shared/connectors/bank/bank_file_error.ts";
import { bankIdentifier } from "../../shared/connectors/bank/bank_identifier.ts";
import { ownBankAccount, readBankSettings } from "../../shared/connectors/bank/bank_settings.ts";
import {
  bytesOf,
  exportOrders,
  storeFiles,
} from "../../shared/connectors/bank/export_bank_files.ts";
import {
  type FileResult,
  type Imported,
  refusedResult,
  resultOf,
} from "../../shared/connectors/bank/file_result.ts";
import {
  importBankFile,
  type ImportedFile,
} from "../../shared/connectors/bank/import_bank_file.ts";
import { type RecallReason, writeRecall } from "../../shared/connectors/bank/write_recall.ts";
import { idGenerator, isId } from "../../shared/core/ids.ts";
import type { Vault } from "../../shared/core/vault.ts";
import { payeeCheckOf, rejectionOf } from "../../shared/connectors/bank/reported_statuses.ts";
import type { ProviderAccount } from "../../shared/domain/providers/connector.ts";
import { needsApproval } from "../../shared/domain/payments/lifecycle.ts";
import {
  type BankOrder,
  BankStore,
  type ImportState,
  type StoredExport,
} from "../../shared/store/bank_store.ts";
import { readFolder, readOrderId, readReason, readText, USAGE } from "./bank_command.ts";
import {
  type Action,
  action,
  type Actions,
  CommandError,
  readVault,
  type Surroundings,
  UsageError,
  type Values,
} from "./command_line.ts";
import { databaseOf } from "./operator_database.ts";
import { listAccounts } from "./provider_table.ts";

export { USAGE };

/** Largest file. The memory of an import does not grow with it. */
const BYTES_MAX = 1024 ** 3;
const PIECE_BYTES = 64 * 1024;
/** Longest time to wait for the service that applies the entries, while nothing is applied. */
const SERVICE_PATIENCE_MS = 30_000;
/** Shortest pause between two looks. The count of a large file takes longer, and so the pause. */
const POLL_MS = 250;

/** The surroundings of a command with its account. */
interface Desk extends Surroundings {
  account: ProviderAccount;
  store: BankStore;
  is_json: boolean;
  /** Prints a line: the object as JSON, or the text. */
  show: (line: object, text: string) => void;
}

/** Makes an action for an account. Its work returns 1 after a failure or for a refused file. */
function accountAction<const Name extends string>(
  takes: readonly Name[],
  read: (values: Values<Name>, names: string[]) => (desk: Desk) => Promise<number>,
): Action {
  return action<string>(["account", "json", ...takes], (values, names) => {
    const { account: id = "", json: is_json = false } = values as Values<"account" | "json">;
    if (!isId("pac_", id)) {
      throw new UsageError(`--account must be the id of an account, such as pac_…\n\n${USAGE}`);
    }
    const work = read(values as Values<Name>, names);
    return async (surroundings) => {
      const { sql, print } = surroundings;
      const account = await findAccount(sql, id);
      const show: Desk["show"] = (line, text) =>
        print(`${is_json ? JSON.stringify(line) : text}\n`);
      return await work({ ...surroundings, account, store: storeOf(sql), is_json, show });
    };
  });
}

export const ACTIONS: Actions = {
  import: accountAction(["…"], (_, files) => {
    if (files.length === 0) throw new UsageError("bank import needs a FILE");
    return (desk) => importFiles(files, desk);
  }),
  export: accountAction(["out", "file"], ({ out, file }) => {
    const folder = readFolder("export", out);
    return (desk) => exportFiles(folder, file ?? null, desk);
  }),
  list: accountAction([], () => listOrders),
  approve: accountAction(["…"], (_, names) => {
    const id = readOrderId("approve", names);
    return (desk) => approveOrder(id, desk);
  }),
  reject: accountAction(["…", "reason"], ({ reason }, names) => {
    const id = readOrderId("reject", names);
    const text = reason === undefined ? undefined : readText(reason);
    return (desk) => rejectOrder(id, text, desk);
  }),
  recall: accountAction(["…", "out", "reason"], ({ out, reason }, names) => {
    const folder = readFolder("recall", out);
    const id = readOrderId("recall", names);
    const code = readReason(reason);
    return (desk) => recallOrder(id, folder, code, desk);
  }),
};

async function importFiles(files: readonly string[], desk: Desk): Promise<number> {
  let is_refused = false;
  for (const file of files) {
    const result = await importFile(file, desk);
    is_refused ||= result.result === "refused";
    desk.show(result, textOfResult(result));
  }
  return is_refused ? 1 : 0;
}

async function listOrders({ account, store, is_json, print }: Desk): Promise<number> {
  const orders = (await store.listOrders(account.id)).map(shownOrder);
  print(is_json ? `${JSON.stringify(orders)}\n` : orders.map(textOfOrder).join(""));
  return 0;
}

/** Returns what the operator sees of an order, and the command that it waits for. */
function shownOrder(order: BankOrder) {
  const { id, kind, state, payee_check, amount_minor, currency, is_approved } = order;
  const shown = { id, kind, state, payee_check, amount_minor, currency };
  const waits = needsApproval(payeeCheckOf(payee_check)) && !is_approved;
  return waits ? { ...shown, next: "approve" } : shown;
}

function textOfOrder(order: ReturnType<typeof shownOrder>): string {
  const { id, kind, state, payee_check, amount_minor, currency } = order;
  const parts = [state, payee_check, "next" in order ? "waits for an approval" : null];
  const shown = parts.filter((part) => part !== null).join(", ");
  return `${id}  ${kind}  ${shown}  ${amount_minor} ${currency}\n`;
}

async function importFile(
  file: string,
  { account, store, sql, env, printMessage }: Desk,
): Promise<FileResult> {
  // Without keys the bank details of payers would be lost: a file is imported once.
  const vault = readVault(env);
  let sha256: string;
  let stored: Imported;
  try {
    sha256 = await hashOf(file);
    stored = await storeFile(file, sha256, account, sql, vault);
  } catch (error) {
    if (!(error instanceof BankFileError || isUnreadable(error))) throw error;
    return refusedResult(file, error.message);
  }
  return resultOf(file, stored, await stateAfterWork(account.id, sha256, store, printMessage));
}

/** Reports whether a file cannot be read: the files beside it are imported all the same. */
function isUnreadable(error: unknown): error is Error {
  const { IsADirectory, NotFound, PermissionDenied } = Deno.errors;
  return [IsADirectory, NotFound, PermissionDenied].some((kind) => error instanceof kind);
}

/** Stores what a file says in one transaction. */
async function storeFile(
  file: string,
  sha256: string,
  account: ProviderAccount,
  sql: postgres.Sql,
  vault: Vault,
): Promise<Imported> {
  return await sql.begin(async (transaction) => {
    const store = storeOf(transaction);
    const known = await store.beginFile(account.id, sha256, basename(file));
    if (known !== null) return { imported: known as ImportedFile, is_new: false };
    const source = { bytes: piecesOf(file), bytes_max: BYTES_MAX, rows_max: Infinity, sha256 };
    const imported = await importBankFile(account, source, vault, {
      storeRows: (rows) => store.storeRows(account.id, sha256, rows),
      findOrders: (id) => store.findOrders(account.id, id),
      findReferences: (beginnings) => store.findReferences(account.id, beginnings),
      readPayers: (references) => store.readPayers(account.id, references),
    });
    const result = await store.endFile(account.id, sha256, imported);
    return { imported: result as ImportedFile, is_new: true };
  });
}

/** Waits until the service has applied the events of a file, or does nothing for a while. */
async function stateAfterWork(
  account_id: string,
  sha256: string,
  store: BankStore,
  printMessage: (line: string) => void,
): Promise<ImportState> {
  let left = Infinity;
  let give_up_at = 0;
  for (;;) {
    const asked_at = performance.now();
    const state = await store.importState(account_id, sha256);
    const pause_ms = Math.max(POLL_MS, 4 * (performance.now() - asked_at));
    const { waiting } = state;
    if (waiting === 0) return state;
    if (waiting < left) give_up_at = performance.now() + SERVICE_PATIENCE_MS;
    left = waiting;
    if (performance.now() > give_up_at) {
      printMessage(`${waiting} entries wait for the service, which applies them when it runs`);
      return state;
    }
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }
}

/** Writes the files that nobody has got yet; with a name only that file, which is made already. */
async function exportFiles(folder: string, name: string | null, desk: Desk): Promise<number> {
  const { account, store, sql, env, now_ms, printMessage } = desk;
  const vault = readVault(env);
  if (name !== null) {
    await writeExport(await findExport(store, account, name), folder, vault, desk);
    return 0;
  }
  const refused = await sql.begin((transaction) =>
    exportOrders(account, storeOf(transaction), vault, now_ms())
  );
  for (const file of await store.listExports(account.id, null)) {
    if (!file.is_written) await writeExport(file, folder, vault, desk);
  }
  for (const { id, reason } of refused) printMessage(`${id} waits: ${reason}`);
  return refused.length > 0 ? 1 : 0;
}

async function findExport(
  store: BankStore,
  account: ProviderAccount,
  name: string,
): Promise<StoredExport> {
  const [file] = await store.listExports(account.id, name);
  if (file !== undefined) return file;
  throw new CommandError(`${account.id} has no file ${name}, or its bytes were deleted`);
}

/** Writes the bytes of a file, always the same. */
async function writeExport(
  file: StoredExport,
  folder: string,
  vault: Vault,
  { account, store, show }: Desk,
): Promise<void> {
  const { id, kind, payments, sum_minor: sum, currency, is_opt_out } = file;
  await Deno.mkdir(folder, { recursive: true });
  const path = join(folder, file.name);
  await writeWhole(path, await bytesOf(id, account, store, vault));
  await store.noteExport(account.id, id);
  show(
    { file: path, kind, payments, sum, currency, ...(is_opt_out && { vop: "opt_out" }) },
    `${path}: ${payments} ${kind}${is_opt_out ? ", without verification of payees" : ""}`,
  );
}

/** Notes that an order shall go on, and names it as the bank does, which still holds it. */
async function approveOrder(id: string, { account, store, show }: Desk): Promise<number> {
  const { payee_check, file_name: file } = await findOrder(store, account, id);
  if (!needsApproval(payeeCheckOf(payee_check))) {
    throw new CommandError(`${id} does not wait for an approval`);
  }
  if (!await store.approveOrder(account.id, id)) {
    throw new CommandError(`${id} is approved already`);
  }
  const order = bankIdentifier(id);
  show(
    { id, result: "approved", file, order },
    `Approved ${id}. Release the order ${order} of the file ${file} at the bank`,
  );
  return 0;
}

/** Ends an order that waits for its export: it fails. */
async function rejectOrder(
  id: string,
  reason: string | undefined,
  { account, sql, now_ms, show }: Desk,
): Promise<number> {
  await sql.begin(async (transaction) => {
    const store = storeOf(transaction);
    const order = await findOrder(store, account, id);
    const state = await store.endOrder(account.id, id, "rejected");
    if (state !== "rejected") {
      throw new CommandError(
        `${id} is exported already. Ask the bank to give it back: deno task bank recall ${id} ` +
          `--account ${account.id} --out DIR`,
      );
    }
    const at = new Date(now_ms()).toISOString();
    await store.storeEvents(account.id, [rejectionOf(account.id, order, at, null, reason)]);
  });
  show({ id, result: "rejected" }, `Rejected ${id}`);
  return 0;
}

/** Writes the request to give an exported order back: for each reason one, with the same bytes. */
async function recallOrder(
  id: string,
  folder: string,
  reason: RecallReason,
  desk: Desk,
): Promise<number> {
  const { account, store, env, now_ms } = desk;
  const vault = readVault(env);
  const order = await findRecallable(store, account, id);
  const name = `recall_${bankIdentifier(id)}_${reason.toLowerCase()}.xml`;
  if ((await store.listExports(account.id, name)).length === 0) {
    const own = ownBankAccount(readBankSettings(account.settings));
    const input = {
      id: idGenerator(now_ms())("bf_"),
      created_at: new Date(now_ms()),
      account: own,
    };
    const written = writeRecall(input, order.file, [{ ...order, reason }]);
    // Its order stays that of the file which is recalled.
    const file = { ...written, id: input.id, name, is_opt_out: false, batches: [] };
    await storeFiles(account, [file], store, vault);
  }
  await writeExport(await findExport(store, account, name), folder, vault, desk);
  return 0;
}

/**
 * Returns an order that can be recalled, with its file: an exported one without a result, or a
 * payout that the bank has made.
 */
async function findRecallable(store: BankStore, account: ProviderAccount, id: string) {
  const order = (await store.findOrders(account.id, id)).find((order) => order.id === id);
  if (order?.is_open && order.state === "waiting") {
    throw new CommandError(`${id} is not exported yet: deno task bank reject ${id}`);
  }
  const is_made = order?.kind !== "collection" && order?.status === "completed";
  const { batch_id = null, export_id = null } = order ?? {};
  if (!order || !(order.is_open || is_made) || batch_id === null || export_id === null) {
    throw new CommandError(`${id} is no order of ${account.id} that can be recalled`);
  }
  const file = {
    id: export_id,
    kind: order.file_kind as Parameters<typeof writeRecall>[1]["kind"],
    created_at: new Date(order.file_created_at!),
  };
  return { ...order, batch_id, file };
}

/** Writes a file, so that it is there as a whole or not at all. Only the owner can read it. */
async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}`;
  await Deno.writeFile(temporary, bytes, { mode: 0o600, createNew: true });
  await Deno.rename(temporary, path);
}

async function findOrder(
  store: BankStore,
  account: ProviderAccount,
  id: string,
): Promise<BankOrder> {
  const order = (await store.findOrders(account.id, id)).find((order) => order.id === id);
  if (order?.is_open && /^(waiting|exported)$/.test(order.state)) return order;
  throw new CommandError(`${id} is no order of ${account.id} without a result`);
}

async function findAccount(sql: postgres.Sql, id: string): Promise<ProviderAccount> {
  const found = (await listAccounts(sql)).find((account) =>
    account.id === id && account.connector === "bank"
  );
  if (found === undefined) throw new CommandError(`${id}: no such account at a bank`);
  const { environment_id, connector, settings } = found;
  return { id, environment_id, connector, settings, secret: null, notification_secrets: [] };
}

function storeOf(sql: postgres.Sql | postgres.TransactionSql): BankStore {
  return new BankStore(databaseOf(sql as postgres.Sql));
}

async function hashOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of piecesOf(file)) hash.update(piece);
  return hash.digest("hex");
}

/** Reads a file in pieces, all in the same memory: new memory would wait for its collection. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  using file = await Deno.open(path);
  const buffer = new Uint8Array(PIECE_BYTES);
  for (;;) {
    const length = await file.read(buffer);
    if (length === null) return;
    yield buffer.subarray(0, length);
  }
}

function textOfResult(
  { file, result, entries, booked, exceptions, warnings, error }: FileResult,
): string {
  if (error !== null) return `${file}: refused. ${error}`;
  const counts = `${entries} entries, ${booked} booked, ${exceptions} for the operator`;
  return [`${file}: ${result}, ${counts}`, ...warnings.map((warning) => `  ${warning}`)].join("\n");
}
