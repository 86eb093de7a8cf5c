/**
 * Work that goes on after the answer. An edge runtime keeps an isolate alive for it only when told.
 */

/** What a Supabase edge runtime offers. */
interface EdgeRuntime {
  waitUntil(work: Promise<unknown>): void;
}

/** Lets work go on behind the answer. The work handles its own errors. */
export function inBackground(work: Promise<unknown>): void {
  const { EdgeRuntime } = globalThis as { EdgeRuntime?: EdgeRuntime };
  EdgeRuntime?.waitUntil(work);
}
