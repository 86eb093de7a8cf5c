/**
 * Makes files for the bank out of the orders that wait for their export: one file for each kind of
 * order, because banks have a service of its own for each. Pure.
 */

import { createHash } from "node:crypto";
import { isInSepa } from "../../core/bank_countries.ts";
import { formatTime } from "../../core/clock.ts";
import {
  collectionFault,
  type CollectionOrder,
  type OrderFault,
  type OwnBankAccount,
  payoutFault,
  type PayoutOrder,
} from "../../core/bank_order.ts";
import { MAX_SEPA_AMOUNT } from "../../core/bank_schemes.ts";
import { ibanCountry } from "../../core/iban.ts";
import { saysAnything, toSepaText } from "../../core/sepa_text.ts";
import { centralEuropeanDate } from "../../core/target_calendar.ts";
import type { BankDetails } from "../../domain/providers/bank_details.ts";
import type { Payment, PaymentText } from "../../schema/payment.ts";
import type { Transfer } from "../../schema/transfer.ts";
import { bankIdentifier } from "./bank_identifier.ts";
import { type BankSettings, ownBankAccount } from "./bank_settings.ts";
import { writeCollections } from "./write_collections.ts";
import { type BankFile, UnwritableOrder } from "./write_file.ts";
import { payoutFileKind, writePayouts } from "./write_payouts.ts";

const REMITTANCE_MAX = 140;

export interface WaitingOrder {
  /** The payment, refund or transfer. */
  id: string;
  kind: "collection" | "refund" | "transfer";
  amount_minor: number;
  currency: string;
  /** Of a payout. */
  speed: "standard" | "instant";
  subject: Payment | Transfer;
  details: BankDetails;
}

export interface ExportedFile extends BankFile {
  /** Its own ids are made of it. */
  id: string;
  /** Whether the bank shall not verify its payees. */
  is_opt_out: boolean;
}

/**
 * Makes the files of orders.
 *
 * @param newId makes the id of a file
 * @returns the files, and the orders that break a rule of the bank, with the reason
 */
export function filesOf(
  settings: BankSettings,
  orders: readonly WaitingOrder[],
  created_at: Date,
  newId: () => string,
): { files: ExportedFile[]; refused: UnwritableOrder[] } {
  const account = ownBankAccount(settings);
  const files: ExportedFile[] = [];
  const refused: UnwritableOrder[] = [];
  /** Writes a file of the orders that break no rule. */
  const write = <Order extends { id: string }>(
    given: readonly Order[],
    faultOf: (order: Order, account: OwnBankAccount) => OrderFault | null,
    writer: (
      file: { account: OwnBankAccount; id: string; created_at: Date },
      orders: readonly [Order, ...Order[]],
    ) => BankFile,
  ): void => {
    const [first, ...rest] = given.filter((order) => {
      const fault = faultOf(order, account);
      if (fault) refused.push(new UnwritableOrder(order.id, fault));
      return fault === null;
    });
    if (first === undefined) return;
    const id = newId();
    const file = writer({ account, id, created_at }, [first, ...rest]);
    files.push({ ...file, id, is_opt_out: isOptOut(settings, file) });
  };
  const today = centralEuropeanDate(created_at);
  const collections = orders.filter(({ kind }) => kind === "collection").map(collectionOf);
  const payouts = orders.filter(({ kind }) => kind !== "collection")
    .map((order) => payoutOf(order, settings, today));
  write(collections, collectionFault, writeCollections);
  for (const group of Map.groupBy(payouts, payoutFileKind).values()) {
    write(group, payoutFault, writePayouts);
  }
  return { files, refused };
}

/**
 * Reports whether the bank shall not verify the payees of a file. The bytes do not say so: banks
 * take such a file with another order type of EBICS, or another option. The verification of a
 * single payout cannot be waived (Regulation (EU) 260/2012, article 5c(6)).
 */
function isOptOut({ vop }: BankSettings, { kind, batches }: BankFile): boolean {
  const is_verified = kind === "sepa_transfers" || kind === "instant_transfers";
  return vop === "opt_out" && is_verified && batches.every(({ order_ids }) => order_ids.length > 1);
}

function collectionOf({ id, amount_minor, currency, subject, details }: WaitingOrder) {
  const payment = subject as Payment;
  const { method } = payment;
  if (method?.type !== "sepa" || method.mandate === null || method.due_on === null) {
    throw new Error(`${id} has no mandate`);
  }
  const { holder_name: name, iban, bic, address } = details;
  const { mandate } = method;
  const order: CollectionOrder = {
    id,
    amount_minor,
    currency,
    remittance: remittanceOf(payerTextOf(payment)),
    payer: { name, iban, bic, address },
    mandate: {
      id: mandate.id,
      // The day in UTC: all payments of a mandate have the same one.
      signed_on: formatTime(Date.parse(mandate.signed_at)).slice(0, 10),
      sequence: mandate.sequence,
    },
    due_on: method.due_on,
  };
  return order;
}

/** Returns the text for the statement of the payer: the first that the payment has. */
function payerTextOf({ description, reference }: Payment): string | null {
  const texts = { description, reference } satisfies Record<
    Exclude<PaymentText, "return_url">,
    string | null
  >;
  return Object.values(texts).find((text) => text !== null) ?? null;
}

function payoutOf(order: WaitingOrder, settings: BankSettings, execute_on: string): PayoutOrder {
  const { id, amount_minor, currency, speed, subject, details } = order;
  const { holder_name: name, iban, bic, address } = details;
  const is_in_sepa = [iban, settings.iban].every((each) => isInSepa(ibanCountry(each)));
  const is_sepa = currency === "EUR" && is_in_sepa && amount_minor <= MAX_SEPA_AMOUNT;
  const rail = is_sepa ? "sepa" : "swift";
  const text = subject.object === "transfer"
    ? subject.description
    : `Refund of ${subject.reference ?? bankIdentifier(subject.id)}`;
  return {
    id,
    amount_minor,
    currency,
    remittance: remittanceOf(text),
    rail,
    payee: { name, iban, bic, address },
    speed: rail === "sepa" ? speed : "standard",
    charges: rail === "sepa" ? "SLEV" : settings.charges,
    uetr: rail === "sepa" ? null : uetrOf(id),
    execute_on,
  };
}

function remittanceOf(text: string | null): { text: string } | null {
  const converted = toSepaText(text ?? "").slice(0, REMITTANCE_MAX).trim();
  return saysAnything(converted) ? { text: converted } : null;
}

/** Returns the unique end-to-end reference of a payout by SWIFT: always the same UUID. */
export function uetrOf(id: string): string {
  const hex = createHash("sha256").update(`uetr ${id}`).digest("hex");
  const variant = "89ab"[parseInt(hex[16]!, 16) % 4];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${
    hex.slice(17, 20)
  }-${hex.slice(20, 32)}`;
}
