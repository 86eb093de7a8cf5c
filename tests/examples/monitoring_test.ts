/**
 * `GET /internal/metrics` and the files of examples/monitoring, which promtool and the types of
 * Grafana check.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { lacksPrograms } from "../support/common/programs.ts";
import { serviceCase } from "../support/service/service_case.ts";
import { RELAY_TOKEN } from "../support/service/service.ts";
import { outputOf, runCommand } from "../support/common/running_command.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FOLDER = `${ROOT}examples/monitoring`;

/** Every metric. One series each, for any number of accounts, keys and payments. */
const NAMES = [
  "payments_due_deliveries",
  "payments_oldest_due_seconds",
  "payments_pending_deliveries",
  "payments_failed_deliveries_last_hour",
  "payments_failing_endpoints",
  "payments_invariant_breaches",
  "payments_books_checked_timestamp_seconds",
  "payments_retention_behind",
  "payments_waiting_environments",
  "payments_oldest_waiting_seconds",
  "payments_largest_storage_bytes",
  "payments_test_keys",
  "payments_live_keys",
  "payments_dispatcher_configured",
  "payments_waiting_accounts",
  "payments_unsettled_operations",
  "payments_oldest_unsettled_operation_seconds",
  "payments_unmatched_events",
  "payments_stalled_readings",
  "payments_unfit_parameters",
];

/** Runs promtool in the folder of the examples. Returns its output. */
async function promtool(args: string[], input = ""): Promise<string> {
  const { code, output } = await runCommand({ args: ["promtool", ...args], cwd: FOLDER, input });
  assert.equal(code, 0, `promtool ${args.join(" ")}\n${output}`);
  return output;
}

const ignore = await lacksPrograms("metrics and alerts", ["promtool"]);

serviceCase("GET /internal/metrics", async (t, service) => {
  const scrape = () =>
    service.call("GET", "/api-v1-payments/internal/metrics", { key: RELAY_TOKEN });
  const valuesOf = (text: string) =>
    new Map(
      text.trimEnd().split("\n").filter((line) => !line.startsWith("#")).map((line) => {
        const [name, value] = line.split(" ");
        return [name!, Number(value)];
      }),
    );
  await t.step("has the text form of Prometheus, and no log line", async () => {
    const lines = service.logs.length;
    const { status, headers } = await scrape();
    assert.deepEqual([status, headers.get("Content-Type")], [
      200,
      "text/plain; version=0.0.4; charset=utf-8",
    ]);
    assert.equal(service.logs.length, lines);
  });
  await t.step("leaves out the check of the books before its first run", async () => {
    const unchecked = ["payments_invariant_breaches", "payments_books_checked_timestamp_seconds"];
    const names = [...valuesOf((await scrape()).text).keys()];
    assert.deepEqual(names, NAMES.filter((name) => !unchecked.includes(name)));
  });
  await service.sql`select pay.note_breaches()`;
  const { text } = await scrape();
  await t.step(`has ${NAMES.length} series, without labels`, () => {
    assert.deepEqual([...valuesOf(text).keys()], NAMES);
  });
  await t.step("has the values of pay.health", async () => {
    const [health] = await service.sql`select * from pay.health`;
    const values = valuesOf(text);
    assert.equal(values.get("payments_test_keys"), Number(health!.test_keys));
    assert.equal(values.get("payments_live_keys"), Number(health!.live_keys));
    assert.equal(values.get("payments_retention_behind"), Number(health!.is_retention_behind));
    const checked_ms = values.get("payments_books_checked_timestamp_seconds")! * 1000;
    assert.ok(Math.abs(checked_ms - health!.books_checked_at.getTime()) < 1);
    assert.equal(
      values.get("payments_unfit_parameters"),
      health!.unfit_parameters?.split(", ").length ?? 0,
    );
  });
  await t.step({
    name: "passes promtool check metrics",
    ignore,
    fn: async () => assert.equal(await promtool(["check", "metrics"], text), ""),
  });
});

for (
  const args of [
    ["check", "config", "--syntax-only", "prometheus.yml"],
    ["check", "rules", "alerts.yml"],
    ["test", "rules", "alerts_test.yml"],
  ]
) {
  Deno.test({
    name: `promtool ${args.join(" ")}`,
    ignore,
    fn: () => promtool(args).then(() => {}),
  });
}

Deno.test("alerts name only metrics that exist, and the dashboard all of them", async (t) => {
  for (const file of ["alerts.yml", "dashboard.json"]) {
    await t.step(file, async () => {
      const text = await Deno.readTextFile(`${FOLDER}/${file}`);
      const named = new Set(text.match(/\bpayments_\w+/g));
      assert.ok(named.size > 0);
      assert.deepEqual([...named].filter((name) => !NAMES.includes(name)), []);
      if (file === "dashboard.json") assert.deepEqual([...named].sort(), NAMES.toSorted());
    });
  }
});

// Reads the JSON as a literal of Grafana's own type. In JSON an enum is its text.
Deno.test("the dashboard has Grafana's schema", async () => {
  const dashboard = await Deno.readTextFile(`${FOLDER}/dashboard.json`);
  const file = await Deno.makeTempFile({ suffix: ".ts" });
  try {
    await Deno.writeTextFile(
      file,
      `import type { Dashboard } from "@grafana/schema";
      type Json<T> = T extends string ? \`\${T}\` : T extends object
        ? { [K in keyof T]: Json<T[K]> } : T;
      export const dashboard: Json<Dashboard> = ${dashboard};`,
    );
    const check = ["check", "--quiet", "--frozen", "--config", `${ROOT}deno.json`, file];
    await outputOf([Deno.execPath(), ...check]);
  } finally {
    await Deno.remove(file);
  }
});
