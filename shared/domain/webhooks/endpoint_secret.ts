/**
 * Secrets of webhook endpoints: derived when needed from the master secret in the functions'
 * environment, so that the database alone can sign nothing. What is stored of an answer that shows a
 * secret is a reference to it.
 */

import { formatTime } from "../../core/clock.ts";
import { randomHex, type RandomSource } from "../../core/ids.ts";
import { deriveEndpointSecret } from "../../core/webhook_signature.ts";
import type { SecretSource } from "../../store/webhook_store.ts";

/** Bytes of a salt. */
const SALT_BYTES = 16;
/** At the end of an answer, where only we write: the merchant's own texts stand before it. */
const REFERENCE = /"secret":"whsec_reference:(\d+):([0-9a-f]+)"\}$/;

/**
 * Most secrets of an endpoint that sign at the same time (ADR 0030). Each adds a signature to every
 * delivery, so this limits the headers. API keys have the same limit (pay.max_live_secrets).
 */
const MAX_LIVE_SECRETS = 5;

/** The first secret of an endpoint. */
export function firstSecret(random: RandomSource): SecretSource {
  return newSecret(1, random);
}

/**
 * The secrets after a rotation, newest first. Older secrets end after `expires_in_s` or at their
 * own end, whichever is earlier. A rotation that exceeds `MAX_LIVE_SECRETS` ends the oldest at
 * once.
 * @param secrets newest first
 */
export function rotateSecrets(
  secrets: readonly SecretSource[],
  expires_in_s: number,
  at_ms: number,
  random: RandomSource,
): [SecretSource, ...SecretSource[]] {
  const until_ms = at_ms + expires_in_s * 1000;
  const older = secrets
    .map((source) => ({ ...source, expires_at: formatTime(Math.min(endOf(source), until_ms)) }));
  return [
    newSecret(secrets[0]!.version + 1, random),
    ...liveSecrets(older, at_ms).slice(0, MAX_LIVE_SECRETS - 1),
  ];
}

/** The secrets that sign at an instant. Every write of an endpoint drops the others. */
export function liveSecrets(secrets: readonly SecretSource[], at_ms: number): SecretSource[] {
  return secrets.filter((source) => endOf(source) > at_ms);
}

function newSecret(version: number, random: RandomSource): SecretSource {
  return { version, salt: randomHex(SALT_BYTES, random), expires_at: null };
}

function endOf({ expires_at }: SecretSource): number {
  return expires_at === null ? Infinity : Date.parse(expires_at);
}

/** A secret, and when it ceases to sign. */
interface DerivedSecret {
  text: string;
  until_ms: number;
}

/** Endpoints whose secrets are kept at hand. */
const AT_HAND_MAX = 256;

/**
 * The secrets that sign deliveries: each derived once, as long as nobody rotates. Holds no more than
 * the master secret already tells whoever can read this memory.
 */
export class EndpointSecrets {
  readonly #master_secret: string;
  readonly #by_endpoint = new Map<string, { sources: string; secrets: DerivedSecret[] }>();

  constructor(master_secret: string) {
    this.#master_secret = master_secret;
  }

  /**
   * The texts of the secrets that sign at an instant, newest first.
   * @param sources JSON text of `SecretSource[]`, newest first
   */
  signing(endpoint_id: string, sources: string, at_ms: number): string[] {
    let kept = this.#by_endpoint.get(endpoint_id);
    if (kept?.sources !== sources) {
      kept = { sources, secrets: this.#derive(endpoint_id, JSON.parse(sources)) };
      if (this.#by_endpoint.size >= AT_HAND_MAX) this.#by_endpoint.clear();
      this.#by_endpoint.set(endpoint_id, kept);
    }
    return kept.secrets.filter(({ until_ms }) => until_ms > at_ms).map(({ text }) => text);
  }

  #derive(endpoint_id: string, sources: SecretSource[]): DerivedSecret[] {
    const master_secret = this.#master_secret;
    return sources.map((source) => ({
      text: deriveEndpointSecret({
        master_secret,
        endpoint_id,
        version: source.version,
        salt: source.salt,
      }),
      until_ms: endOf(source),
    }));
  }
}

/** What stands for a secret in a kept answer. */
export function secretReference({ version, salt }: SecretSource): string {
  return `whsec_reference:${version}:${salt}`;
}

/** Puts the secret in the place of its reference, if there is one. */
export function revealSecret(body: string, master_secret: string): string {
  return body.replace(REFERENCE, (_, version, salt) => {
    const endpoint_id = JSON.parse(body).id;
    const source = { master_secret, endpoint_id, version: Number(version), salt };
    return `"secret":${JSON.stringify(deriveEndpointSecret(source))}}`;
  });
}
