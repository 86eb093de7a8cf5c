/**
 * Secrets of webhook endpoints: derived when needed from the master secret in the functions'
 * environment, so that the database alone can sign nothing. What is stored of an answer that shows a
 * secret is a reference to it.
 */

import type { RandomSource } from "../core/ids.ts";
import { deriveEndpointSecret } from "../core/webhook_signature.ts";
import type { SecretSource } from "../store/webhook_store.ts";

/** Bytes of a salt. */
const SALT_BYTES = 16;
/** At the end of an answer, where only we write: the merchant's own texts stand before it. */
const REFERENCE = /"secret":"whsec_reference:(\d+):([0-9a-f]+)"\}$/;

/** The next secret of an endpoint: a new salt under the next version. */
export function nextSecret(version: number, random: RandomSource): SecretSource {
  const salt = Array.from(
    random(new Uint8Array(SALT_BYTES)),
    (byte) => byte.toString(16).padStart(2, "0"),
  ).join("");
  return { version, salt, expires_at: null };
}

/** The texts of the secrets that sign at an instant, newest first. */
export function signingSecrets(
  endpoint_id: string,
  sources: readonly SecretSource[],
  master_secret: string,
  at_ms: number,
): string[] {
  return sources
    .filter(({ expires_at }) => expires_at === null || Date.parse(expires_at) > at_ms)
    .map(({ version, salt }) =>
      deriveEndpointSecret({ master_secret, endpoint_id, version, salt })
    );
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
