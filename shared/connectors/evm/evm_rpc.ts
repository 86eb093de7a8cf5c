/**
 * Requests to a node of a chain or to a signer, JSON-RPC 2.0 over HTTP: one request or a batch, a
 * size limit for responses, and strict parsing. This module never repeats a request. Messages
 * contain no URL, because it can contain a key. Sources: jsonrpc.org, EIP-1474.
 */

import * as z from "zod";
import { boundedBytes, jsonIn } from "../../core/response_body.ts";
import { fetchInSpan } from "../../core/tracing.ts";
import { type EvmSettings, SECRET_MARK } from "./evm_settings.ts";

/** Maximum size of a response. 1 000 logs take about 700 kB. */
const RESPONSE_BYTES_MAX = 4 * 1024 * 1024;
/** Requests in one batch. Some nodes refuse more than 50. */
const BATCH_MAX = 50;
/** Codes and words of the errors with which nodes refuse a range of blocks that is too large. */
const LIMIT_CODES: readonly number[] = [-32005, -32614, 35];
const LIMIT_WORDS =
  /range|too (many|large|big)|limit|exceed|more than|max(imum)? |time(d)? ?out|response size|10k/i;
/** Words of those errors that name the size of the response. */
const SIZE_WORDS = /\b(results|logs|response size)\b/i;
/** A limit on the rate of requests is not one on the range. */
const RATE_WORDS = /\brate\b|quota|per (second|minute|day)|daily|monthly|too many requests/i;

export const Quantity = z.string().regex(/^0x[0-9a-fA-F]{1,13}$/).transform(Number);
/** A hash in a response, parsed to lower case. */
export const Hash = z.string().regex(/^0x[0-9a-fA-F]{64}$/).toLowerCase();

export interface RpcRequest<T> {
  method: string;
  params: readonly unknown[];
  result: z.ZodType<T>;
}

/** The kinds of failures of a request. After all but `refused` and `limit` it may have worked. */
type RpcFailure =
  | "timeout"
  | "connection"
  /** An HTTP status other than 200. */
  | "status"
  /** The response is not one of JSON-RPC, or its result has another shape. */
  | "garbage"
  /** The node asks for a smaller request. */
  | "limit"
  /** The node responds with an error of JSON-RPC. */
  | "refused";

/** A request without a usable response. */
export class RpcError extends Error {
  override readonly name = "RpcError";

  /**
   * @param code of the error of JSON-RPC, or the HTTP status; null without one
   * @param is_too_long true if the node has a response, and it is too long
   */
  constructor(
    readonly kind: RpcFailure,
    message: string,
    readonly code: number | null = null,
    readonly is_too_long = false,
  ) {
    super(message);
  }
}

const Failure = z.object({ code: z.number().int(), message: z.string().catch("") });
const RpcResponse = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.number().int().nullable().catch(null),
  result: z.unknown().optional(),
  error: Failure.nullish(),
});
type RpcResponse = z.infer<typeof RpcResponse>;

/**
 * Returns the URLs of the nodes with the secret of the account in place of the mark. For two URLs
 * the secret can be two keys, separated by a comma. Throws if a URL needs a secret that is not set.
 */
export function rpcUrls({ rpc_urls }: EvmSettings, secret: string | null): string[] {
  const secrets = secret?.split(",") ?? [];
  return rpc_urls.map((url, at) => {
    if (!url.includes(SECRET_MARK)) return url;
    const own = secrets[at] ?? secrets[0];
    if (!own) throw new Error("The variable that holds the key of rpc_urls is not set");
    return url.replaceAll(SECRET_MARK, encodeURIComponent(own));
  });
}

/** Sends one request. Throws `RpcError` without a usable response. */
export async function callRpc<T>(
  url: string,
  request: RpcRequest<T>,
  signal: AbortSignal,
): Promise<T> {
  const response = RpcResponse.safeParse(await post(url, bodyOf(request, 0), signal));
  if (!response.success || response.data.id !== 0 && !response.data.error) {
    throw garbage(request.method);
  }
  return resultOf(request, response.data);
}

