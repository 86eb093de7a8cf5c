/** The erasure of a customer's personal data (contract §2). */

import * as z from "zod";
import { CustomerId, Email } from "./values.ts";

const Count = z.number().int().min(0);

export const ErasedCustomer = z.object({
  object: z.literal("customer"),
  id: CustomerId.nullable().describe("Your own id of the customer; null after an e-mail address"),
  deleted: z.literal(true).describe("Always true"),
  payments: Count.describe("Payments that this request has erased"),
  instruments: Count.describe("Instruments that this request has ended or erased"),
  has_more: z.boolean().describe("True: the service erases the rest within a day"),
}).describe("The erasure of a customer");

export const EraseByEmailQuery = z.object({
  email: Email.describe("The exact e-mail address of payments without `customer.id`")
    .meta({ example: "ada@example.com" }),
});
