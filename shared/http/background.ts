/**
 * Work that continues after the response. An edge runtime keeps an isolate alive only for work that
 * is passed to `waitUntil`.
 */

/** The used part of Supabase's edge runtime. */
interface EdgeRuntime {
  waitUntil(work: Promise<unknown>): void;
}

/** The work that the runtime knows: each request gets the same promise of a worker that runs. */
const known = new WeakSet<Promise<unknown>>();

/** Keeps the isolate alive until the work ends. The work handles its own errors. */
export function inBackground(work: Promise<unknown>): void {
  const { EdgeRuntime } = globalThis as { EdgeRuntime?: EdgeRuntime };
  if (EdgeRuntime === undefined || known.has(work)) return;
  known.add(work);
  EdgeRuntime.waitUntil(work);
}
