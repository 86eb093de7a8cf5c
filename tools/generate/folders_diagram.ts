/** The diagram of the folders in docs/architecture.md, from the arrows that `deno lint` checks. */

import { ARROWS } from "../lint/imports.ts";

/** The name of a folder's node: its last step; that of the entry is `index`. */
const nameOf = (folder: string) =>
  folder.startsWith("supabase/") ? "index" : folder.split("/").at(-1)!;

/** Returns the diagram in Markdown. */
export function renderFoldersDiagram(): string {
  const isInner = (folder: string) => folder.startsWith("shared/domain/");
  const folders = Object.keys(ARROWS);
  const node = (folder: string) => `${nameOf(folder)}["${folder}"]`;
  const draw = (from: string) => ARROWS[from]!.map((to) => `  ${nameOf(from)} --> ${nameOf(to)}`);
  const outer = folders.filter((folder) => !isInner(folder));
  const inner = folders.filter(isInner);
  return [
    "```mermaid",
    "flowchart LR",
    ...outer.map((folder) => `  ${node(folder)}`),
    '  database[("supabase/schemas<br>supabase/migrations")]',
    ...outer.flatMap(draw),
    "  store -->|SQL| database",
    '  subgraph inside ["inside shared/domain"]',
    ...inner.map((folder) => `    ${node(folder)}`),
    ...inner.flatMap(draw).map((line) => `  ${line}`),
    "  end",
    "```",
  ].join("\n");
}
