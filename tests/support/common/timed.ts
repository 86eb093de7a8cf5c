/** Waits for a response and returns it with its duration, counted from this call. */
export async function timed<T>(call: Promise<T>): Promise<{ response: T; ms: number }> {
  const started = performance.now();
  return { response: await call, ms: performance.now() - started };
}
