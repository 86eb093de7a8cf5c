/** Secrets on disk: passwords and keys that only the account that runs us may read. */

/**
 * Writes a file of mode 600 and renames it into place, so that a reader sees the old content or
 * the new, and an older file's looser mode does not last.
 */
export function writePrivateFile(path: string, text: string): void {
  const unfinished = `${path}.unfinished`;
  try {
    Deno.removeSync(unfinished);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  Deno.writeTextFileSync(unfinished, text, { mode: 0o600, createNew: true });
  Deno.renameSync(unfinished, path);
}

/** A password of 256 random bits that needs no escaping in a URL. */
export function randomPassword(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}
