/**
 * Starts stripe-mock, which checks each request against Stripe's OpenAPI document and responds with
 * fixtures. It keeps no state and accepts only keys that begin with `sk_test_`. Install it with
 * `go install github.com/stripe/stripe-mock@v0.203.0`. STRIPE_MOCK names its path; without it the
 * program is looked for in PATH.
 */

import { findProgram, placesOf, startListening } from "../common/programs.ts";

const executable = await findProgram(placesOf("stripe-mock", "STRIPE_MOCK"));

/** Whether tests with stripe-mock are skipped. In CI a missing program is a failure. */
export const no_stripe_mock = executable === null && Deno.env.get("CI") === undefined;
if (no_stripe_mock) {
  console.warn("Tests with stripe-mock are not run unless CI is set: not installed");
}

/** Starts stripe-mock on a free loopback port, or returns null if it is not installed. */
export async function startStripeMock(): Promise<
  { pid: number; base_url: string; close(): Promise<void> } | null
> {
  if (executable === null) return null;
  // Without the second address it also listens on port 12112 of every address.
  const args = ["-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0"];
  const { pid, url, close } = await startListening(executable, args, /HTTP at address: (\S+)\n/);
  return { pid, base_url: url, close };
}
