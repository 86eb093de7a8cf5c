/**
 * Applies a schema to a value. An error names the first field at fault. The package uses this
 * module for the tools of agents, so it also runs on the oldest supported Node.js.
 */

import type * as z from "zod";
import { invalidParameter } from "../core/errors.ts";
import { issueMessage } from "./issue_message.ts";
import { joined, refuseUnknownNames } from "./unknown_names.ts";

/** Text of the numbers that are not written as plain integers, by path. */
type Literals = ReadonlyMap<string, string>;
type Members = Record<PropertyKey, unknown>;

const NO_LITERALS: Literals = new Map();

/**
 * Applies a schema. Throws `invalid_parameter` with the first unknown name, or else with the first
 * field at fault.
 */
export function checkValue<T>(schema: z.ZodType<T>, value: Record<string, unknown>): T {
  refuseUnknownNames(schema, value);
  return checkFields(schema, value);
}

/** Applies a schema whose names are checked. Throws `invalid_parameter` with the field at fault. */
export function checkFields<T>(
  schema: z.ZodType<T>,
  value: Record<string, unknown>,
  literals: Literals = NO_LITERALS,
): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const param = paramOf(value, issue.path);
  const sent = issue.path.reduce<unknown>(
    // A request can send an IBAN or a wallet address as text in place of the object.
    (inner, step) => typeof inner === "string" ? inner : (inner as Members | undefined)?.[step],
    value,
  );
  const { currency } = value;
  const fault = { param, sent, literal: literals.get(param), currency };
  throw invalidParameter(param, issueMessage(schema, issue, fault));
}

/** Returns the path of an issue up to the last sent object: `iban` if the IBAN was sent as text. */
export function paramOf(value: unknown, path: readonly PropertyKey[]): string {
  let name = "";
  for (const step of path) {
    if (value !== undefined && (typeof value !== "object" || value === null)) break;
    name = joined(name, step);
    value = (value as Record<PropertyKey, unknown> | undefined)?.[step];
  }
  return name;
}
