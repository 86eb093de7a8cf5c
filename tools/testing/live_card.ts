/**
 * `STRIPE_TEST_KEY=sk_test_… deno task test --live-card` runs the tests of the paths that only
 * Stripe itself can prove. They make payments in the test mode of the key's account, so no other
 * run includes them.
 */

import { isLoopback } from "../../shared/core/loopback.ts";

interface LiveCardRun {
  /** The arguments, with the folder of the tests in place of the flag. */
  args: string[];
  /** Variables for the tests. */
  env: Record<string, string>;
}

/** The run is refused. The message is for the user. */
export class LiveCardRefused extends Error {}

const FLAG = "--live-card";
const FOLDER = "tests/live_card";
const TEST_KEY = /^(?:sk|rk)_test_\w+$/;

/**
 * Reads the run. Returns null without the flag.
 * @throws {LiveCardRefused} without a test key of Stripe
 */
export function readLiveCardRun(
  args: readonly string[],
  env: (name: string) => string | undefined,
): LiveCardRun | null {
  if (!args.includes(FLAG)) return null;
  const key = env("STRIPE_TEST_KEY") ?? "";
  // No message repeats the key.
  if (/^(?:sk|rk)_live_/.test(key)) {
    throw new LiveCardRefused(
      `${FLAG} refuses live keys, because it makes payments: set STRIPE_TEST_KEY to a key of ` +
        "Stripe's test mode, sk_test_… or rk_test_…",
    );
  }
  if (!TEST_KEY.test(key)) {
    throw new LiveCardRefused(
      `${FLAG} needs a key of Stripe's test mode: STRIPE_TEST_KEY=sk_test_… deno task test ${FLAG}`,
    );
  }
  const url = env("STRIPE_TEST_URL");
  if (url !== undefined && !(URL.canParse(url) && isLoopback(new URL(url).hostname))) {
    throw new LiveCardRefused(
      "STRIPE_TEST_URL must be the origin of a program on this machine: leave it out for Stripe",
    );
  }
  return {
    args: args.map((arg) => arg === FLAG ? FOLDER : arg),
    env: { LIVE_CARD: "1" },
  };
}
