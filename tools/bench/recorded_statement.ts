/**
 * Records the statements of a request: the product's function handles the request over a database
 * that stores each statement. So pgbench always issues the product's current SQL and parameters.
 */

import { formatTime } from "../../shared/core/clock.ts";
import { type Database, openDatabase } from "../../shared/store/database.ts";
import { EntryCalls } from "../../shared/store/entry_calls.ts";
import { Store } from "../../shared/store/store.ts";
import { sandboxOperations } from "./sandbox_operations.ts";
import { createDependencies } from "../../shared/functions/dependencies.ts";
import { createPaymentsFunction } from "../../shared/functions/payments_function.ts";

/** One sent statement. */
export interface RecordedStatement {
  text: string;
  parameters: readonly (string | number | null)[];
  /** The request's time as the parameters contain it. */
  at: string;
}

/** The response to a recorded request, and its statements. */
interface Recording {
  status: number;
  replayed: boolean;
  body: string;
  statements: RecordedStatement[];
}

/** Records requests to `api-v1-payments`. They change the database. */
interface Recorder {
  record(request: Request): Promise<Recording>;
  close(): Promise<void>;
}

/** The random part of every id of a recorded request; it marks ids in the parameters. */
export const RECORDED_RANDOM = "y".repeat(16);
/** Makes the 31st character of the ids' alphabet, y. */
const RANDOM_BYTE = 30;

/** Opens a recorder on the product's database. */
export function openRecorder(database_url: string, base_url: string): Recorder {
  let statements: RecordedStatement[] = [];
  let at_ms = Date.now();
  const at = () => formatTime(at_ms);
  const database = openDatabase({ url: database_url, max_connections: 1 });
  const recording: Database = {
    ...database,
    query(text, parameters) {
      statements.push({ text, parameters, at: at() });
      return database.query(text, parameters);
    },
    attempt(text, parameters) {
      statements.push({ text, parameters, at: at() });
      return database.attempt(text, parameters);
    },
  };
  const store = new Store(recording, recording, new EntryCalls(recording));
  const own = createDependencies({
    database_url,
    base_url,
    clock: () => at_ms,
    random: (bytes) => bytes.fill(RANDOM_BYTE),
    log: () => {},
  });
  const respond = createPaymentsFunction({
    ...own,
    store,
    operations: sandboxOperations(store, own.sandbox.faults, base_url),
  });
  return {
    async record(request) {
      statements = [];
      at_ms = Date.now();
      const response = await respond(request);
      const body = await response.text();
      const replayed = response.headers.has("Idempotent-Replayed");
      return { status: response.status, replayed, body, statements };
    },
    async close() {
      await database.close();
      await own.close();
    },
  };
}
