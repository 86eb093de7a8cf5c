/**
 * Writes the module `client/vocabulary.ts`. The client is a separate package and cannot import
 * `shared/`, so this module has the lists of the API as types.
 */

import { STABLECOINS } from "../../shared/core/currency.ts";
import { DECLINE_ADVICE, DECLINE_CODES, ERROR_CATALOGUE } from "../../shared/core/errors.ts";
import {
  CAPTURE_METHODS,
  DELIVERY_STATUSES,
  DISPUTE_EVENT_TYPES,
  DISPUTE_REASONS,
  DISPUTE_STATUSES,
  ENDPOINT_DELIVERIES,
  ENDPOINT_EVENT_TYPES,
  ENDPOINT_STATUSES,
  EVENT_PATTERNS,
  FAULTS,
  MANDATE_SEQUENCES,
  METHOD_KINDS,
  NETWORKS,
  OUTCOMES,
  PAYEE_CHECKS,
  PAYMENT_EVENT_TYPES,
  PAYMENT_STATUSES,
  PROVIDER_OPERATIONS,
  REFUND_EVENT_TYPES,
  REFUND_REASONS,
  REFUND_STATUSES,
  REQUEST_METHODS,
  SCOPES,
  TRANSFER_EVENT_TYPES,
  TRANSFER_STATUSES,
} from "../../shared/core/vocabulary.ts";
import { LEDGER_ACCOUNTS } from "../../shared/schema/ledger.ts";
import { Capability, FAILURE_CODES } from "../../shared/schema/payment.ts";
import { Speed } from "../../shared/schema/bank_account.ts";
import { Settlement } from "../../shared/schema/values.ts";
import { DeliveryAttempt, DISABLED_REASONS } from "../../shared/schema/webhook.ts";

/** Columns of a line, as in deno.json. */
const LINE_WIDTH = 100;

/** The types of the module: name, docstring and values of each. */
const TYPES: readonly (readonly [name: string, doc: string, values: readonly string[]])[] = [
  ["PaymentStatus", "Status of a payment.", PAYMENT_STATUSES],
  ["MethodKind", "The kind of payment method.", METHOD_KINDS],
  [
    "Capability",
    "The kind of payment method, under its other name: `card_payment` is `card`, and so on.",
    Capability.options,
  ],
  [
    "CaptureMethod",
    "The capture of a payment by card: with the authorization, or later by `payments.capture`.",
    CAPTURE_METHODS,
  ],
  [
    "MandateSequence",
    "The place of a payment among those of its mandate. Nothing follows `final` and `one_off`.",
    MANDATE_SEQUENCES,
  ],
  ["Outcome", "A forced result of a sandbox payment.", OUTCOMES],
  [
    "Settlement",
    "The time when the money moves: at once, or when you advance it. `manual` is for test keys.",
    Settlement.options,
  ],
  ["Network", "The network of a wallet.", NETWORKS],
  ["Stablecoin", "The asset of a wallet. Each has 6 decimals: 1500000 is 1.5 USDC.", STABLECOINS],
  [
    "DeclineCode",
    "The code of a decline. The error has the payment, which is stored as `declined`.",
    DECLINE_CODES,
  ],
  [
    "DeclineAdvice",
    "The next step that helps after a decline. `do_not_retry`: the method will be declined again.",
    DECLINE_ADVICE,
  ],
  [
    "FailureCode",
    "The reason why a payment, refund or transfer failed after it was accepted.",
    FAILURE_CODES,
  ],
  [
    "RefundStatus",
    "Status of a refund. A `pending` one counts against the amount that can be refunded.",
    REFUND_STATUSES,
  ],
  ["Speed", "The speed of a payout by SEPA: a transfer or a refund.", Speed.options],
  ["PayeeCheck", "The bank's comparison of a payee's name with the account.", PAYEE_CHECKS],
  ["RefundReason", "The reason of a refund.", REFUND_REASONS],
  [
    "DisputeStatus",
    "Status of a dispute. `won` and `lost` are final.",
    DISPUTE_STATUSES,
  ],
  ["DisputeReason", "The reason of a dispute.", DISPUTE_REASONS],
  ["TransferStatus", "Status of a transfer.", TRANSFER_STATUSES],
  ["LedgerAccount", "An account of the ledger.", LEDGER_ACCOUNTS],
  ["Scope", "A permission of a key.", SCOPES],
  [
    "EndpointDelivery",
    "The way in which an endpoint gets its events: the service sends them, or you read them.",
    ENDPOINT_DELIVERIES,
  ],
  ["EndpointStatus", "Status of a webhook endpoint.", ENDPOINT_STATUSES],
  [
    "DisabledReason",
    "The reason why an endpoint is disabled. `gone`: it returned 410. `failing`: it failed for 5 days.",
    DISABLED_REASONS,
  ],
  [
    "DeliveryStatus",
    "Status of a delivery. An `available` one is in an inbox and not acknowledged.",
    DELIVERY_STATUSES,
  ],
  [
    "AttemptError",
    "The reason why an attempt got no response.",
    DeliveryAttempt.shape.error.unwrap().options,
  ],
  ["PaymentEventType", "An event type that shows a payment.", PAYMENT_EVENT_TYPES],
  ["RefundEventType", "An event type that shows a refund.", REFUND_EVENT_TYPES],
  ["DisputeEventType", "An event type that shows a dispute.", DISPUTE_EVENT_TYPES],
  ["TransferEventType", "An event type that shows a transfer.", TRANSFER_EVENT_TYPES],
  ["EndpointEventType", "An event type that shows a webhook endpoint.", ENDPOINT_EVENT_TYPES],
  [
    "RequestFault",
    "A declared fault of requests. After `server_error_after` and `connection_lost_after` the request is done.",
    FAULTS.request,
  ],
  ["DeliveryFault", "A declared fault of webhook deliveries.", FAULTS.delivery],
  ["ProviderFault", "A declared fault of the sandbox's provider.", FAULTS.provider],
  ["ProviderOperation", "An operation of the sandbox's provider.", PROVIDER_OPERATIONS],
  ["RequestMethod", "The method of a request.", REQUEST_METHODS],
  ["EventPattern", "A pattern that matches several event types.", EVENT_PATTERNS],
];

/** Returns the module as `deno fmt` formats it. */
export function renderClientVocabulary(): string {
  const codes = Object.entries(ERROR_CATALOGUE).map(([code, { status, type }]) =>
    `  ${code}: { status: ${status}, type: "${type}" },\n`
  );
  return `/**
 * Statuses, event types, error codes and the other lists of the API (contract §2 to §6).
 * Written by "deno task generate" from shared/.
 */

${TYPES.map(renderType).join("\n")}
/** The HTTP status and type of every error code of the API. */
export const ERROR_CODES = {
${codes.join("")}} as const;

/** An error code. A newer service may send a code that is not listed here. */
export type ErrorCode = keyof typeof ERROR_CODES;
/** The type of an error. */
export type ErrorType = typeof ERROR_CODES[ErrorCode]["type"];
`;
}

function renderType([name, doc, values]: typeof TYPES[number]): string {
  const texts = values.map((value) => `"${value}"`);
  const line = `export type ${name} = ${texts.join(" | ")};`;
  const type = line.length <= LINE_WIDTH
    ? line
    : `export type ${name} =\n${texts.map((text) => `  | ${text}`).join("\n")};`;
  return `/** ${doc} */\n${type}\n`;
}
