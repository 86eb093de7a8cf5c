/**
 * Declared faults on the wire (contract §7): a test declares that the next matching request,
 * delivery or call to the simulated provider fails in a certain way.
 */

import * as z from "zod";
import {
  FAULT_CONDITIONS,
  FAULT_KINDS,
  FAULT_NAMES,
  FAULTS,
  PROVIDER_OPERATIONS,
  REQUEST_METHODS,
} from "../core/vocabulary.ts";
import { EventType } from "./event_type.ts";
import { MAX_FAULT_DELAY_MS, MAX_IDEMPOTENCY_KEY } from "./limits.ts";
import { page } from "./list.ts";
import { MethodKind } from "./payment_body.ts";
import { mustBe } from "./requirement.ts";
import { rule, type RuleContext } from "./rule.ts";
import { id, Instant } from "./values.ts";

/** Most times that a fault can be declared to happen. The service chose the number. */
const MAX_FAULT_TIMES = 1_000;
/** Characters of a path in a condition. The service chose the number. */
const MAX_FAULT_PATH = 200;

const FaultKind = z.enum(FAULT_KINDS).describe(
  "The kind of target that fails: an API request, a webhook delivery, or a call to the simulated " +
    "payment provider",
);
type FaultKind = z.infer<typeof FaultKind>;

const FaultName = mustBe(
  z.enum(FAULT_NAMES).describe(
    "The way in which the target fails. Each kind of target has faults of its own",
  ),
  'a fault such as "rate_limited" of a request, "duplicate" of a delivery or "timeout" of the ' +
    "provider. GET /v1/openapi.json lists them",
);
type FaultName = z.infer<typeof FaultName>;

const ID_WORDS = 'the id of a webhook endpoint, which begins with "whe_"';

/** The conditions of a fault. A target that has all of these values matches. */
const FaultConditions = mustBe(
  z.object({
    method: z.enum(REQUEST_METHODS).optional().describe("Requests with this method"),
    path: mustBe(
      z.string().regex(/^\/[^\s?#]*$/).max(MAX_FAULT_PATH).optional().describe(
        "Requests to this path after the name of the function, with an id or with `{id}` in its " +
          "place: `/v1/payments/{id}/refund`",
      ),
      `a path such as "/v1/payments/{id}/refund", of at most ${MAX_FAULT_PATH} characters`,
    ),
    idempotency_key: z.string().min(1).max(MAX_IDEMPOTENCY_KEY).optional()
      .describe("Requests with this `Idempotency-Key`"),
    endpoint_id: mustBe(
      id("whe_").optional().describe("Deliveries to this webhook endpoint"),
      ID_WORDS,
    ),
    event_type: EventType.optional().describe("Deliveries of events of this type"),
    method_kind: MethodKind.optional().describe("Calls about this kind of payment method"),
    operation: z.enum(PROVIDER_OPERATIONS).optional().describe("Calls of this operation"),
  }),
  'an object with the conditions of this kind of fault, such as {"path": "/v1/payments"}',
);
type FaultConditions = z.infer<typeof FaultConditions>;

/** Refuses a fault, conditions or a delay that do not belong to the kind of target. */
function checkFault(
  { on, fault, where, delay_ms }: {
    on: FaultKind;
    fault: FaultName;
    where?: FaultConditions | undefined;
    delay_ms?: number | undefined;
  },
  context: RuleContext,
): void {
  const refuse = (path: string[], message: string) =>
    context.addIssue({ code: "custom", path, message });
  const faults: readonly string[] | undefined = FAULTS[on];
  // zod also calls this function if one of the fields is refused.
  if (faults === undefined || fault === undefined) return;
  if (!faults.includes(fault)) {
    refuse(["fault"], `of a ${on} must be ${listed(faults)}`);
  }
  const conditions: readonly string[] = FAULT_CONDITIONS[on];
  for (const name of Object.keys(where ?? {})) {
    if (conditions.includes(name)) continue;
    refuse(
      ["where", name],
      `is no condition of a fault on a ${on}: send ${listed(conditions)}`,
    );
  }
  if (fault === "delay" && delay_ms === undefined) {
    refuse(
      ["delay_ms"],
      `is required for a delay: send a whole number from 1 to ${MAX_FAULT_DELAY_MS}, in milliseconds`,
    );
  }
  if (fault !== "delay" && delay_ms !== undefined) {
    refuse(["delay_ms"], 'is for the fault "delay" only: leave it out');
  }
}

function listed(values: readonly string[]): string {
  const quoted = values.map((value) => JSON.stringify(value));
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}

const Times = z.number().int().min(1).max(MAX_FAULT_TIMES);
const DelayMs = z.number().int().min(1).max(MAX_FAULT_DELAY_MS);

export const CreateFaultBody = z.object({
  on: FaultKind,
  fault: FaultName,
  times: Times.default(1).describe("How often it happens"),
  where: FaultConditions.optional().describe(
    "Conditions that a target has to match. Without conditions every target of the kind matches",
  ),
  delay_ms: DelayMs.optional().describe("The duration of a `delay` in milliseconds"),
}).check(rule(checkFault)).describe(
  "A fault to declare: the next matching targets fail in this way",
);
export type CreateFaultBody = z.infer<typeof CreateFaultBody>;

export const Fault = z.object({
  id: id("flt_"),
  object: z.literal("fault"),
  on: FaultKind,
  fault: FaultName,
  times: Times.describe("How often it was declared to happen"),
  left: z.number().int().min(0).max(MAX_FAULT_TIMES).describe("How often it will still happen"),
  where: FaultConditions.describe("Conditions that a target has to match"),
  delay_ms: DelayMs.nullable().describe("The duration of a `delay` in milliseconds"),
  created_at: Instant,
}).describe("A fault that was declared: the next matching targets fail");
export type Fault = z.infer<typeof Fault>;

export const DeletedFault = z.object({
  id: id("flt_"),
  object: z.literal("fault"),
  deleted: z.literal(true).describe("Always true"),
}).describe("A fault that was deleted: it does not happen any more");

export const ListFaultsQuery = z.object({
  ...page("flt_"),
});
