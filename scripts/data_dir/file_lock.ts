/**
 * A lock that one process holds on a file for as long as it lives. The operating system frees it
 * when the process ends in whatever way, so nothing is ever stale; children do not inherit it.
 */

/** Frees the lock; the file stays. */
export interface FileLock {
  release(): void;
}

/**
 * Takes the lock on `path`, making the file (mode 600) if there is none, or returns the process
 * id of the one who holds it (0 where the system does not let us read it).
 */
export function takeFileLock(path: string): FileLock | { held_by: number } {
  const file = Deno.openSync(path, { read: true, write: true, create: true, mode: 0o600 });
  if (!file.tryLockSync(true)) {
    file.close();
    return { held_by: readHolder(path) };
  }
  file.truncateSync();
  file.writeSync(new TextEncoder().encode(`${Deno.pid}\n`));
  return { release: () => file.close() };
}

function readHolder(path: string): number {
  try {
    return Number.parseInt(Deno.readTextFileSync(path)) || 0;
  } catch {
    return 0;
  }
}
