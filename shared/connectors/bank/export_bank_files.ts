/**
 * Exports orders to the bank: each is in one file and in no other one. A file is stored with its
 * bytes sealed before anybody gets it, so every export of it gives the same bytes.
 */

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { idGenerator } from "../../core/ids.ts";
import type { Vault } from "../../core/vault.ts";
import type { BankDetails } from "../../domain/providers/bank_details.ts";
import type { ProviderAccount } from "../../domain/providers/connector.ts";
import { sealContextOf } from "../../domain/providers/sealed_details.ts";
import { readSubject } from "../../domain/changes/read_resource.ts";
import { collectionOf } from "../../domain/payments/collection.ts";
import type { Payment } from "../../schema/payment.ts";
import type { BankStore } from "../../store/bank_store.ts";
import { readBankSettings } from "./bank_settings.ts";
import { type ExportedFile, filesOf, uetrOf, type WaitingOrder } from "./export_orders.ts";

/** Orders of one export. The next one takes the others. */
const ORDERS_MAX = 10_000;

export interface RefusedOrder {
  id: string;
  reason: string;
}

/**
 * Puts the orders that wait into files. Returns the orders that break a rule of the bank: they wait
 * on, for the operator.
 */
export async function exportOrders(
  account: ProviderAccount,
  store: BankStore,
  vault: Vault,
  at_ms: number,
): Promise<RefusedOrder[]> {
  const waiting = await store.ordersToExport(account.id, ORDERS_MAX);
  if (waiting.length === 0) return [];
  const orders = waiting.map(({ subject_body, ...order }) => {
    const subject = readSubject(subject_body);
    // A refund goes to its own account, or back to that of the payer.
    return { ...order, subject, owners: [order.id, subject.id] };
  });
  const owner_ids = [...new Set(orders.flatMap(({ owners }) => owners))];
  const sealed = await store.readSealed(account.environment_id, owner_ids);
  const by_owner = new Map(sealed.map((each) => [each.id, each]));
  const known: WaitingOrder[] = [];
  const unknown: RefusedOrder[] = [];
  for (const { owners, ...order } of orders) {
    if (order.kind === "collection" && collectionOf(order.subject as Payment).due_on === null) {
      unknown.push({ id: order.id, reason: "its due date is not recorded yet: export it later" });
      continue;
    }
    const [found] = owners.flatMap((owner) => by_owner.get(owner) ?? []);
    if (found === undefined) {
      const reason = "no bank account is known to which the money can go back: reject it";
      unknown.push({ id: order.id, reason });
      continue;
    }
    const details: BankDetails = JSON.parse(await vault.open(found, sealContextOf(found.id)));
    known.push({ ...order, details });
  }
  const newId = idGenerator(at_ms);
  const settings = readBankSettings(account.settings);
  const { files, refused } = filesOf(settings, known, new Date(at_ms), () => newId("bf_"));
  if (files.length > 0) await storeFiles(account, files, store, vault);
  const broken = refused.map(({ order_id: id, message: reason }) => ({ id, reason }));
  return [...unknown, ...broken];
}

/** Stores files with their orders, and their bytes sealed. */
export async function storeFiles(
  { id: account_id }: ProviderAccount,
  files: readonly ExportedFile[],
  store: BankStore,
  vault: Vault,
): Promise<void> {
  const exports = await Promise.all(files.map(async (
    { id, kind, name, bytes, payments, sum_minor, currency, is_opt_out, batches },
  ) => ({
    id,
    kind,
    name,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    payments,
    sum_minor,
    currency,
    is_opt_out,
    ...await vault.seal(Buffer.from(bytes).toString("base64"), id),
    orders: batches.flatMap(({ id: batch_id, order_ids }) =>
      order_ids.map((id) => ({
        ...{ id, batch_id },
        ...(kind === "swift_transfers" && { uetr: uetrOf(id) }),
      }))
    ),
  })));
  await store.storeExports(account_id, exports);
}

/** Returns the bytes of a file of `listExports`. */
export async function bytesOf(
  id: string,
  { environment_id }: ProviderAccount,
  store: BankStore,
  vault: Vault,
): Promise<Uint8Array> {
  const [sealed] = await store.readSealed(environment_id, [id]);
  if (sealed === undefined) throw new Error(`the file ${id} was deleted meanwhile`);
  return Buffer.from(await vault.open(sealed, sealContextOf(id)), "base64");
}
