/**
 * A Supabase project whose payments can be exposed: a server that is set up like Supabase's, with
 * the service in the process of the test, which connects as `postgres`.
 */

import assert from "node:assert/strict";
import postgres from "postgres";
import { fileURLToPath } from "node:url";
import { migrate } from "../../../apps/server/migrations/migrate.ts";
import { createApiKey, createEnvironment } from "../database/api_keys.ts";
import { keyedCall } from "../service/keyed_call.ts";
import { openProduct } from "../service/product.ts";
import { startSupabaseServer } from "../supabase/supabase_server.ts";

const REALTIME = fileURLToPath(new URL("supabase_realtime.sql", import.meta.url));
/** A row of a view or of the catalogue. */
// deno-lint-ignore no-explicit-any
export type Row = any;

/** The environments of the project. */
export const ENVIRONMENTS = {
  /** The sandbox of the account acme. */
  test: { id: `env_${"1".repeat(26)}`, account: "acme", livemode: false },
  live: { id: `env_${"2".repeat(26)}`, account: "acme", livemode: true },
  other: { id: `env_${"3".repeat(26)}`, account: "other", livemode: false },
} as const;
type Name = keyof typeof ENVIRONMENTS;

/** The running project. */
export type ExposedProject = Awaited<ReturnType<typeof openExposedProject>>;

/** Starts the project. */
export async function openExposedProject(version: 15 | 17) {
  await using opening = new AsyncDisposableStack();
  const server = opening.use(await startSupabaseServer(version));
  const notices: string[] = [];
  const options = {
    max: 1,
    onnotice: ({ message }: postgres.Notice) => void notices.push(message!),
  };
  const admin = postgres(server.admin_url, options);
  opening.defer(() => admin.end());
  const deployer = postgres(server.url, options);
  opening.defer(() => deployer.end());
  await admin.unsafe(await Deno.readTextFile(REALTIME)).simple();
  await migrate(server.url);
  const keys = {} as Record<Name, string>;
  for (const [name, { id, account, livemode }] of Object.entries(ENVIRONMENTS)) {
    await createEnvironment(deployer, { id, account, livemode });
    const key = { id: id.replace("env_", "key_"), environment_id: id, livemode };
    keys[name as Name] = await createApiKey(deployer, key);
  }
  const product = openProduct({
    database_url: server.url,
    base_url: "http://127.0.0.1:54321/functions/v1",
    webhook_master_secret: "master secret of the test service, 32 bytes and more",
  });
  opening.defer(() => product.close());
  /** Calls the service with the key of an environment. Fails unless the response is a success. */
  const call = async (path: string, body: object, of: Name = "test"): Promise<Row> => {
    const response = await keyedCall(product, "POST", `/${path}`, { key: keys[of], body });
    assert.ok(response.status < 300, response.text);
    return response.body;
  };
  const kept = opening.move();
  return {
    /** As `postgres`, the role that deploys. It is no superuser. */
    deployer,
    /** As the superuser `supabase_admin`. */
    admin,
    admin_url: server.admin_url,
    /** Calls a function: `/<function>/…`. */
    fetch: (request: Request) => product.fetch(request),
    /** The API key of the sandbox of acme. */
    test_key: keys.test,
    call,
    /** Creates a payment of 1000 EUR cents. */
    pay: (body: object = {}, of: Name = "test") =>
      call("api-v1-payments/v1/payments", {
        amount: 1000,
        currency: "EUR",
        outcome: "success",
        ...body,
      }, of),
    /** Runs a statement as PostgREST does: as a role, for the user of a token. */
    as: (role: string, sub: string | null, statement: string) =>
      admin.begin(async (sql): Promise<Row[]> => {
        const claims = JSON.stringify({ role, ...(sub !== null && { sub }) });
        await sql`select set_config('request.jwt.claims', ${claims}, true)`;
        await sql.unsafe(`set local session authorization authenticator; set local role ${role}`);
        return [...await sql.unsafe(statement)];
      }),
    /** Messages that the statements of `as` and of the deployer have raised. */
    notices,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
