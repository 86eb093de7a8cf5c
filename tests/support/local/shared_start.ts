/**
 * The local start that the tests of a worker share, because its launch takes longer than most of
 * them. It ends after the last one. Each test has an account of its own, and sees no other.
 */

import { idGenerator } from "../../../shared/core/ids.ts";
import { createApiKey, createEnvironment } from "../database/api_keys.ts";
import { cloneDatabase, connect } from "../database/database.ts";
import { keyedCall } from "../service/keyed_call.ts";
import { launchStart } from "./local_start.ts";

/** A start with the test key of an account. */
export type SharedStart = Awaited<ReturnType<typeof openAccount>>;

let launched: ReturnType<typeof launch> | undefined;
let accounts = 0;

Deno.test.afterAll(end);

/** Makes an account at the start of this worker, and launches the start for the first one. */
export async function openAccount() {
  launched ??= launch();
  launched.catch(() => launched = undefined);
  const { start: { base_url, data_dir, output }, sql } = await launched;
  const account = `demo ${++accounts}`;
  const newId = idGenerator(Date.now());
  const environment_id = newId("env_");
  await createEnvironment(sql, {
    ...{ id: environment_id, account, livemode: false, name: "Demo sandbox" },
  });
  const test_key = await createApiKey(sql, {
    ...{ id: newId("key_"), environment_id, livemode: false, name: "Demo key" },
  });
  return {
    ...{ account, base_url, test_key, sql },
    /** The folder and the output of the start, with the keys of its own account. */
    ...{ data_dir, output },
    /** Sends a request to `base_url` + path with the test key. */
    call: (method: string, path: string, body?: unknown) =>
      keyedCall(base_url, method, path, { key: test_key, body }),
  };
}

async function launch() {
  await using open = new AsyncDisposableStack();
  // A copy of the template is ready sooner than a server of the start's own.
  const database = open.use(await cloneDatabase());
  const sql = open.use(connect(database.url));
  const data_dir = await Deno.makeTempDir({ prefix: "payments-test-" });
  open.defer(() => Deno.remove(data_dir, { recursive: true }));
  const start = await launchStart({ DATA_DIR: data_dir, DATABASE_URL: database.url });
  open.defer(async () => void await start.end());
  return { start, sql, resources: open.move() };
}

async function end(): Promise<void> {
  const running = await launched?.catch(() => undefined);
  launched = undefined;
  await running?.resources.disposeAsync();
}
