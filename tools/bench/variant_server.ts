/**
 * The payments function on a port of its own, over the product's database, with one difference:
 *
 *   uncoalesced   each request sends its own statement as soon as a connection is free
 *   seven         a create is one transaction of seven round trips (seven_round_trips.ts)
 *
 * HTTP, validation, rules and log lines are the product's.
 */

import postgres from "postgres";
import { openServerLog, redirectConsole } from "../../apps/server/local/server_log.ts";
import { sandboxOperations } from "./sandbox_operations.ts";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";
import { openDatabase } from "../../shared/store/database.ts";
import { EntryCalls } from "../../shared/store/entry_calls.ts";
import { createStore, type Store } from "../../shared/store/store.ts";
import { onLines, settingsOf, tell } from "../../tests/chaos/process.ts";
import { commitInSevenRoundTrips } from "./seven_round_trips.ts";

/** The variants. */
export type Variant = "uncoalesced" | "seven";

/** The settings of the process. */
export interface VariantSettings {
  variant: Variant;
  database_url: string;
  base_url: string;
  /** File for the log lines. */
  log: string;
}

/** The fastest number for transactions of many round trips; the product has 4. */
const SEVEN_CONNECTIONS = 8;

if (import.meta.main) {
  const { variant, database_url, base_url, log } = settingsOf<VariantSettings>();
  const store = storeOf(variant, database_url);
  const own = createDependencies({ database_url, base_url });
  const response = createPaymentsFunction({
    ...own,
    store,
    operations: sandboxOperations(store, own.sandbox.faults, base_url),
  });
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => {
      tell({ port });
      redirectConsole(openServerLog(log));
    },
  }, response);
  // Ends this process when the benchmark ends.
  onLines(() => {});
}

function storeOf(variant: Variant, database_url: string): Store {
  const database = openDatabase({ url: database_url });
  const calls = new EntryCalls(database);
  if (variant === "uncoalesced") {
    return createStore(database, database, calls, {}, { concurrency: Infinity, most: 1 });
  }
  const sql = postgres(database_url, { max: SEVEN_CONNECTIONS, onnotice: () => {} });
  return { ...createStore(database, database, calls), commit: commitInSevenRoundTrips(sql) };
}
