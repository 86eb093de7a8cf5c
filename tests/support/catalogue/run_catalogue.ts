/** Sends the requests of the catalogue, each with the ids of earlier responses. */

import assert from "node:assert/strict";
import { type Address, ADDRESSES } from "../../../tools/generate/openapi/operations.ts";
import type { CallOptions, TestResponse } from "../service/service.ts";
import type { CatalogueRequest } from "./requests.ts";

/** Values that requests take, by name: ids of responses, and those with which a run begins. */
export type Saved = Map<string, string>;

/** A request with its values. */
interface FilledRequest {
  method: string;
  path: string;
  /** The path of the operation, if `path` is that of an alias. */
  own_path: string;
  /** The other paths of the operation. */
  aliases: readonly string[];
  /** The id, the idempotency key or the customer in the path. */
  id: string | null;
  body: Record<string, unknown> | undefined;
  /** The body and the idempotency key, for `service.call`. */
  options: CallOptions;
}

/** Makes the values with which a run begins. Nothing listens at the URL. */
export function firstValues(url = "http://127.0.0.1:47999/hook"): Saved {
  return new Map([["url", url], ["since", new Date(Date.now() - 3_600_000).toISOString()]]);
}

/** The method and the main path of an operation, which its aliases share. */
function mainOf({ operation, path, alias_of }: Address): string {
  return `${operation.method} ${alias_of ?? path}`;
}

/** Fills a request. A value that no response had is an unknown id of a delivery. */
export function fill(
  { operation, body, query, of, key }: CatalogueRequest,
  saved: ReadonlyMap<string, string>,
): FilledRequest {
  const address = ADDRESSES.find(({ id }) => id === operation)!;
  const value = (name: string) => saved.get(name) ?? `whd_${"0".repeat(26)}`;
  const has_key = of === undefined && /\{(key|customer)\}/.test(address.path);
  const id = of !== undefined ? value(of) : has_key ? key! : null;
  const pathOf = (template: string) => template.replace(/\{(id|key|customer)\}/, () => id ?? "");
  const sent = body && Object.fromEntries(
    Object.entries(body).map(([name, it]) => [
      name,
      typeof it === "string" && it.startsWith("$") ? value(it.slice(1)) : it,
    ]),
  );
  return {
    method: address.operation.method,
    path: pathOf(address.path) + (query ? `?${query}` : ""),
    own_path: pathOf(address.alias_of ?? address.path),
    aliases: ADDRESSES.filter((other) => other !== address && mainOf(other) === mainOf(address))
      .map(({ path }) => pathOf(path)),
    id,
    body: sent,
    options: sent ? { body: sent, ...(key !== undefined && { idempotency_key: key }) } : {},
  };
}

/** Checks that a request has succeeded or is declined, and saves the id of its response. */
export function keep(request: CatalogueRequest, response: TestResponse, saved: Saved): void {
  const is_expected = response.status < 300 || response.status === 402;
  assert.ok(is_expected, `${request.operation} ${request.name}: ${response.text}`);
  saveId(request, response.body, saved);
}

/** Saves the id that later requests take: of the response, or of the first item of a list. */
// deno-lint-ignore no-explicit-any
export function saveId({ save }: CatalogueRequest, body: any, saved: Saved): void {
  if (save) saved.set(save, body.id ?? body.data[0].id);
}
