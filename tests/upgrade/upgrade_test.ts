/**
 * This tree's migrations upgrade a database that an older release has created and filled. Its
 * schema equals that of a new database, its books are correct, and the service works with its rows.
 * The test also fills a database from a fixture of this tree, as a release will.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { join } from "node:path";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { migrate, MIGRATIONS_DIR } from "../../apps/server/migrations/migrate.ts";
import { readReleases, releasedFiles } from "../../tools/schema/releases.ts";
import { scratchServer } from "../../apps/server/postgres/scratch_database.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { createEmptyDatabase, testServer } from "../support/database/database.ts";
import { describeSchema } from "../support/database/schema_description.ts";
import { loadRows } from "../support/upgrade/data_file.ts";
import { type Fixture, makeFixture, readFixture } from "../support/upgrade/fixture.ts";
import { type FixtureService, openFixtureService } from "../support/upgrade/fixture_service.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

const API = "/api-v1-payments/v1";
/** The test works this long after the fixture was made, by the clock of the service. */
const LATER_MS = 60_000;

/** The remedy if an invariant is broken. */
const REMEDY =
  "The rows break an invariant. The invariants must hold for the rows of every release";

const releases = await readReleases();

for (const release of Object.keys(releases)) {
  Deno.test(`a database of ${release} is upgraded to this tree`, async (t) => {
    const fixture = await readFixture(release);
    await withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder);
      for (const file of releasedFiles(releases, release).keys()) {
        await Deno.copyFile(join(MIGRATIONS_DIR, file), join(folder, file));
      }
      await upgrade(t, folder, fixture);
    });
  });
}

// A fixture of 60 days ago is as a release's will be: many of its ends have come.
Deno.test("a database of this tree is filled from a fixture of 60 days ago", async (t) => {
  const end_ms = Date.now() - 60 * 86_400_000;
  const fixture = await scratchServer(testServer().superuser_url).withDatabase(async (url) => {
    await migrate(url);
    return await makeFixture(url, end_ms);
  });
  await upgrade(t, MIGRATIONS_DIR, fixture);
});

/** The queries of the views, as one server writes them. */
async function viewQueries(url: string): Promise<object[]> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const views = await sql`select schemaname, viewname, definition from pg_views
      where schemaname in ('pay', 'pay_internal', 'pay_exposed') order by 1, 2`;
    assert.ok(views.length > 0);
    return [...views];
  } finally {
    await sql.end();
  }
}

async function upgrade(t: Deno.TestContext, folder: string, fixture: Fixture): Promise<void> {
  const [upgraded, made] = [await createEmptyDatabase(), await createEmptyDatabase()];
  try {
    await migrate(upgraded.url, undefined, folder);
    const sql = postgres(upgraded.url, { max: 1, onnotice: () => {} });
    await loadRows(sql, fixture.rows).finally(() => sql.end());
    await t.step("the schema equals that of a new database", async () => {
      await migrate(upgraded.url);
      await migrate(made.url);
      assert.deepEqual(await describeSchema(upgraded.url), await describeSchema(made.url));
      assert.deepEqual(await viewQueries(upgraded.url), await viewQueries(made.url));
    });
    await checkUpgraded(t, upgraded, fixture);
  } finally {
    await upgraded.drop();
    await made.drop();
  }
}

/** Checks the books and lets the service work with the old rows, in one step for each operation. */
async function checkUpgraded(
  t: Deno.TestContext,
  urls: { url: string; functions_url: string },
  fixture: Fixture,
): Promise<void> {
  const service = await openFixtureService(urls, fixture.at_ms + LATER_MS);
  try {
    // A waiting delivery of an old fixture is overdue.
    await t.step(
      "the books are right",
      () => checkBooksOf(service, ["invariant_endless_deliveries"]),
    );
    await t.step(
      "every GET returns the same bytes as before",
      () => checkGets(service, fixture),
    );
    await t.step(
      "a request with a stored response is replayed",
      () => checkReplays(service, fixture),
    );
    await t.step("a refund of an old payment moves money", () => checkRefund(service, fixture));
    await t.step("a waiting delivery arrives", () => checkDelivery(service, fixture));
    await t.step("the books are still right", () => checkBooksOf(service, []));
  } finally {
    await service.close();
  }
}

async function checkBooksOf({ sql }: FixtureService, tolerated: string[]): Promise<void> {
  const verdicts = await checkBooks(sql);
  assert.ok(verdicts.length > 5);
  const broken = verdicts.filter(({ invariant, breaches }) =>
    breaches > 0 && !tolerated.includes(invariant)
  );
  assert.equal(broken.length, 0, `${JSON.stringify(broken, null, 2)}\n${REMEDY}`);
}

async function checkGets(service: FixtureService, { keys, gets }: Fixture): Promise<void> {
  assert.ok(gets.length > 200);
  for (const { key, path, response } of gets) {
    const { text } = await service.call("GET", path, { key: keys[key] });
    assert.equal(withoutState(text), withoutState(response), path);
  }
}

/**
 * Removes the member that shows a present state and not a stored one: the time of a key's last use,
 * which requests of the test change.
 */
function withoutState(text: string): string {
  return text.replaceAll(/"last_used_at":(null|"[^"]*")/g, '"last_used_at":…');
}

async function checkReplays(service: FixtureService, { keys, keyed }: Fixture): Promise<void> {
  for (const { path, idempotency_key, body, status, response } of keyed) {
    const options = { key: keys.sandbox, body, idempotency_key };
    const again = await service.call("POST", path, options);
    assert.deepEqual([again.status, again.text], [status, response], path);
    const other = await service.call("POST", path, {
      ...options,
      body: { ...body as object, metadata: { other: "request" } },
    });
    assert.equal(other.body.error.code, "idempotency_conflict", other.text);
  }
}

async function checkRefund(service: FixtureService, { keys, payment_id }: Fixture): Promise<void> {
  const key = keys.sandbox;
  const euros = async () => {
    const { balances } = await service.done("GET", `${API}/balance`, { key });
    type Balance = { currency: string; account: string; amount_minor: number };
    return balances.find(({ currency, account }: Balance) =>
      currency === "EUR" && account === "available"
    ).amount_minor;
  };
  const before = await euros();
  const amount = 1234;
  await service.done("POST", `${API}/payments/${payment_id}/refund`, { key, body: { amount } });
  assert.equal(await euros(), before - amount);
}

async function checkDelivery(
  service: FixtureService,
  { keys, waiting, at_ms }: Fixture,
): Promise<void> {
  const receiver = openRecorder();
  try {
    await service.done("PUT", `${API}/webhook_endpoints/${waiting.endpoint_id}`, {
      key: keys.sandbox,
      body: { url: receiver.url("/back") },
    });
    await service.settle();
    const arrival = receiver.at("/back").find(({ event }) => event.id === waiting.event_id);
    assert.ok(arrival, "it has not arrived");
    assert.equal(arrival.headers.get("Webhook-Attempt"), "2");
    await verifyWebhook(arrival.bytes, arrival.headers.get("Payment-Signature"), waiting.secret, {
      now_ms: at_ms + LATER_MS,
    });
  } finally {
    await receiver.close();
  }
}
