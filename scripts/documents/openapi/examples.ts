/**
 * The examples of the document: the requests that tests/openapi/examples_test.ts sent to the
 * product, and the answers of the product.
 */

import type { ErrorCode } from "../../../shared/core/errors.ts";
import type { EventType } from "../../../shared/schema/event_type.ts";
import recorded from "./examples.json" with { type: "json" };
import type { Json } from "./schemas.ts";

/** A request of an operation and its answer. */
export interface Exchange {
  operation: string;
  /** Unique for the operation. */
  name: string;
  summary: string;
  /** The path of the request, with its ids and its query. */
  path: string;
  /** The id or the idempotency key in the path; null without one. */
  id: string | null;
  /** The body; null when there is none. */
  request: Json | null;
  status: number;
  answer: Json;
}

/** The content of examples.json. */
export interface Recorded {
  exchanges: Exchange[];
  /** The body of each error. */
  errors: Record<ErrorCode, Json>;
  /** The payload of one event of each type. */
  events: Record<EventType, Json>;
}

/** Most answers of an operation in the document, which has a limit of bytes. */
const ANSWERS_MAX = 2;
/** Operations with one answer: their further answers look like those of another operation. */
const WITH_ONE_ANSWER: readonly string[] = [
  "createSandboxPayment",
  "authenticatePayment",
  "advancePayment",
  "advanceRefund",
];

const { exchanges, errors, events } = recorded as unknown as Recorded;

/** Examples of the requests and of the successful answers of an operation, by name. */
export function examplesOf(operation: string) {
  const own = exchanges.filter((exchange) => exchange.operation === operation);
  const named = (value: (exchange: Exchange) => Json | null, list: Exchange[]) =>
    Object.fromEntries(
      list.map((exchange) => [
        exchange.name,
        { summary: exchange.summary, value: value(exchange) },
      ]),
    );
  return {
    requests: named(({ request }) => request, own.filter(({ request }) => request !== null)),
    answers: named(
      ({ answer }) => answer,
      own.filter(({ status }) => status < 300).slice(
        0,
        WITH_ONE_ANSWER.includes(operation) ? 1 : ANSWERS_MAX,
      ),
    ),
  };
}

/** The first example of an operation, or undefined if it has none. */
export function firstExample(operation: string): Exchange | undefined {
  return exchanges.find((exchange) => exchange.operation === operation);
}

/** `components.examples`: each event, and each error that an operation can answer. */
export function componentExamples(): Record<string, Json> {
  // No operation answers this code: it means that the path has no operation for the method.
  const { method_not_allowed: _, ...shown } = errors;
  const all = [
    ...Object.entries(shown).map(([code, value]) => [errorExampleName(code), { value }] as const),
    ...Object.entries(events).map(([type, value]) => [eventExampleName(type), { value }] as const),
  ];
  return Object.fromEntries(all);
}

/** Name of the example of an error. */
export function errorExampleName(code: string): string {
  return `error_${code}`;
}

/** Name of the example of an event. */
export function eventExampleName(type: string): string {
  return `event_${type.replace(".", "_")}`;
}
