/** Waits for an answer and returns it with its duration, counted from this call. */
export async function timed<T>(call: Promise<T>): Promise<{ answer: T; ms: number }> {
  const started = performance.now();
  return { answer: await call, ms: performance.now() - started };
}
