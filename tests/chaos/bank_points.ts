/** The steps of exports and imports at which the run with a bank kills processes. */

import type { StatementPoint } from "./statement_point.ts";

/** A statement, and the work in which it comes. */
interface Step extends Omit<StatementPoint, "wait_ms"> {
  during: "orders" | "export" | "import";
}

/** A step at which a process is killed. */
export interface BankKillPoint extends Step {
  name: string;
  /** Whether the operator's command does the work, or a bridge. */
  by_command: boolean;
  victim: "command" | "servers" | "PostgreSQL";
}

const RECORD: Step = { during: "orders", table: "provider_events", text: "pay.record(" };
const STORE_FILES: Step = {
  during: "export",
  table: "bank_exports",
  text: "pay.store_bank_exports(",
};
const NOTE_FILE: Step = { during: "export", table: "bank_exports", text: "pay.note_bank_export(" };
const STORE_ENTRIES: Step = {
  during: "import",
  table: "bank_entries",
  text: "pay.store_bank_rows(",
};
const IMPORT_WHOLE: Step = {
  during: "import",
  table: "bank_entries",
  text: "pay.import_bank_file(",
};
const END_IMPORT: Step = { during: "import", table: "provider_totals", text: "pay.end_bank_file(" };

/** The points (docs/reliability.md, R14). */
export const BANK_KILL_POINTS: readonly BankKillPoint[] = [
  { name: "command, files not stored", ...STORE_FILES, by_command: true, victim: "command" },
  { name: "command, file not noted", ...NOTE_FILE, by_command: true, victim: "command" },
  { name: "command, entries not stored", ...STORE_ENTRIES, by_command: true, victim: "command" },
  { name: "command, import not ended", ...END_IMPORT, by_command: true, victim: "command" },
  { name: "servers, order not recorded", ...RECORD, by_command: false, victim: "servers" },
  { name: "servers, files stored", ...STORE_FILES, by_command: false, victim: "servers" },
  { name: "servers, import stored", ...IMPORT_WHOLE, by_command: false, victim: "servers" },
  { name: "PostgreSQL, export", ...STORE_FILES, by_command: false, victim: "PostgreSQL" },
  { name: "PostgreSQL, import", ...STORE_ENTRIES, by_command: true, victim: "PostgreSQL" },
];
