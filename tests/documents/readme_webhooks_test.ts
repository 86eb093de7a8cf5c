/**
 * The tables of docs/contract.md about webhooks agree with the code: headers, event types, waits
 * and delivery statuses. The test also runs the statement that an operator pastes into the SQL
 * editor.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { DELIVERY_STATUSES, EVENT_TYPES } from "../../shared/core/vocabulary.ts";
import { deriveEndpointSecret } from "../../shared/core/webhook_signature.ts";
import { makeAttempt } from "../../shared/domain/webhooks/attempt.ts";
import { LIVE_DELAYS_MS, TEST_DELAYS_MS } from "../../shared/domain/webhooks/retry_schedule.ts";
import { codeBlocks, codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { section } from "../support/documents/operations_document.ts";
import { cloneDatabase } from "../support/database/database.ts";

const CONTRACT = await Deno.readTextFile(new URL("../../docs/contract.md", import.meta.url));
const UNITS_MS: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 };

Deno.test("docs/contract.md shows every header of a delivery and no other", async () => {
  const shown = tableRows(CONTRACT, "Header").flatMap(([cell]) => codeTexts(cell!));
  const sent: string[] = [];
  const secret = deriveEndpointSecret({
    master_secret: "m".repeat(32),
    endpoint_id: "whe_1m7wxh34391014jsnn4dyqy6x0",
    version: 1,
    salt: "00".repeat(16),
  });
  const attempt = {
    event_id: "evt_1m7wxh46cemfph749zf3qhmsb1",
    body: "{}",
    url: "http://127.0.0.1:4343/",
    number: 1,
    secrets: [secret],
    allow_private: true,
    livemode: false,
    signed_ms: 0,
    // Only an attempt with a declared fault has the header Sandbox-Fault.
    fault: "delay" as const,
    traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  };
  await makeAttempt(attempt, 0, ({ headers }) => {
    sent.push(...Object.keys(headers));
    return Promise.resolve({ outcome: "timeout", duration_ms: 0 });
  });
  assert.deepEqual(shown.sort(), sent.sort());
});

Deno.test("docs/contract.md lists every event type and no other", () => {
  const shown = tableRows(CONTRACT, "Event type").flatMap(([cell]) => {
    const texts = codeTexts(cell!);
    const [resource] = texts[0]!.split(".");
    return texts.map((text) => text.startsWith(".") ? resource + text : text);
  });
  assert.deepEqual(shown.sort(), [...EVENT_TYPES].sort());
});

Deno.test("docs/contract.md shows the waits between attempts", () => {
  const shown = tableRows(CONTRACT, "Key").map(([mode, waits]) => {
    const delays = [...waits!.matchAll(/\b(\d+) (s|min|h)\b/g)];
    return [mode, delays.map(([, count, unit]) => Number(count) * UNITS_MS[unit!]!)];
  });
  assert.deepEqual(shown, [["test", TEST_DELAYS_MS], ["live", LIVE_DELAYS_MS]]);
});

Deno.test("docs/contract.md explains every status of a delivery", () => {
  const shown = tableRows(CONTRACT, "Delivery").map(([cell]) => codeTexts(cell!)[0]);
  assert.deepEqual(shown, [...DELIVERY_STATUSES]);
});

Deno.test("docs/operations/deploy.md configures the address and the token of the dispatcher", async () => {
  const steps = await section("Deploying to a Supabase project");
  const { text } = codeBlocks(steps).find(({ language }) => language === "sql")!;
  const statement = text.replace("<ref>", "abcdefgh").replace(
    "<RELAY_TOKEN>",
    "0".repeat(64),
  );
  const database = await cloneDatabase();
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe(statement);
    assert.deepEqual([...await sql`select name, value from pay.settings order by name`], [
      { name: "relay_token", value: "0".repeat(64) },
      {
        name: "relay_url",
        value: "https://abcdefgh.supabase.co/functions/v1/api-v1-payments/internal/relay",
      },
    ]);
  } finally {
    await sql.end();
    await database.drop();
  }
});
