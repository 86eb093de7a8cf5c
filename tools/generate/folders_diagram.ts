/** The diagram of the folders in docs/architecture.md, from the arrows that `deno lint` checks. */

import { ARROWS } from "../lint/imports.ts";

/** The name of a folder's node: its last step; that of the entry is `index`. */
const nameOf = (folder: string) =>
  folder.startsWith("supabase/") ? "index" : folder.split("/").at(-1)!;

/** Returns the diagram in Markdown. A node has its label where it stands first. */
export function renderFoldersDiagram(): string {
  const named = new Set<string>();
  const node = (folder: string) => {
    if (named.has(folder)) return nameOf(folder);
    named.add(folder);
    return `${nameOf(folder)}["${folder}"]`;
  };
  const isInner = (folder: string) => folder.startsWith("shared/domain/");
  const draw = (is_inner: boolean) =>
    Object.entries(ARROWS).filter(([from]) => isInner(from) === is_inner).flatMap((
      [from, targets],
    ) => targets.map((to) => `  ${node(from)} --> ${node(to)}`));
  return [
    "```mermaid",
    "flowchart LR",
    ...draw(false),
    '  store -->|SQL| database[("supabase/schemas<br>supabase/migrations")]',
    '  subgraph inside ["inside shared/domain"]',
    ...draw(true).map((line) => `  ${line}`),
    "  end",
    "```",
  ].join("\n");
}