/**
 * Sends several requests of one kind in batches. The results have the order of the requests. Throws
 * `RpcError` if one of them has no usable response.
 */
export async function callRpcBatch<T>(
  url: string,
  requests: readonly RpcRequest<T>[],
  signal: AbortSignal,
): Promise<T[]> {
  const results: T[] = [];
  for (let at = 0; at < requests.length; at += BATCH_MAX) {
    results.push(...await callBatch(url, requests.slice(at, at + BATCH_MAX), signal));
  }
  return results;
}

async function callBatch<T>(
  url: string,
  requests: readonly RpcRequest<T>[],
  signal: AbortSignal,
): Promise<T[]> {
  const [only, ...others] = requests;
  if (only === undefined) return [];
  if (others.length === 0) return [await callRpc(url, only, signal)];
  const body = await post(url, requests.map(bodyOf), signal);
  const list = z.array(RpcResponse).safeParse(body);
  if (!list.success) {
    const failure = RpcResponse.safeParse(body);
    throw failure.success && failure.data.error
      ? refusal(only.method, failure.data.error)
      : garbage(only.method);
  }
  const by_id = new Map(list.data.map((response) => [response.id, response]));
  return requests.map((request, id) => {
    const response = by_id.get(id);
    if (response === undefined) throw garbage(request.method);
    return resultOf(request, response);
  });
}

/** Returns the result of the nodes. Throws if they disagree about it. */
export function agreed<T>(results: readonly T[], about: string, textOf: (result: T) => string): T {
  const [first, ...others] = results;
  const text = textOf(first!);
  if (others.every((other) => textOf(other) === text)) return first!;
  throw new Error(`The nodes in rpc_urls disagree about ${about}`);
}

export function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function bodyOf({ method, params }: RpcRequest<unknown>, id: number) {
  return { jsonrpc: "2.0", id, method, params };
}

function resultOf<T>(request: RpcRequest<T>, { result, error }: RpcResponse): T {
  if (error) throw refusal(request.method, error);
  const parsed = request.result.safeParse(result);
  if (!parsed.success) throw garbage(request.method);
  return parsed.data;
}

function refusal(method: string, { code, message }: z.infer<typeof Failure>): RpcError {
  const is_limit = !RATE_WORDS.test(message) &&
    (LIMIT_CODES.includes(code) || LIMIT_WORDS.test(message));
  const text = `${method}: the node responds with the error ${code}: ${withoutUrls(message)}`;
  const is_too_long = is_limit && SIZE_WORDS.test(message);
  return new RpcError(is_limit ? "limit" : "refused", text, code, is_too_long);
}

/** A node can repeat its own URL, with the key, in a message. */
function withoutUrls(message: string): string {
  return message.replace(/\b\w+:\/\/\S+/g, "…").slice(0, 300);
}

function garbage(method: string): RpcError {
  return new RpcError("garbage", `${method}: the node sent no valid response`);
}

async function post(url: string, body: unknown, signal: AbortSignal): Promise<unknown> {
  try {
    const response = await fetchInSpan(url, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      // A redirect would send the key to another address.
      redirect: "error",
      signal,
    });
    return await readBody(response);
  } catch (error) {
    if (error instanceof RpcError) throw error;
    throw signal.aborted
      ? new RpcError("timeout", "the node did not respond in time")
      : new RpcError("connection", "no connection to the node");
  }
}

async function readBody(response: Response): Promise<unknown> {
  const bytes = await boundedBytes(response, RESPONSE_BYTES_MAX);
  if (bytes === null) {
    throw new RpcError("limit", "the response of the node is too long", null, true);
  }
  const body = jsonIn(bytes);
  const { status } = response;
  if (status === 413) throw new RpcError("limit", "the node responds with the status 413", status);
  // Some nodes send an error of JSON-RPC with a status such as 400.
  const is_error = RpcResponse.safeParse(body).data?.error;
  if (status !== 200 && (!is_error || status === 429 || status >= 500)) {
    throw new RpcError("status", `the node responds with the status ${status}`, status);
  }
  if (body === null) throw new RpcError("garbage", "the response is not JSON");
  return body;
}
