/** Tables of Markdown, formatted as by `deno fmt`. */

/** Returns the lines of a table. The first column is code. */
export function renderTable(head: readonly string[], rows: readonly string[][]): string[] {
  const cells = [[...head], ...rows.map(([first, ...rest]) => [`\`${first}\``, ...rest])];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const line = (row: readonly string[], fill = " ") =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!, fill)).join(" | ")} |`;
  return [
    line(cells[0]!),
    line(head.map(() => ""), "-"),
    ...cells.slice(1).map((row) => line(row)),
  ];
}
