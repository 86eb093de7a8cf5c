/**
 * Sends a delivery of an inbox to a receiver, as the service would send it to a URL: the same
 * method, headers and bytes. `fetch` would add headers of its own.
 */

import { Buffer } from "node:buffer";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { InboxDelivery } from "../client/mod.ts";

/** The result of one request. */
export interface ForwardResult {
  /** HTTP status. Null if there was no response. */
  status: number | null;
  /** Null if there was a response. `unreachable`: there was no connection, so nothing was sent. */
  error: "unreachable" | "timeout" | "connection_failed" | null;
  /** Time up to the response or the error. */
  duration_ms: number;
  /** The beginning of the response's body, or the message of the error. */
  text: string;
}

/** Time for a response. The service gives receivers the same (contract §4). */
const TIMEOUT_MS = 15_000;
/** Bytes of the response that are shown. */
const SHOWN_BYTES = 1024;
/** Error codes of a connection that was never open. */
const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EADDRNOTAVAIL",
]);

/** Sends a delivery. Redirects are not followed. Does not throw. */
export function forward(
  { headers, body }: Pick<InboxDelivery, "headers" | "body">,
  url: URL,
): Promise<ForwardResult> {
  const bytes = new TextEncoder().encode(body);
  const started = performance.now();
  return new Promise((resolve) => {
    const end = (result: Omit<ForwardResult, "duration_ms">) => {
      clearTimeout(timer);
      resolve({ ...result, duration_ms: Math.round(performance.now() - started) });
    };
    const fail = (error: NodeJS.ErrnoException) => {
      const is_unreachable = UNREACHABLE.has(error.code ?? "");
      end({
        status: null,
        error: is_unreachable ? "unreachable" : "connection_failed",
        text: error.message || error.code || "no connection",
      });
    };
    let status: number | null = null;
    const parts: Uint8Array[] = [];
    // The status has arrived, so the response counts even if its body breaks off.
    const finish = () => {
      const text = Buffer.concat(parts).subarray(0, SHOWN_BYTES).toString();
      end({ status, error: null, text });
    };
    const send = url.protocol === "https:" ? requestHttps : requestHttp;
    const outgoing = send(url, {
      method: "POST",
      headers: { ...headers, "Content-Length": String(bytes.length) },
      // A kept connection could be closed by the receiver at the same time as it is used.
      agent: false,
    }, (response) => {
      status = response.statusCode ?? null;
      let length = 0;
      response.on("data", (part: Uint8Array) => {
        parts.push(part);
        length += part.length;
        if (length < SHOWN_BYTES) return;
        finish();
        outgoing.destroy();
      });
      response.on("end", finish);
      response.on("error", finish);
    });
    const timer = setTimeout(() => {
      const text = `no response within ${TIMEOUT_MS / 1000} s`;
      if (status === null) end({ status, error: "timeout", text });
      else finish();
      outgoing.destroy();
    }, TIMEOUT_MS);
    outgoing.on("error", fail);
    outgoing.end(bytes);
  });
}
