/**
 * An exclusive lock on a file. The operating system releases the lock when its process ends, also
 * after `kill -9`, so no stale lock remains. Child processes do not inherit it.
 */

/** A lock that this process holds. */
export interface FileLock {
  /** Releases the lock and keeps the file. */
  release(): void;
}

/**
 * Takes the lock on `path` and creates the file (mode 600) if it is missing. If another process
 * holds the lock, returns the id of that process, or 0 if the system does not let us read it.
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
