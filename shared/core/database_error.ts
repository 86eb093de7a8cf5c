/**
 * Tells the errors of statements apart: the database is away, a lock was held for too long, or the
 * database refuses the statement, which would fail again.
 */

import { ApiError } from "./errors.ts";

/** SQLSTATE of a statement that waited too long for a lock. */
const LOCK_TIMEOUT = "55P03";

/**
 * Codes of temporary errors, which get 503: connection failures of the driver and the
 * system, and the SQLSTATE classes 08 (connection, and every error of PgBouncer), 40 (rollback:
 * deadlock, serialization), 53 (resources), 55P03 (lock timeout), 57 (operator intervention), 25006
 * (read-only: a standby, or a disk that is nearly full) and 3D000 (no such database: it is being
 * restored).
 */
const TEMPORARY =
  /^(CONNECT_TIMEOUT|CONNECTION_\w+|E(CONN|PIPE|AI_|HOST|NET|TIMEDOUT|NOTFOUND)\w*|08\w{3}|25006|3D000|40\w{3}|53\w{3}|55P03|57\w{3})$/;

/**
 * Codes with which poolers and routers say that no server takes the statement: XX000 of Supavisor
 * ("Tenant or user not found", "max clients reached"), 58000 of PgCat, and those of SPQR for a lost
 * connection and for data that moves. PostgreSQL has the first two for faults of its own.
 */
const NO_SERVER = /^(XX000|58000|SPQR[OT])$/;

/** Reports whether a statement waited too long for a lock. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === LOCK_TIMEOUT;
}

/** Reports whether an error of `attempt` means that the database is unavailable now. */
export function isUnavailable(error: unknown): boolean {
  const { syscall, routine } = error as { syscall?: unknown; routine?: unknown };
  const code = codeOf(error) ?? "";
  // PostgreSQL names the routine of every error, and no pooler does.
  const is_of_pooler = routine === undefined && NO_SERVER.test(code);
  return isOverdue(error) || syscall !== undefined || is_of_pooler || TEMPORARY.test(code);
}

/** Reports whether `attempt` exceeded the deadline of a statement or of a connection. */
export function isOverdue(error: unknown): boolean {
  return error instanceof ApiError || codeOf(error) === "CONNECT_TIMEOUT";
}

/** Returns the code of an error of the driver, the system or PostgreSQL; null: it has none. */
export function codeOf(error: unknown): string | null {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : null;
}
