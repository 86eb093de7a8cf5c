/**
 * The routes of a bridge to a bank, a program of the operator that carries files between the
 * service and EBICS or SFTP (ADR 0021). They take no API key: the account has a token of its own,
 * which opens nothing else.
 */

import type { Context, Hono } from "hono";
import { Buffer } from "node:buffer";
import { createHash, timingSafeEqual } from "node:crypto";
import { refusedResult, resultOf } from "../connectors/bank/file_result.ts";
import { ApiError, tryAgain } from "../core/errors.ts";
import { isId } from "../core/ids.ts";
import { mapInSlices } from "../core/time_slice.ts";
import type { ProviderAccount } from "../domain/providers/connector.ts";
import { noBankKeys } from "../domain/providers/sealed_details.ts";
import type { Dependencies } from "../http/dependencies.ts";
import { keylessLimit } from "../http/keyless_limit.ts";
import { readRaw } from "../http/request_body.ts";
import type { Env } from "../http/request_state.ts";
import { PAYMENTS_FUNCTION } from "../http/route.ts";
import type { BankStore } from "../store/bank_store.ts";
import { rateLimited } from "../store/outcome.ts";

/** Largest statement. The operator's command imports larger ones. */
const MAX_STATEMENT_BYTES = 10 * 1024 * 1024;
const STATEMENT_DEADLINE_MS = 60_000;
const HASH_BYTES = 256 * 1024;
/** Longest wait for the worker, so that the response has what it has booked. */
const WORK_MS = 5_000;

const FILE_NAME = /^[a-z0-9_.-]{1,100}$/;

/** What the routes need besides the dependencies of all routes. */
export interface BridgeDependencies {
  bank_store: BankStore;
}

/** Adds the routes below `/providers/{pac_…}`. */
export function serveBridge(app: Hono<Env>, deps: Dependencies & BridgeDependencies): void {
  const limited = keylessLimit(deps);
  type Handler = (c: Context<Env>, account: ProviderAccount) => Promise<Response>;
  const serve = (method: "GET" | "POST", tail: string, handle: Handler) => {
    const path = `/${PAYMENTS_FUNCTION}/providers/:id/${tail}`;
    app.on(method, path, (c) => {
      c.get("state").route_template = path;
      return limited(c, async () => await handle(c, await authenticate(c, deps)));
    });
  };
  serve("GET", "files", async (c, { id }) => {
    const files = await deps.bank_store.listExports(id, null);
    return c.json({
      data: files.map(({ name, kind, sha256, created_at, is_opt_out }) => ({
        name,
        kind,
        sha256,
        created_at,
        ...(is_opt_out && { vop: "opt_out" }),
      })),
    });
  });
  serve("GET", "files/:name", async (c, account) => {
    const name = c.req.param("name") ?? "";
    const [file] = FILE_NAME.test(name) ? await deps.bank_store.listExports(account.id, name) : [];
    if (file === undefined) {
      throw new ApiError("not_found", "There is no file with this name, or it was deleted");
    }
    if (deps.vault === null) throw noBankKeys();
    const { bytesOf } = await import("../connectors/bank/export_bank_files.ts");
    const bytes = await bytesOf(file.id, account, deps.bank_store, deps.vault);
    await deps.bank_store.noteExport(account.id, file.id);
    return c.body(new Uint8Array(bytes), 200, { "Content-Type": "application/xml" });
  });
  serve("POST", "files", async (c, account) => {
    if (deps.vault === null) throw noBankKeys();
    const { exportOrders } = await import("../connectors/bank/export_bank_files.ts");
    const at_ms = c.get("state").at_ms;
    const waiting = await exportOrders(account, deps.bank_store, deps.vault, at_ms);
    return c.json({ waiting });
  });
  const importing = new Set<string>();
  serve("POST", "statements", async (c, account) => {
    if (!/^application\/xml *(;|$)/i.test(c.req.header("Content-Type") ?? "")) {
      throw new ApiError("unsupported_media_type", "Send the file as application/xml");
    }
    // Before the file is read, so that an account has one in memory.
    if (importing.has(account.id)) {
      throw tryAgain("rate_limited", "Another file of this account is imported now: send it again");
    }
    importing.add(account.id);
    try {
      const bytes = await readRaw(c.req.raw, MAX_STATEMENT_BYTES, {
        deadline_ms: STATEMENT_DEADLINE_MS,
      });
      return await importStatement(c, account, bytes, deps);
    } finally {
      importing.delete(account.id);
    }
  });
}

async function importStatement(
  c: Context<Env>,
  account: ProviderAccount,
  bytes: Uint8Array,
  { bank_store, vault, provider_worker }: Dependencies & BridgeDependencies,
): Promise<Response> {
  if (vault === null) throw noBankKeys();
  const { importWhole } = await import("../connectors/bank/import_whole_file.ts");
  const sha256 = await hashOf(bytes);
  const file = `${sha256.slice(0, 16)}.xml`;
  const outcome = await importWhole(account, { bytes, sha256, name: file }, bank_store, vault);
  if ("error" in outcome) return c.json(refusedResult(file, outcome.error), 400);
  await Promise.race([
    provider_worker.notify(),
    new Promise((resolve) => setTimeout(resolve, WORK_MS)),
  ]);
  return c.json(resultOf(file, outcome, await bank_store.importState(account.id, sha256)));
}

async function hashOf(bytes: Uint8Array): Promise<string> {
  const hash = createHash("sha256");
  const starts = Array.from({ length: Math.ceil(bytes.length / HASH_BYTES) }, (_, i) => i);
  await mapInSlices(starts, (i) => {
    hash.update(bytes.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES));
  });
  return hash.digest("hex");
}

/**
 * Returns the account whose token the request has, and counts the request. Throws `unauthorized`
 * and `rate_limited`.
 */
async function authenticate(
  c: Context<Env>,
  { bank_store, provider_store, provider_accounts, rate_limits }:
    & Dependencies
    & BridgeDependencies,
): Promise<ProviderAccount> {
  const id = c.req.param("id") ?? "";
  const [, token] = /^Bearer (\S{1,200})$/.exec(c.req.header("Authorization") ?? "") ?? [];
  const hash = isId("pac_", id) ? await bank_store.readBridgeHash(id) : null;
  const given = createHash("sha256").update(token ?? "").digest();
  // Of an unknown account too, so that the time tells nothing.
  const expected = hash === null ? given.map((byte) => byte ^ 1) : Buffer.from(hash, "hex");
  if (!timingSafeEqual(given, expected) || token === undefined) throw unauthorized();
  const stored = await provider_store.readAccount(id);
  const ready = stored && provider_accounts.open(stored);
  if (!ready || typeof ready === "string") throw unauthorized();
  const is_over = rate_limits !== null && !await bank_store.countBridgeRequest(id, rate_limits);
  if (is_over) throw rateLimited();
  return ready.account;
}

function unauthorized(): ApiError {
  return new ApiError("unauthorized", "No account with this id has this bridge token");
}
