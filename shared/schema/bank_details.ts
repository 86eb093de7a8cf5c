/** The response to a delete of bank details (contract §2). */

import * as z from "zod";
import { id } from "./values.ts";

export const DeletedBankDetails = z.object({
  id: z.union([id("pay_"), id("tr_")]).describe("Id of the payment or transfer"),
  object: z.literal("bank_details"),
  deleted: z.literal(true).describe("Always true"),
}).describe("Deleted bank details");
