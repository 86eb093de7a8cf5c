/** `clock advance`: durations, and what the command prints and does. */

import assert from "node:assert/strict";
import { parseDuration } from "../../packages/sandbox/duration.ts";
import { call } from "../support/package/command_line.ts";
import { withServedService } from "../support/service/served_service.ts";

for (
  const [text, seconds] of [
    ["30d", 2_592_000],
    ["1w", 604_800],
    ["12h", 43_200],
    ["90m", 5_400],
    ["45s", 45],
    ["1h30m", 5_400],
    ["0s", 0],
    ["400d", 34_560_000],
    ["30", null],
    ["", null],
    ["1.5h", null],
    ["-1d", null],
    ["1 d", null],
    ["1M", null],
    ["1y", null],
  ] as const
) {
  Deno.test(`parseDuration("${text}") is ${seconds}`, () => {
    assert.equal(parseDuration(text), seconds);
  });
}

Deno.test("clock advance moves the clock and prints what became due", () =>
  withServedService(async ({ service, base_url, client }) => {
    const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
    const { now } = await client.sandbox.setClock({ mode: "frozen" });
    const payment = await client.payments.create({
      amount: 1999,
      currency: "EUR",
      card: { token: "pm_card_authenticationRequired" },
    });
    const { code, stdout, stderr } = await call(["clock", "advance", "1d1h"], env);
    assert.equal(code, 0, stderr);
    const later = new Date(Date.parse(now) + 90_000_000).toISOString();
    // The keys of both requests were kept for 24 hours.
    const did = "0 webhook attempts, 1 expired payment, 0 closed disputes, 2 purged rows";
    assert.equal(stdout, `${later}  frozen\n  ${did}\n`);
    assert.equal((await client.payments.retrieve(payment.id)).failure_code, "expired");
    const json = await call(["clock", "advance", "30s", "--json"], env);
    const clock = JSON.parse(json.stdout);
    assert.equal(Date.parse(clock.now), Date.parse(later) + 30_000);
    assert.equal((await client.sandbox.clock()).now, clock.now);
  }));

for (
  const [args, message] of [
    [[], /^The duration is missing: 7d/],
    [["30"], /^"30" is not a duration from 1s to 400d/],
    [["0s"], /^"0s" is not a duration/],
    [["401d"], /^"401d" is not a duration/],
    [["1d", "2h"], /^Unexpected argument "2h"/],
  ] as const
) {
  Deno.test(`clock advance ${args.join(" ")} exits with 2`, async () => {
    const { code, stderr } = await call(["clock", "advance", ...args]);
    assert.equal(code, 2);
    assert.match(stderr, message);
  });
}
