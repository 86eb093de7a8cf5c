/**
 * Whether a connection to the database is encrypted: as `sslmode` of its URL says. Without one it is
 * `prefer`, on this machine `disable`. So every URL works that worked, and those of other machines
 * are encrypted wherever the server can.
 */

/** As libpq has them, so far as they are told apart here: what is stricter than `require` is `verify`. */
export type EncryptionMode = "disable" | "prefer" | "require" | "verify";

/** Hosts that are this machine; no name is a socket of it. */
const LOOPBACK = /^(|localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const MODES: Readonly<Record<string, EncryptionMode>> = {
  disable: "disable",
  allow: "prefer",
  prefer: "prefer",
  require: "require",
  "verify-ca": "verify",
  "verify-full": "verify",
};

/** The mode of a `postgres://…`. Errors: its `sslmode` is none; the URL is not repeated. */
export function encryptionOf(url: string): EncryptionMode {
  const { hostname, searchParams } = new URL(url);
  const asked = searchParams.get("sslmode");
  if (asked === null) return LOOPBACK.test(hostname) ? "disable" : "prefer";
  const mode = MODES[asked];
  if (mode === undefined) {
    throw new Error(`sslmode "${asked}" is none: it must be ${Object.keys(MODES).join(", ")}`);
  }
  return mode;
}

/** What postgres.js itself is told, where it can encrypt: in newer Deno than the edge runtime's. */
export function driverEncryption(
  url: string,
): { ssl: false | "prefer" | "require" | "verify-full" } {
  const mode = encryptionOf(url);
  return { ssl: mode === "disable" ? false : mode === "verify" ? "verify-full" : mode };
}
