/** The table of faults and of the test file that notices each: `tools/mutants/noticed.json`. */

import { fileURLToPath } from "node:url";
import type { Fault, FaultKind } from "./faults.ts";

export interface NoticedFault {
  kind: FaultKind;
  name: string;
  change: string;
  place: string;
  /** A test file that fails with the fault; null if none of those tried does. */
  noticed_by: string | null;
  level: "pure" | "database" | null;
}

const PATH = fileURLToPath(new URL("noticed.json", import.meta.url));

export async function readTable(): Promise<Map<string, NoticedFault>> {
  const text = await Deno.readTextFile(PATH).catch(() => "[]");
  return new Map((JSON.parse(text) as NoticedFault[]).map((row) => [row.name, row]));
}

export function writeTable(table: ReadonlyMap<string, NoticedFault>): void {
  const rows = [...table.values()].sort((a, b) =>
    a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind < b.kind ? -1 : 1
  );
  // At once, because several searches write it.
  Deno.writeTextFileSync(PATH, `[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]\n`);
}

export function rowOf(
  { kind, name, change, place }: Fault,
  by: { file: string; level: "pure" | "database" } | null,
): NoticedFault {
  return { kind, name, change, place, noticed_by: by?.file ?? null, level: by?.level ?? null };
}

/** Renders counts by kind and folder: planted, noticed, by pure tests, by tests with a database. */
export function summary(rows: Iterable<NoticedFault>): string {
  const groups = Map.groupBy(rows, ({ kind, place }) => {
    const folder = kind === "sql" ? "tables" : place.split("/").slice(0, 2).join("/");
    return `${kind.padEnd(7)} ${folder}`;
  });
  const lines = [...groups].sort(([a], [b]) => a < b ? -1 : 1).map(([key, group]) => {
    const [pure, database] = ["pure", "database"].map((level) =>
      group.filter((row) => row.level === level).length
    );
    const noticed = group.filter(({ noticed_by }) => noticed_by !== null).length;
    return `${key.padEnd(28)} ${group.length} planted, ${noticed} noticed: ` +
      `${pure} by pure tests, ${database} with a database`;
  });
  return lines.join("\n");
}
