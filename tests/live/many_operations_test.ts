/** 300 live creates wait for a slow provider, and hold no connection of the database. */

import assert from "node:assert/strict";
import { startService } from "../support/service/service.ts";
import { until } from "../support/common/until.ts";
import { idGenerator } from "../../shared/core/ids.ts";

const CREATES = 300;

/** A provider that responds to no create until the test lets it. */
function startSlowProvider() {
  let waiting = 0;
  let ids = 0;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const form = new URLSearchParams(await request.text());
    waiting++;
    await released;
    const metadata = Object.fromEntries(
      [...form].flatMap(([name, value]) => {
        const field = /^metadata\[(\w+)\]$/.exec(name)?.[1];
        return field ? [[field, value]] : [];
      }),
    );
    const amount = Number(form.get("amount"));
    return Response.json({
      id: `pi_${++ids}`,
      object: "payment_intent",
      created: Math.floor(Date.now() / 1000),
      livemode: true,
      status: "succeeded",
      amount,
      amount_received: amount,
      amount_capturable: 0,
      currency: form.get("currency"),
      capture_method: "automatic",
      latest_charge: null,
      next_action: null,
      last_payment_error: null,
      canceled_at: null,
      metadata,
    });
  });
  return {
    base_url: `http://127.0.0.1:${server.addr.port}`,
    waiting: () => waiting,
    release,
    close: () => server.shutdown(),
  };
}

Deno.test("300 live creates under way hold no database connection while they wait", async () => {
  const provider = startSlowProvider();
  const service = await startService({ provider_secret: () => "sk_live_many" });
  try {
    await service.sql`select pay.add_provider_account(${idGenerator(Date.now())("pac_")},
      ${service.live.environment_id}, 'stripe', ${["card"]},
      ${JSON.stringify({ base_url: provider.base_url })}, 'PROVIDER_STRIPE', ${[]}::text[])`;
    const card = { token: "pm_card_visa" };
    const paying = Array.from(
      { length: CREATES },
      () => service.pay({ card }, { key: service.live.text, unchecked: true }),
    );
    await until("every create waits for the provider", () => provider.waiting() === CREATES);
    // A transaction that is open during an operation would still be here.
    const busy = await service.sql`
      select state, query from pg_stat_activity
      where datname = current_database() and usename <> current_user and state <> 'idle'`;
    assert.deepEqual([...busy], []);
    provider.release();
    const responses = await Promise.all(paying);
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [201]);
    assert.deepEqual([...new Set(responses.map(({ body }) => body.status))], ["completed"]);
  } finally {
    provider.release();
    await service.close();
    await provider.close();
  }
});
