/**
 * The encryption of connections to the database, from `sslmode` in the URL. The default is
 * `prefer`, and `disable` for a database on this machine. So a connection to another machine is
 * encrypted if the server supports it (ADR 0007).
 */

/** The modes of libpq. `verify` stands for both `verify-ca` and `verify-full`. */
export type EncryptionMode = "disable" | "prefer" | "require" | "verify";

/** Hosts of this machine. An empty host is a local socket. */
const LOOPBACK = /^(|localhost|127(\.\d{1,3}){3}|\[::1\])$/;
const MODES: Readonly<Record<string, EncryptionMode>> = {
  disable: "disable",
  allow: "prefer",
  prefer: "prefer",
  require: "require",
  "verify-ca": "verify",
  "verify-full": "verify",
};

/**
 * Returns the encryption mode of a `postgres://…` URL.
 * @throws {Error} for an unknown `sslmode`; the message does not repeat the URL
 */
export function encryptionOf(url: string): EncryptionMode {
  const { hostname, searchParams } = new URL(url);
  const requested = searchParams.get("sslmode");
  if (requested === null) return LOOPBACK.test(hostname) ? "disable" : "prefer";
  const mode = MODES[requested];
  if (mode === undefined) {
    throw new Error(
      `sslmode "${requested}" does not exist: use one of ${Object.keys(MODES).join(", ")}`,
    );
  }
  return mode;
}

/** Returns the TLS option of postgres.js, for programs on a Deno where its TLS works. */
export function driverEncryption(
  url: string,
): { ssl: false | "prefer" | "require" | "verify-full" } {
  const mode = encryptionOf(url);
  return { ssl: mode === "disable" ? false : mode === "verify" ? "verify-full" : mode };
}
