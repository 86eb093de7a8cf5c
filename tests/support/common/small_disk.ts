/**
 * A small file system in memory that a test can fill. Only root can mount one, and not everywhere.
 */

import { join } from "node:path";
import { outputOf } from "./running_command.ts";

/** A mounted file system. Every account can enter it. */
interface SmallDisk {
  path: string;
  /** Takes its free space except this many bytes, by default none. */
  fill(except?: number): Promise<void>;
  /** Frees that space. */
  free(): Promise<void>;
  close(): Promise<void>;
}

const PART = new Uint8Array(64 * 1024);

/** Whether this account can mount one. */
export const can_mount = await mountSmallDisk(2 ** 20).then(
  (disk) => disk.close().then(() => true),
  () => false,
);
if (!can_mount) console.warn("Tests with a full disk are not run: this account cannot mount one");

/**
 * Mounts a file system of this many bytes.
 * @throws {Error} this account cannot mount one
 */
export async function mountSmallDisk(bytes: number): Promise<SmallDisk> {
  const path = await Deno.makeTempDir({ prefix: "payments-test-" });
  const options = `size=${bytes},mode=755`;
  try {
    await outputOf(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path]);
  } catch (error) {
    await Deno.remove(path);
    throw error;
  }
  const ballast = join(path, "ballast");
  return {
    path,
    async fill(except = 0) {
      using file = await Deno.open(ballast, { append: true, create: true });
      try {
        for (;;) await file.write(PART);
      } catch (error) {
        if ((error as { code?: string }).code !== "ENOSPC") throw error;
      }
      await file.truncate((await file.stat()).size - except);
    },
    free: () => Deno.remove(ballast),
    async close() {
      await outputOf(["umount", path]);
      await Deno.remove(path);
    },
  };
}
