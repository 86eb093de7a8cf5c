/**
 * The payments function on a port of its own, over the product's database, with one thing different:
 *
 *   uncoalesced   each request sends its own statement as soon as a connection is free
 *   seven         a create is one transaction of seven round trips (seven_round_trips.ts)
 *   profiled      nothing; `POST /profile/start` and `POST /profile/stop` run V8's sampling profiler
 *
 * Everything else is the product's: HTTP, validation, rules, log lines to a file.
 */

import { Session } from "node:inspector/promises";
import { join } from "node:path";
import postgres from "postgres";
import { ChangeWriter } from "../shared/domain/changes/change_writer.ts";
import { createPayments } from "../shared/domain/payments/payments.ts";
import { createDependencies } from "../shared/http/dependencies.ts";
import { createPaymentsFunction } from "../shared/http/payments_function.ts";
import { openDatabase } from "../shared/store/database.ts";
import { EntryCalls } from "../shared/store/entry_calls.ts";
import { createStore, type Store } from "../shared/store/store.ts";
import { openServerLog, redirectConsole } from "../scripts/local/server_log.ts";
import { commitInSevenRoundTrips } from "./seven_round_trips.ts";

/** The variants. */
export type Variant = "uncoalesced" | "seven" | "profiled";

/** As many as were fastest for transactions of many round trips; the product has 4. */
const SEVEN_CONNECTIONS = 8;

if (import.meta.main) await serve(Deno.args[0] as Variant);

async function serve(variant: Variant): Promise<void> {
  const database_url = Deno.env.get("BENCH_DATABASE_URL")!;
  const base_url = Deno.env.get("BENCH_BASE_URL")!;
  const database = openDatabase({ url: database_url });
  const store = storeOf(variant, database_url, database);
  const answer = createPaymentsFunction({
    ...createDependencies({ database_url, base_url }),
    store,
    payments: createPayments({ store, changes: new ChangeWriter(store), base_url }),
  });
  const profiler = new Session();
  profiler.connect();
  const folder = await Deno.makeTempDir({ prefix: "payments-variant-" });
  Deno.addSignalListener("SIGTERM", () => {
    Deno.removeSync(folder, { recursive: true });
    Deno.exit(0);
  });
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen: ({ port }) => {
      Deno.stdout.writeSync(new TextEncoder().encode(`${port}\n`));
      redirectConsole(openServerLog(join(folder, "server.log")));
    },
  }, async (request) => {
    if (variant === "profiled" && request.url.endsWith("/profile/start")) {
      await profiler.post("Profiler.enable");
      await profiler.post("Profiler.start");
      return new Response();
    }
    if (variant === "profiled" && request.url.endsWith("/profile/stop")) {
      return Response.json(await profiler.post("Profiler.stop"));
    }
    return await answer(request);
  });
}

function storeOf(
  variant: Variant,
  database_url: string,
  database: ReturnType<typeof openDatabase>,
): Store {
  const calls = new EntryCalls(database);
  if (variant === "uncoalesced") {
    return createStore(database, database, calls, () => {}, { under_way: Infinity, requests: 1 });
  }
  const store = createStore(database, database, calls);
  if (variant === "profiled") return store;
  const sql = postgres(database_url, { max: SEVEN_CONNECTIONS, onnotice: () => {} });
  return { ...store, commit: commitInSevenRoundTrips(sql) };
}
