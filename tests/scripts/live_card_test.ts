/** `deno task test --live-card`: its refusals, and its tests at the double of Stripe. */

import assert from "node:assert/strict";
import { LiveCardRefused, readLiveCardRun } from "../../tools/testing/live_card.ts";
import { outputOf } from "../support/common/running_command.ts";
import { no_stripe_double, startStripeDouble } from "../support/stripe/double.ts";

const KEY = "sk_test_0123456789";
const read = (args: string[], env: Record<string, string>) =>
  readLiveCardRun(args, (name) => env[name]);

Deno.test("readLiveCardRun() without the flag is null", () => {
  assert.equal(read(["tests/http"], { STRIPE_TEST_KEY: KEY }), null);
});

Deno.test("readLiveCardRun() selects the folder", () => {
  const run = read(["--no-check", "--live-card"], { STRIPE_TEST_KEY: KEY });
  assert.deepEqual(run?.args, ["--no-check", "tests/live_card"]);
});

const REFUSED: [name: string, env: Record<string, string>, message: RegExp][] = [
  ["no key", {}, /needs a key of Stripe's test mode/],
  ["a live key", { STRIPE_TEST_KEY: "sk_live_0123456789" }, /refuses live keys/],
  ["a restricted live key", { STRIPE_TEST_KEY: "rk_live_0123456789" }, /refuses live keys/],
  ["another text", { STRIPE_TEST_KEY: "pk_test_0123456789" }, /needs a key/],
  ["another host", { STRIPE_TEST_KEY: KEY, STRIPE_TEST_URL: "https://example.com" }, /on this/],
];
for (const [name, env, message] of REFUSED) {
  Deno.test(`readLiveCardRun() refuses ${name}, and does not repeat it`, () => {
    assert.throws(() => read(["--live-card"], env), (error: Error) => {
      assert.ok(error instanceof LiveCardRefused);
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /0123456789/);
      return true;
    });
  });
}

Deno.test({
  name: "the tests at Stripe itself pass at the double, and leave out what only Stripe does",
  ignore: no_stripe_double,
  async fn() {
    const double = await startStripeDouble();
    assert.ok(double, "localstripe is not installed");
    try {
      const output = await outputOf(
        [Deno.execPath(), "test", "-A", "--no-check", "tests/live_card"],
        { env: { LIVE_CARD: "1", STRIPE_TEST_KEY: KEY, STRIPE_TEST_URL: double.base_url } },
      );
      assert.match(output, /\| 0 failed \| 2 ignored/);
    } finally {
      await double.close();
    }
  },
});
