/** The steps of exports and imports at which the run with a bank kills processes. */

import type { StatementPoint } from "../../harness/killer.ts";

/** A statement, and the work in which it comes. */
interface Step extends Pick<StatementPoint, "table" | "text"> {
  during: "orders" | "export" | "import";
}

/** A step at which a process is killed. */
export interface BankKillPoint extends Step {
  name: string;
  victim: "command" | "servers" | "PostgreSQL";
  /** Whether the operator's command does the work, or a bridge. */
  by_command: boolean;
}

const STEPS = {
  record: { during: "orders", table: "provider_events", text: "pay.record(" },
  store_files: { during: "export", table: "bank_exports", text: "pay.store_bank_exports(" },
  note_file: { during: "export", table: "bank_exports", text: "pay.note_bank_export(" },
  store_entries: { during: "import", table: "bank_entries", text: "pay.store_bank_rows(" },
  import_whole: { during: "import", table: "bank_entries", text: "pay.import_bank_file(" },
  end_import: { during: "import", table: "provider_totals", text: "pay.end_bank_file(" },
} as const satisfies Record<string, Step>;

/** The points (docs/reliability.md, R14). */
export const BANK_KILL_POINTS: readonly BankKillPoint[] = [
  point("command, files not stored", "store_files"),
  point("command, file not noted", "note_file"),
  point("command, entries not stored", "store_entries"),
  point("command, import not ended", "end_import"),
  point("servers, order not recorded", "record"),
  point("servers, files stored", "store_files"),
  point("servers, import stored", "import_whole"),
  point("PostgreSQL, export", "store_files"),
  point("PostgreSQL, import", "store_entries"),
];

function point(name: string, step: keyof typeof STEPS): BankKillPoint {
  const victim = name.split(",")[0] as BankKillPoint["victim"];
  // A bridge imports a file by one statement, and the command by several.
  const by_command = victim === "command" || step === "store_entries";
  return { name, ...STEPS[step], victim, by_command };
}
