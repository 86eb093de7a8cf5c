/** The error body on the wire (contract §6): one form for every error. */

import * as z from "zod";
import { ERROR_CATALOGUE, type ErrorCode } from "../core/errors.ts";
import { DeclineAdvice, Payment } from "./payment.ts";
import { id } from "./values.ts";

export const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as [ErrorCode, ...ErrorCode[]];
type ErrorType = typeof ERROR_CATALOGUE[ErrorCode]["type"];
/** Every type: a coarse group of codes. */
const ERROR_TYPES = [
  ...new Set(ERROR_CODES.map((code) => ERROR_CATALOGUE[code].type)),
] as [ErrorType, ...ErrorType[]];

export const ErrorBody = z.object({
  error: z.object({
    type: z.enum(ERROR_TYPES).describe("Coarse group of the code"),
    code: z.enum(ERROR_CODES).describe("The kind of error, for programs"),
    message: z.string().describe("The error in words, for people. The text may change"),
    param: z.string().optional()
      .describe("The field, parameter or header at fault, as a path: `card.number`"),
    request_id: id("req_").describe("The value of the header `Request-Id`"),
    doc_url: z.url().optional()
      .describe("The page that explains the code, if the operator publishes the documentation"),
    advice: DeclineAdvice.optional(),
    payment: Payment.optional().describe("With a decline: the payment, which is stored"),
    required_scope: z.string().nullable().optional()
      .describe("With `permission_denied`: the scope that the key lacks"),
    current_status: z.string().optional()
      .describe("With `invalid_state`: the status of the resource"),
    allowed: z.array(z.string()).optional()
      .describe("With `invalid_state`: the statuses that the resource can get"),
    amount_refundable: z.number().int().min(0).optional()
      .describe("If a refund is too large: the amount that can be refunded, in minor units"),
    amount_capturable: z.number().int().min(1).optional()
      .describe("If a capture is too large: the authorized amount, in minor units"),
  }).describe("The error"),
}).describe("An error");
export type ErrorBody = z.infer<typeof ErrorBody>;
