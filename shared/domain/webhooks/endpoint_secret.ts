/**
 * Secrets of webhook endpoints. The service derives them from the master secret in the environment
 * of the functions, so the database alone can sign nothing. A stored response contains a reference
 * in place of the secret (ADR 0015).
 */

import { formatTime } from "../../core/clock.ts";
import { randomHex } from "../../core/ids.ts";
import { RecentMap } from "../../core/recent_map.ts";
import { deriveEndpointSecret, MASTER_SECRET_MIN_BYTES } from "../../core/webhook_signature.ts";
import type { RequestContext } from "../changes/event.ts";
import type { SecretSource } from "../../store/webhook_store.ts";

const SALT_BYTES = 16;
/**
 * Length of the salt of a seeded sandbox. Such a secret follows from its salt alone, so that it is
 * the same with every master secret.
 */
const SEEDED_SALT_BYTES = 32;
/** Takes the place of the master secret then. */
const NO_MASTER_SECRET = "0".repeat(MASTER_SECRET_MIN_BYTES);
/**
 * The reference in a response. It is the last member, so no text of a merchant can look like it.
 */
const REFERENCE = /"secret":"whsec_reference:(\d+):([0-9a-f]+)"\}$/;

/**
 * Most secrets of an endpoint that sign at the same time (ADR 0015). Each secret adds a signature
 * to every delivery, so this bounds the headers. API keys have the same limit
 * (pay_internal.max_live_secrets).
 */
export const MAX_ACTIVE_SECRETS = 5;

/** The time of an environment, and the real one. They differ in a sandbox with its own clock. */
interface Now {
  at_ms: number;
  real_ms: number;
}

type SecretEnds = Pick<SecretSource, "expires_at" | "ends_at">;

type SecretOrigin = Pick<RequestContext, "random" | "run_number">;

export function firstSecret(origin: SecretOrigin): SecretSource {
  return newSecret(1, origin);
}

/**
 * Returns the secrets after a rotation, newest first. An older secret expires after `expires_in_s`
 * or at its previous expiry, whichever is earlier. The clock of the sandbox and the real one both
 * count, so that a clock that stands keeps no secret alive. A rotation that exceeds
 * `MAX_ACTIVE_SECRETS` drops the oldest.
 * @param secrets newest first
 */
export function rotateSecrets(
  secrets: readonly SecretSource[],
  expires_in_s: number,
  origin: SecretOrigin,
  now: Now,
): [SecretSource, ...SecretSource[]] {
  const until = (end: string | null, from_ms: number) =>
    formatTime(Math.min(timeOf(end), from_ms + expires_in_s * 1000));
  const older = secrets.map((source) => ({
    ...source,
    expires_at: until(source.expires_at, now.at_ms),
    ends_at: until(source.ends_at ?? null, now.real_ms),
  }));
  return [
    newSecret(secrets[0]!.version + 1, origin),
    ...activeSecrets(older, now).slice(0, MAX_ACTIVE_SECRETS - 1),
  ];
}

/** Returns the secrets that sign now. Every write of an endpoint drops the others. */
export function activeSecrets(secrets: readonly SecretSource[], now: Now): SecretSource[] {
  return secrets.filter((source) => isActive(source, now));
}

function isActive({ expires_at, ends_at }: SecretEnds, { at_ms, real_ms }: Now): boolean {
  return timeOf(expires_at) > at_ms && timeOf(ends_at ?? null) > real_ms;
}

function newSecret(version: number, { random, run_number }: SecretOrigin): SecretSource {
  return { version, salt: newSalt({ random, run_number }), expires_at: null };
}

export function newSalt({ random, run_number }: SecretOrigin): string {
  return randomHex(run_number !== null ? SEEDED_SALT_BYTES : SALT_BYTES, random);
}

export function masterSecretOf(salt: string, master_secret: string): string {
  return salt.length === 2 * SEEDED_SALT_BYTES ? NO_MASTER_SECRET : master_secret;
}

function textOf(
  { version, salt }: Pick<SecretSource, "version" | "salt">,
  endpoint_id: string,
  master_secret: string,
): string {
  return deriveEndpointSecret({
    master_secret: masterSecretOf(salt, master_secret),
    endpoint_id,
    version,
    salt,
  });
}

/** The time of an end, which is null for a secret that does not end. */
function timeOf(end: string | null): number {
  return end === null ? Infinity : Date.parse(end);
}

interface DerivedSecret extends SecretEnds {
  text: string;
}

const CACHED_ENDPOINTS_MAX = 256;

/**
 * A cache of the secrets that sign deliveries. A reader of this memory learns nothing new from it,
 * because the master secret is in the same memory.
 */
export class EndpointSecrets {
  readonly #master_secret: string;
  readonly #by_endpoint = new RecentMap<string, { sources: string; secrets: DerivedSecret[] }>(
    CACHED_ENDPOINTS_MAX,
  );

  constructor(master_secret: string) {
    this.#master_secret = master_secret;
  }

  /**
   * Returns the secrets that sign now, as text, newest first.
   * @param sources JSON text of `SecretSource[]`, newest first
   */
  signing(endpoint_id: string, sources: string, now: Now): string[] {
    let kept = this.#by_endpoint.get(endpoint_id);
    if (kept?.sources !== sources) {
      kept = { sources, secrets: this.#derive(endpoint_id, JSON.parse(sources)) };
      this.#by_endpoint.set(endpoint_id, kept);
    }
    return kept.secrets.filter((secret) => isActive(secret, now)).map(({ text }) => text);
  }

  #derive(endpoint_id: string, sources: SecretSource[]): DerivedSecret[] {
    return sources.map((source) => ({
      ...source,
      text: textOf(source, endpoint_id, this.#master_secret),
    }));
  }
}

export function secretReference({ version, salt }: SecretSource): string {
  return `whsec_reference:${version}:${salt}`;
}

/** Replaces the reference in a response with the secret. Other responses stay as they are. */
export function revealSecret(body: string, master_secret: string): string {
  return body.replace(REFERENCE, (_, version, salt) => {
    const endpoint_id = JSON.parse(body).id;
    const text = textOf({ version: Number(version), salt }, endpoint_id, master_secret);
    return `"secret":${JSON.stringify(text)}}`;
  });
}
