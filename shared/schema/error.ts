/**
 * The error body on the wire (contract §6): one form for every error.
 */

import * as z from "zod";
import { ERROR_CATALOGUE, type ErrorCode } from "../core/errors.ts";
import { Payment } from "./payment.ts";
import { id } from "./values.ts";

/** Every code, in the order of the catalogue. */
export const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as [ErrorCode, ...ErrorCode[]];
type ErrorType = typeof ERROR_CATALOGUE[ErrorCode]["type"];
/** Every type: a coarse group of codes. */
const ERROR_TYPES = [
  ...new Set(ERROR_CODES.map((code) => ERROR_CATALOGUE[code].type)),
] as [ErrorType, ...ErrorType[]];

/** Every error: what went wrong, where, and in which request. */
export const ErrorBody = z.object({
  error: z.object({
    type: z.enum(ERROR_TYPES).describe("Coarse group of the code"),
    code: z.enum(ERROR_CODES).describe("What went wrong, for programs"),
    message: z.string().describe("What went wrong, for people. It may change"),
    param: z.string().optional()
      .describe("The field, parameter or header at fault, as a path: `card.number`"),
    request_id: id("req_").describe("The same as in the header `Request-Id`"),
    doc_url: z.string().meta({ format: "uri-reference" })
      .describe("Where the code is explained: a page of the project's repository"),
    payment: Payment.optional().describe("With a decline: the payment, which is stored"),
    required_scope: z.string().nullable().optional()
      .describe("With `permission_denied`: what the key lacks"),
    current_status: z.string().optional()
      .describe("With `invalid_state`: the status of the resource"),
    allowed: z.array(z.string()).optional()
      .describe("With `invalid_state`: the statuses it can get"),
    amount_refundable: z.number().int().min(0).optional()
      .describe("With a refund of too much: what is left, in minor units"),
  }),
}).describe("Every error has this form");
export type ErrorBody = z.infer<typeof ErrorBody>;
