/**
 * The type of a route: its paths, scope, schemas, error codes and implementation. The two
 * functions route by tables of operations, and the OpenAPI document is made from them (ADR 0012).
 */

import type * as z from "zod";
import type { ErrorCode } from "../core/errors.ts";
import type { Reply, ServiceRequest } from "../domain/changes/service_request.ts";
import type { Scope } from "../schema/api_key.ts";
import { EmptyBody, EmptyQuery } from "../schema/empty.ts";
import type { StoredResponse } from "../store/commit_rows.ts";
import type { Dependencies } from "./dependencies.ts";

/** Names of the two functions in paths. */
export const PAYMENTS_FUNCTION = "api-v1-payments";
export const SANDBOX_FUNCTION = "api-v1-sandbox";

export interface RouteInput<Body, Query, Deps = Dependencies> {
  deps: Deps;
  request: ServiceRequest;
  /** The text of the caller's key, from which new keys are derived (ADR 0015). */
  key_text: string;
  /** Returns the signal that aborts when the client goes away. */
  signal: () => AbortSignal;
  /** The id in the path; `unknown` if the path has no well-formed id. */
  id: string;
  /** The idempotency key in the path; a text that is no key if the path has none. */
  named_key: string;
  /** The merchant's own id of a customer in the path; empty if the path has none that can be. */
  customer_id: string;
  body: Body;
  query: Query;
}

/** Groups of routes, in the order of the reference. */
export type RouteGroup =
  | "Payments"
  | "Refunds"
  | "Disputes"
  | "Instruments"
  | "Checkouts"
  | "Customers"
  | "Transfers"
  | "Ledger"
  | "Webhook endpoints"
  | "Webhook deliveries"
  | "Events"
  | "API keys"
  | "Requests"
  | "Sandbox";

export interface Route {
  /** Unique name in generated clients: `createPayment`. */
  id: string;
  group: RouteGroup;
  /** A few words for the reference. */
  summary: string;
  /** Further sentences for the reference, in Markdown. */
  description?: string;
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Paths after the function's name. */
  paths: readonly [string, ...string[]];
  /**
   * Path with the name of the function, for the fingerprint of a request. An alias has the path of
   * its operation here. By default `home` and the first of `paths`.
   */
  own_path?: string;
  /** Name of the function that the operation belongs to. */
  home: string;
  /** The scope that the operation needs. Null: any key may use it. */
  scope: Scope | null;
  /** Scopes in place of `scope` for query parameters that make the read a write. */
  parameter_scopes?: Readonly<Record<string, Scope>>;
  /** True: live keys are refused before the body is read. */
  test_only: boolean;
  /** True: no declared fault concerns the operation. */
  without_faults?: boolean;
  body: z.ZodType;
  query: z.ZodType;
  /**
   * Name of the schema of a success, or of its items with `List` behind it. Only the name, because
   * no function needs the schema, and a start would load it. `status` is its HTTP status.
   */
  response: string;
  status: 200 | 201 | 202;
  /** Media type of a success; absent: JSON. */
  media_type?: string;
  /** Error codes of this operation, in addition to those of every operation of its kind. */
  errors?: readonly ErrorCode[];
  /** Throws `ApiError` for a body that must not be hashed, stored or logged. */
  refuse?(body: unknown, livemode: boolean): void;
  /** True: the operation empties a sandbox, so it is allowed at the limit of storage. */
  frees_storage?: true;
  /**
   * True: the request is not in the log of requests, because it reads that log, or because clients
   * repeat it all the time and would soon fill the log.
   */
  unlogged?: true;
  run(call: RouteInput<unknown, unknown>): Promise<Reply | StoredResponse>;
}

/** Returns the scope that a request to a route needs; null: none. */
export function scopeOf(
  { scope, parameter_scopes = {} }: Route,
  query: URLSearchParams,
): Scope | null {
  const [name] = Object.keys(parameter_scopes).filter((name) => query.has(name));
  return name === undefined ? scope : parameter_scopes[name]!;
}

/** The members that most routes share. */
const USUAL = {
  home: PAYMENTS_FUNCTION,
  test_only: false,
  body: EmptyBody,
  query: EmptyQuery,
  status: 200,
} as const;

/** A route whose functions take the types of `body` and `query`, without what is usual. */
export type RouteDefinition<Body, Query, Deps = Dependencies> =
  & Omit<Route, keyof typeof USUAL | "refuse" | "run">
  & Partial<Pick<Route, "home" | "test_only" | "status">>
  & {
    body?: z.ZodType<Body>;
    query?: z.ZodType<Query>;
    refuse?(body: NoInfer<Body>, livemode: boolean): void;
    run(call: RouteInput<Body, Query, Deps>): Promise<Reply | StoredResponse>;
  };

/** Defines a route. Checks the types of its functions. */
export function route<Body, Query, Deps = Dependencies>(
  definition: RouteDefinition<Body, Query, Deps>,
): Route {
  return { ...USUAL, ...definition } as unknown as Route;
}
