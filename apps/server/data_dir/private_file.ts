/** Files for secrets. Only the account that runs this process can read them. */

/**
 * Writes a file of mode 600 and renames it into place. A reader sees the old content or the new,
 * never a part, and the mode is 600 even if the replaced file had another.
 */
export function writePrivateFile(path: string, text: string): void {
  const unfinished = `${path}.unfinished`;
  removeIfPresent(unfinished);
  Deno.writeTextFileSync(unfinished, text, { mode: 0o600, createNew: true });
  Deno.renameSync(unfinished, path);
}

/** Removes a file if it exists. */
export function removeIfPresent(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Returns a password of 256 random bits, which needs no escaping in a URL. */
export function randomPassword(): string {
  return crypto.getRandomValues(new Uint8Array(32)).toHex();
}
