/**
 * FairTime divides the time of a dispatcher between accounts. The dispatcher sends one poison
 * delivery at a time.
 */

import assert from "node:assert/strict";
import { FairTime } from "../../shared/jobs/fair_time.ts";

/**
 * The number of turns of each account within `for_ms`, if each always has a poison delivery
 * waiting.
 */
function share(turns: FairTime, takes_ms: Record<string, number>, for_ms: number) {
  const counts: Record<string, number> = {};
  for (let now = 0; now < for_ms;) {
    const ahead = turns.ahead()!;
    // The database takes the account that is least ahead, then by name.
    const [account] = Object.keys(takes_ms).toSorted((a, b) =>
      (ahead[a] ?? 0) - (ahead[b] ?? 0) || (a < b ? -1 : 1)
    );
    turns.begin(account!, now);
    assert.equal(turns.ahead(), null);
    turns.end(now += takes_ms[account!]!);
    counts[account!] = (counts[account!] ?? 0) + 1;
  }
  return counts;
}

Deno.test("FairTime gives equal turns to accounts with equally slow poison deliveries", () => {
  assert.deepEqual(share(new FairTime(), { a: 5, b: 5, c: 5 }, 150), { a: 10, b: 10, c: 10 });
});

Deno.test("FairTime gives an account with slow poison deliveries no more time", () => {
  const counts = share(new FairTime(), { quick: 5, silent: 15_000 }, 60_000);
  assert.ok(counts.silent === 2 && counts.quick! >= 3_000, JSON.stringify(counts));
});

Deno.test("FairTime counts a poison delivery that takes no time as 1 ms", () => {
  const turns = new FairTime();
  turns.begin("a", 0);
  turns.end(0);
  assert.deepEqual({ ...turns.ahead() }, { a: 1 });
});

Deno.test("FairTime gives a new account neither a debt nor a credit", () => {
  const turns = new FairTime();
  share(turns, { a: 1_000, b: 1_000 }, 100_000);
  const counts = share(turns, { a: 1_000, b: 1_000, late: 1_000 }, 30_000);
  for (const count of Object.values(counts)) assert.ok(Math.abs(count - 10) <= 1, `${count}`);
});

Deno.test("FairTime stores only accounts that are ahead", () => {
  const turns = new FairTime();
  for (let i = 0; i < 10_000; i++) {
    turns.begin(`account ${i}`, i);
    turns.end(i + 1);
  }
  share(turns, { last: 5 }, 100);
  assert.deepEqual(Object.keys(turns.ahead()!), ["last"]);
});
