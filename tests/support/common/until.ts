/** Waits for a state that another process or connection brings about. */

const POLL_MS = 10;

/**
 * Waits until a condition holds.
 * @param condition the text of the error
 * @throws {Error} if the condition does not hold in time
 */
export async function until(
  condition: string,
  holds: () => boolean | Promise<boolean>,
  deadline_ms = 30_000,
): Promise<void> {
  for (const give_up_at = performance.now() + deadline_ms; !await holds();) {
    if (performance.now() > give_up_at) {
      throw new Error(`Not within ${deadline_ms} ms: ${condition}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Resolves after a time. Tests wait for a state instead. */
export function pause(delay_ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}
