/**
 * Reads the settings of the functions from environment variables. An empty variable counts as
 * absent. An error names the invalid variable, and repeats its value unless it may be a secret.
 */

import { MASTER_SECRET_MIN_BYTES } from "../core/webhook_signature.ts";
import { Vault } from "../core/vault.ts";
import { encryptionOf } from "../store/database_encryption.ts";
import type { Settings } from "./settings.ts";

/** Default limit of one key in requests a second (contract §5). */
export const DEFAULT_RATE_LIMIT = 100;
/** Default limit of an environment, as a multiple of the limit of a key (contract §5). */
export const KEYS_AT_LIMIT = 4;
/** Default limit of what the sandboxes of an account store, in GiB (contract §5). */
export const DEFAULT_STORAGE_GB = 10;
/** The form of a token, as in the database (`pay.configure_relay`). */
const RELAY_TOKEN = /^[!-~]{16,200}$/;
const URL_EXAMPLES = {
  PUBLIC_BASE_URL: "https://api.example.com/functions/v1",
  SUPABASE_URL: "https://project.supabase.co",
  CHECKOUT_URL: "https://pay.example.com",
  DOCS_URL: "https://docs.example.com",
};
const ANY_PORT = /^(.*):\*$/;

/**
 * Reads the variables that docs/operations/configuration.md lists.
 * @throws {Error} with the name of the first invalid variable
 */
export function readSettings(env: (name: string) => string | undefined): Settings {
  const read = (name: string) => env(name) || undefined;
  const database_url = checkDatabase("PAYMENTS_DB_URL", read("PAYMENTS_DB_URL")) ??
    checkDatabase("SUPABASE_DB_URL", read("SUPABASE_DB_URL"));
  if (!database_url) throw new Error("Set PAYMENTS_DB_URL (or SUPABASE_DB_URL) to the database");
  const authority = checkAuthority(read("PAYMENTS_DB_CA"));
  const master_secret = checkMasterSecret(read("WEBHOOK_MASTER_SECRET"));
  const relay_token = checkRelayToken(read("RELAY_TOKEN"));
  const bank_keys = read("BANK_DETAILS_KEYS");
  const vault = bank_keys && Vault.read(bank_keys);
  const max_connections = readWhole("DB_POOL_SIZE", read("DB_POOL_SIZE"), 1);
  const rate_limit = readWhole("RATE_LIMIT_PER_SECOND", read("RATE_LIMIT_PER_SECOND"), 0) ??
    DEFAULT_RATE_LIMIT;
  const account_rate_limit = readWhole(
    "RATE_LIMIT_ACCOUNT_PER_SECOND",
    read("RATE_LIMIT_ACCOUNT_PER_SECOND"),
    0,
  ) ?? KEYS_AT_LIMIT * rate_limit;
  const storage_gb = readWhole("SANDBOX_STORAGE_GB", read("SANDBOX_STORAGE_GB"), 0) ??
    DEFAULT_STORAGE_GB;
  const prepare = readSwitch("DB_PREPARE", read("DB_PREPARE"));
  const project_url = checkUrl("SUPABASE_URL", read("SUPABASE_URL"));
  const base_url = checkUrl("PUBLIC_BASE_URL", read("PUBLIC_BASE_URL")) ??
    (project_url && `${project_url}/functions/v1`);
  if (!base_url) {
    throw new Error("Set PUBLIC_BASE_URL (or SUPABASE_URL) to the public URL of the functions");
  }
  const checkout_url = checkUrl("CHECKOUT_URL", read("CHECKOUT_URL"));
  const docs_url = readDocsUrl(env);
  return {
    database_url,
    ...(authority && { database_authority: authority }),
    base_url,
    ...(checkout_url && { checkout_url }),
    ...(docs_url && { docs_url }),
    allowed_origins: readOrigins(read("CONSOLE_ORIGINS")),
    ...(master_secret && { webhook_master_secret: master_secret }),
    ...(relay_token && { relay_token }),
    ...(vault && { vault }),
    allow_private_webhooks: readSwitch("ALLOW_PRIVATE_WEBHOOKS", read("ALLOW_PRIVATE_WEBHOOKS")) ??
      false,
    rate_limit,
    account_rate_limit,
    storage_gb,
    request_log: readSwitch("REQUEST_LOG", read("REQUEST_LOG")) ?? true,
    ...(max_connections && { max_connections }),
    ...(prepare !== undefined && { prepare }),
  };
}

/**
 * Reads the URL of the documentation. The operator's commands read it too, because they store
 * errors of requests. Throws if it is invalid.
 */
export function readDocsUrl(env: (name: string) => string | undefined): string | undefined {
  return checkUrl("DOCS_URL", env("DOCS_URL") || undefined);
}

function checkDatabase(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  // The message does not repeat the text, which may contain a password.
  if (!/^postgres(ql)?:$/.test(URL.parse(text)?.protocol ?? "")) {
    throw new Error(`${name} must look like postgres://user:password@host:5432/database`);
  }
  try {
    encryptionOf(text);
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`);
  }
  return text;
}

function checkAuthority(text: string | undefined): string | undefined {
  if (text === undefined || text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new Error("PAYMENTS_DB_CA must be the text of a certificate, with its BEGIN and END lines");
}

function checkMasterSecret(text: string | undefined): string | undefined {
  if (text === undefined || new TextEncoder().encode(text).length >= MASTER_SECRET_MIN_BYTES) {
    return text;
  }
  throw new Error(`WEBHOOK_MASTER_SECRET must have at least ${MASTER_SECRET_MIN_BYTES} bytes`);
}

function checkRelayToken(text: string | undefined): string | undefined {
  if (text === undefined || RELAY_TOKEN.test(text)) return text;
  throw new Error("RELAY_TOKEN must be 16 to 200 visible ASCII characters");
}

/** Checks a URL and removes slashes at its end. */
function checkUrl(name: keyof typeof URL_EXAMPLES, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.search || url.hash) {
    throw new Error(`${name} "${text}" must look like ${URL_EXAMPLES[name]}`);
  }
  return text.replace(/(?<!\/)\/+$/, "");
}

function readOrigins(text = ""): string[] {
  const origins = text.split(",").map((origin) => origin.trim()).filter(Boolean);
  for (const origin of origins) {
    const [, exact = origin] = ANY_PORT.exec(origin) ?? [];
    const url = URL.parse(exact);
    if (url === null || !/^https?:$/.test(url.protocol) || url.origin !== exact) {
      throw new Error(
        `CONSOLE_ORIGINS "${origin}" is not an origin: it must be like https://console.example.com`,
      );
    }
  }
  return origins;
}

function readWhole(name: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,6}$/.test(text) && Number(text) >= least) return Number(text);
  throw new Error(`${name} "${text}" is not a whole number from ${least}`);
}

function readSwitch(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  if (text === "true" || text === "false") return text === "true";
  throw new Error(`${name} "${text}" is neither true nor false`);
}
