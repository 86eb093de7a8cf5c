/** A connection to PostgreSQL for one task. */

import postgres from "postgres";
import { driverEncryption } from "../../../shared/store/database_encryption.ts";

/** Opens a connection, which `await using` ends. It takes the options of the driver. */
export function openConnection(
  url: string,
  options: postgres.Options<Record<string, never>> = {},
): postgres.Sql & AsyncDisposable {
  const encryption = driverEncryption(url);
  const sql = postgres(url, { max: 1, prepare: false, onnotice() {}, ...encryption, ...options });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end() });
}
