/**
 * The transfer on the wire: money out of the available balance (contract §3).
 */

import { z } from "zod";
import { STABLECOINS } from "../core/currency.ts";
import { NETWORKS } from "../core/wallet_address.ts";
import { IbanInput, WalletInput } from "./payment.ts";
import {
  AmountMinor,
  Currency,
  Description,
  Instant,
  Metadata,
  requiredAmount,
  sameAmount,
} from "./values.ts";

/** Every status of a transfer. */
export const TRANSFER_STATUSES = ["pending", "completed", "failed", "cancelled"] as const;
export type TransferStatus = typeof TRANSFER_STATUSES[number];

/** `POST /v1/transfers` */
export const CreateTransferBody = z.object({
  amount: AmountMinor.optional(),
  amount_minor: AmountMinor.optional(),
  currency: Currency,
  destination: z.object({ iban: IbanInput.optional(), wallet: WalletInput.optional() }),
  description: Description.optional(),
  metadata: Metadata.optional(),
  settlement: z.enum(["instant", "manual"]).optional(),
}).superRefine(sameAmount).superRefine(requiredAmount);
export type CreateTransferBody = z.infer<typeof CreateTransferBody>;

/** `POST /transfers/{id}/advance`: the status to move to. */
export const AdvanceTransferBody = z.object({ to: z.enum(TRANSFER_STATUSES) });

/** Where the money goes, as far as it is shown. */
export const TransferDestination = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("iban"),
    iban: z.object({ country: z.string(), last4: z.string() }),
  }),
  z.object({
    type: z.literal("wallet"),
    wallet: z.object({
      address: z.string(),
      network: z.enum(NETWORKS),
      asset: z.enum(STABLECOINS),
      tx_hash: z.string().nullable(),
    }),
  }),
]);
export type TransferDestination = z.infer<typeof TransferDestination>;

/** A transfer as every answer shows it. */
export const Transfer = z.object({
  id: z.string(),
  object: z.literal("transfer"),
  status: z.enum(TRANSFER_STATUSES),
  amount: AmountMinor,
  amount_minor: AmountMinor,
  currency: z.string(),
  destination: TransferDestination,
  description: z.string().nullable(),
  metadata: z.record(z.string(), z.string()),
  failure_code: z.string().nullable(),
  failure_message: z.string().nullable(),
  return_code: z.string().nullable(),
  livemode: z.boolean(),
  sequence: z.number().int().min(1),
  created_at: Instant,
  updated_at: Instant,
  completed_at: Instant.nullable(),
  cancelled_at: Instant.nullable(),
});
export type Transfer = z.infer<typeof Transfer>;

/** `GET /v1/balance`: what each account of each currency holds. */
export const Balance = z.object({
  object: z.literal("balance"),
  livemode: z.boolean(),
  balances: z.array(z.object({
    currency: z.string(),
    account: z.string(),
    debits_minor: z.number().int(),
    credits_minor: z.number().int(),
    amount_minor: z.number().int().describe("Credits less debits"),
  })),
});
