/**
 * An operation of the interface: where it is served, what it takes, what it needs and what it does.
 * The tables of operations are what the two functions route by.
 */

import type * as z from "zod";
import type { ErrorCode } from "../core/errors.ts";
import type { Reply, ServiceRequest } from "../domain/changes/service_request.ts";
import type { Scope } from "../schema/api_key.ts";
import type { Answer } from "../store/commit_rows.ts";
import type { Dependencies } from "./dependencies.ts";

/** Names of the two functions, as they stand in paths. */
export const PAYMENTS_FUNCTION = "api-v1-payments";
export const SANDBOX_FUNCTION = "api-v1-sandbox";

/** What an operation is given. */
export interface Call<Body, Query> {
  deps: Dependencies;
  request: ServiceRequest;
  /** The text of the caller's key, for what is derived from it. */
  key_text: string;
  /** Path parameters. */
  id: string;
  body: Body;
  query: Query;
}

/** Groups of operations, in the order of the reference. */
export type OperationGroup =
  | "Payments"
  | "Refunds"
  | "Transfers"
  | "Ledger"
  | "Webhook endpoints"
  | "Webhook deliveries"
  | "Events"
  | "API keys"
  | "Sandbox";

/** One operation. */
export interface Operation {
  /** Its name in generated clients, unique: `createPayment`. */
  id: string;
  group: OperationGroup;
  /** What it does, in a few words. */
  summary: string;
  /** What else there is to know, in Markdown. */
  description?: string;
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Paths after the function's name. */
  paths: readonly [string, ...string[]];
  /**
   * The operation's own path, the function's name included, for the fingerprint of a request: an
   * alias is the same operation. `home` and the first of `paths` unless given.
   */
  own_path?: string;
  /** Name of the function that the operation belongs to. */
  home: string;
  scope: Scope;
  /** Refuses live keys before anything is read. */
  test_only: boolean;
  body: z.ZodType;
  query: z.ZodType;
  /** What a success answers, and its status. */
  answer: z.ZodType;
  status: 200 | 201;
  /** Codes that it can answer beyond those that every operation of its kind can. */
  errors?: readonly ErrorCode[];
  run(call: Call<unknown, unknown>): Promise<Reply | Answer>;
}

/** Defines an operation with its types tied together. */
export function operation<Body, Query>(
  definition: Omit<Operation, "body" | "query" | "run"> & {
    body: z.ZodType<Body>;
    query: z.ZodType<Query>;
    run(call: Call<Body, Query>): Promise<Reply | Answer>;
  },
): Operation {
  return definition as unknown as Operation;
}
