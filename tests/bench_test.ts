/**
 * The benchmark: its audits notice books that are off, and a quick run measures every line, finds
 * the books in order and prints the table. Nothing is said about speed.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { auditBooks, type Books, NO_ROWS, readBooks, type Rows } from "../bench/books.ts";
import { auditDeliveries } from "../bench/delivery_books.ts";
import { APPROVED_CARD, startService } from "./support/service.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const CREATE_ROWS: Rows = { ...NO_ROWS, payments: 1, events: 2, ledger_entries: 2 };
const KEYED_ROWS: Rows = { ...CREATE_ROWS, idempotency_keys: 1 };

Deno.test("auditBooks()", async (t) => {
  const service = await startService();
  try {
    const before = await readBooks(service.sql);
    const pay = () =>
      service.pay({ card: APPROVED_CARD }, { idempotency_key: crypto.randomUUID() });
    const [first] = [await pay(), await pay(), await pay()];
    const after = await readBooks(service.sql);

    const cases: [string, Books, number, Rows, RegExp | null][] = [
      ["finds nothing where all is well", after, 3, KEYED_ROWS, null],
      ["misses a row that was acknowledged", after, 4, KEYED_ROWS, /^payments: 3 .*acknowledged 4/],
      ["sees a row that was not", after, 2, KEYED_ROWS, /^payments: 3 .*acknowledged 2/],
      ["sees kept answers without a key", after, 3, CREATE_ROWS, /^idempotency_keys: 3 .* 0$/],
    ];
    for (const [name, books, answers, each, problem] of cases) {
      await t.step(name, () => {
        const [found] = auditBooks(before, books, answers, each);
        if (problem === null) assert.equal(found, undefined);
        else assert.match(found!, problem);
      });
    }

    await t.step("sees a missing event", async () => {
      await service.sql`delete from pay.events where subject_id = ${first!.body.id}
        and type = 'payment.created'`;
      const problems = auditBooks(before, await readBooks(service.sql), 3, KEYED_ROWS);
      assert.ok(problems.includes("events: 5, but the payments tell of 6"), problems.join());
    });
    await t.step("sees money that went nowhere", async () => {
      await service.sql`delete from pay.ledger_entries where subject_id = ${first!.body.id}
        and account = 'available'`;
      const problems = auditBooks(before, await readBooks(service.sql), 3, KEYED_ROWS);
      assert.ok(problems.includes("payments_without_ledger: 1"), problems.join());
      assert.ok(problems.includes("currencies_off: 1"), problems.join());
    });
  } finally {
    await service.close();
  }
});

Deno.test("auditDeliveries()", async (t) => {
  const arrival = (payment_id: string, sequence: number) => ({
    id: `${payment_id}.${sequence}`,
    payment_id,
    sequence,
    at_ms: 0,
    created_ms: 0,
  });
  const [a1, a2, b1, b2] = [arrival("a", 1), arrival("a", 2), arrival("b", 1), arrival("b", 2)];
  const due = new Set([a1, a2, b1, b2].map(({ id }) => id));
  const cases: [string, typeof a1[], Record<string, number>, string][] = [
    ["finds nothing where all is well", [a1, b1, b2, a2], { delivered: 4 }, ""],
    ["misses an event", [a1, b1, b2], { delivered: 4 }, "arrivals: 1 missing"],
    ["sees an event twice", [a1, a2, b1, b2, a1], { delivered: 4 }, "arrivals: 1 twice"],
    ["sees one that was not due", [a1, a2, b1, b2, arrival("c", 1)], { delivered: 4 }, "strangers"],
    ["sees a payment out of order", [a2, b1, a1, b2], { delivered: 4 }, "arrivals: 1 too_early"],
    ["sees one that is not recorded", [a1, a2, b1, b2], { delivered: 3, pending: 1 }, "1 pending"],
    ["misses a delivery", [a1, a2, b1, b2], { delivered: 3 }, "outbox: 3 delivered, due 4"],
  ];
  for (const [name, arrivals, outbox, problem] of cases) {
    await t.step(name, () => {
      const problems = auditDeliveries(arrivals, due, outbox).join("; ");
      if (problem === "") assert.equal(problems, "");
      else assert.ok(problems.includes(problem), problems);
    });
  }
});

Deno.test("deno task bench --quick measures every line and prints the table", async () => {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "bench/benchmark.ts", "--quick", "--seconds", "0.2"],
    cwd: ROOT,
    stdin: "null",
  }).output();
  const table = new TextDecoder().decode(stdout);
  const errors = new TextDecoder().decode(stderr);
  assert.equal(code, 0, errors);
  assert.match(table, /fsync on, full_page_writes on, .*synchronous_commit on/);
  const has_pgbench = !errors.includes("pgbench IS MISSING");
  if (!has_pgbench) console.error("SKIPPED: the floor, because pgbench is missing");
  const lines: [name: string, connections: number | "–", has_beside: boolean][] = [
    ["create", 1, has_pgbench],
    ["create", 32, has_pgbench],
    ["create", 64, has_pgbench],
    ["replay", 32, has_pgbench],
    ["get", 32, has_pgbench],
    ["list of 10", 32, has_pgbench],
    ["refund of a part", 32, false],
    ["cancel", 32, false],
    ["create, 64 keys beside 1", 32, true],
    ["webhooks beside fetch", 16, true],
    ["create to arrival, 40/s", "–", false],
  ];
  for (const [name, connections, has_beside] of lines) {
    const row = table.split("\n").find((line) => line.startsWith(`| ${name} | ${connections} |`));
    assert.ok(row, `no line "${name}" at ${connections} in:\n${table}`);
    const [, , , rate, p50, p99, beside, ratio] = row.split("|").map((cell) => cell.trim());
    const is_backlog = name.startsWith("webhooks");
    for (const figure of is_backlog ? [rate] : [rate, p50, p99]) {
      assert.ok(Number(figure) > 0, row);
    }
    for (const figure of [beside, ratio]) {
      if (has_beside) assert.ok(Number(figure) > 0, row);
      else assert.equal(figure, "–", row);
    }
  }
});
