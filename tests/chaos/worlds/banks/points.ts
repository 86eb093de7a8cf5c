/** The steps of exports and imports at which the run with a bank kills processes (R14). */

type Point = [
  name: string,
  victim: "command" | "servers" | "PostgreSQL",
  during: "orders" | "export" | "import",
  table: string,
  text: string,
  /** Whether the operator's command does the work, or a bridge. */
  by_command: boolean,
];

const POINTS: readonly Point[] = [
  ["files not stored", "command", "export", "bank_exports", "pay.store_bank_exports(", true],
  ["file not noted", "command", "export", "bank_exports", "pay.note_bank_export(", true],
  ["entries not stored", "command", "import", "bank_entries", "pay.store_bank_rows(", true],
  ["import not ended", "command", "import", "provider_totals", "pay.end_bank_file(", true],
  ["order not recorded", "servers", "orders", "provider_events", "pay.record(", false],
  ["files stored", "servers", "export", "bank_exports", "pay.store_bank_exports(", false],
  ["import stored", "servers", "import", "bank_entries", "pay.import_bank_file(", false],
  ["export", "PostgreSQL", "export", "bank_exports", "pay.store_bank_exports(", false],
  // A bridge imports a file by one statement, and the command by several.
  ["import", "PostgreSQL", "import", "bank_entries", "pay.store_bank_rows(", true],
];

export const BANK_KILL_POINTS = POINTS.map(([step, victim, during, table, text, by_command]) => ({
  ...{ name: `${victim}, ${step}`, victim, during, table, text, by_command },
}));
export type BankKillPoint = typeof BANK_KILL_POINTS[number];
