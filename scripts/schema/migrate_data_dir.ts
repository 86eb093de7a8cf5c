/** Migrates the embedded server of a data folder. */

import { SettingsError } from "../data_dir/settings.ts";
import { ForeignDatabaseError, migrate } from "./migrate.ts";

/**
 * Brings the databases of a data folder up to date. Errors: `SettingsError` when an older release
 * has not made them; they are then as they were.
 */
export async function migrateDataDir(url: string, data_dir: string): Promise<void> {
  try {
    await migrate(url);
  } catch (error) {
    if (!(error instanceof ForeignDatabaseError)) throw error;
    throw new SettingsError(
      `DATA_DIR "${data_dir}": its database ${error.reason}. Nothing was changed: start the ` +
        "version that made it, or set DATA_DIR to a new folder",
    );
  }
}
