/** Migrates the database of a data folder. */

import { SettingsError } from "../data_dir/settings.ts";
import { ForeignDatabaseError, migrate } from "./migrate.ts";

/**
 * Applies the missing migrations. Throws `SettingsError` if the database is not of this release or
 * an older one; nothing is changed then.
 */
export async function migrateDataDir(url: string, data_dir: string): Promise<void> {
  try {
    await migrate(url);
  } catch (error) {
    if (!(error instanceof ForeignDatabaseError)) throw error;
    throw new SettingsError(
      `DATA_DIR "${data_dir}": its database ${error.reason}. Nothing was changed: start the ` +
        "version that created it, or set DATA_DIR to a new folder",
    );
  }
}
