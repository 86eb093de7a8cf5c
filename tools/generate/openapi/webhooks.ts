/** Builds `webhooks`: the requests to registered endpoints, one entry for each event type. */

import {
  DISPUTE_EVENT_TYPES,
  ENDPOINT_EVENT_TYPES,
  INSTRUMENT_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  REFUND_EVENT_TYPES,
  TRANSFER_EVENT_TYPES,
} from "../../../shared/core/vocabulary.ts";
import {
  DisputeEvent,
  InstrumentEvent,
  PaymentEvent,
  RefundEvent,
  TransferEvent,
  WebhookEndpointEvent,
} from "../../../shared/schema/event.ts";
import { eventExampleName } from "./examples.ts";
import { type Json, schemaRef } from "./schemas.ts";

export const WEBHOOKS_TAG = "Webhooks";

const FAMILIES = [
  { types: PAYMENT_EVENT_TYPES, schema: PaymentEvent, noun: "payment" },
  { types: REFUND_EVENT_TYPES, schema: RefundEvent, noun: "refund" },
  { types: DISPUTE_EVENT_TYPES, schema: DisputeEvent, noun: "dispute" },
  { types: TRANSFER_EVENT_TYPES, schema: TransferEvent, noun: "transfer" },
  { types: INSTRUMENT_EVENT_TYPES, schema: InstrumentEvent, noun: "instrument" },
  { types: ENDPOINT_EVENT_TYPES, schema: WebhookEndpointEvent, noun: "webhook endpoint" },
] as const;

const HEADERS: Readonly<Record<string, { description: string; pattern: string }>> = {
  "Payment-Signature": {
    description: 'The time of the attempt and the signatures, as "Signed webhooks" describes',
    pattern: "^t=\\d+(,v1=[0-9a-f]{64})+$",
  },
  "Webhook-Id": {
    description: "Id of the event. It is the same in every attempt",
    pattern: "^evt_[0-9a-hjkmnp-tv-z]{26}$",
  },
  "Webhook-Timestamp": {
    description: "The same time as `t`, for libraries of Standard Webhooks 1.0.0",
    pattern: "^\\d+$",
  },
  "Webhook-Signature": {
    description: "The signatures of Standard Webhooks 1.0.0: `v1,<base64>`, space-separated",
    pattern: "^v1,\\S+( v1,\\S+)*$",
  },
  "Webhook-Attempt": {
    description: "Number of the attempt. The first is 1. The signature does not cover it",
    pattern: "^\\d+$",
  },
};

/**
 * The headers of every webhook. Each webhook repeats them, because oapi-codegen leaves out
 * `components/parameters` that only webhooks refer to, and then its Go code does not compile (ADR
 * 0012).
 */
const PARAMETERS: readonly Json[] = Object.entries(HEADERS).map((
  [name, { description, pattern }],
) => ({ name, in: "header", required: true, description, schema: { type: "string", pattern } }));

/** Returns all webhooks, by event type, with those examples that the document has. */
export function webhooks(recorded: Readonly<Record<string, unknown>>): Record<string, Json> {
  return Object.fromEntries(
    FAMILIES.flatMap(({ types, schema, noun }) =>
      types.map((type) => {
        const example = eventExampleName(type);
        const examples = example in recorded &&
          { [type]: { $ref: `#/components/examples/${example}` } };
        return [type, { post: describe(type, schemaRef(schema), noun, examples) }];
      })
    ),
  );
}

function describe(type: string, schema: Json, noun: string, examples: Json | false): Json {
  return {
    operationId: `on${type.replace(/(?:^|[._])(\w)/g, (_, letter) => letter.toUpperCase())}`,
    tags: [WEBHOOKS_TAG],
    summary: type,
    description: `Contains the ${noun} as it was at the event.`,
    security: [],
    parameters: PARAMETERS,
    requestBody: {
      required: true,
      content: {
        "application/json": { schema, ...(examples && { examples }) },
      },
    },
    responses: {
      "2XX": {
        description: "You have received the event. The service retries after any other response",
      },
      "410": { description: "You want no more events: the service disables the endpoint" },
    },
  };
}
