/**
 * A file with one JSON record a line. A record is on disk (fsync) before its writer continues, so
 * it survives `kill -9` of the process. Simultaneous writers share one fsync.
 */

export class Journal {
  readonly #file: Deno.FsFile;
  #waiting: { text: string; done: () => void }[] = [];
  #flushing: Promise<void> | null = null;

  constructor(path: string) {
    this.#file = Deno.openSync(path, { create: true, append: true });
  }

  /** Resolves when the record is on disk. */
  write(record: unknown): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ text: JSON.stringify(record) + "\n", done: resolve });
    this.#flushing ??= this.#flush();
    return promise;
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      const bytes = new TextEncoder().encode(batch.map(({ text }) => text).join(""));
      for (let sent = 0; sent < bytes.length;) {
        sent += await this.#file.write(bytes.subarray(sent));
      }
      await this.#file.syncData();
      for (const { done } of batch) done();
    }
    this.#flushing = null;
  }
}

/** Reads a journal. An incomplete line, which a kill left, was never acknowledged and is skipped. */
export async function readJournal<T>(path: string): Promise<T[]> {
  const text = await Deno.readTextFile(path).catch(() => "");
  return text.split("\n").slice(0, -1).flatMap((line) => {
    try {
      return [JSON.parse(line) as T];
    } catch {
      return [];
    }
  });
}
