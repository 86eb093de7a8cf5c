/** Imports between the rooms of shared/ follow the arrows of the diagram in docs/architecture.md. */

import assert from "node:assert/strict";
import { posix } from "node:path";
import { projectFiles, readProjectFile } from "./project_files.ts";

/** The room of a file: its first two folders. */
const roomOf = (path: string) => path.split("/").slice(0, 2).join("/");

const page = await readProjectFile("docs/architecture.md");
const [, diagram = ""] = /```mermaid\nflowchart LR\n(.*?)```/s.exec(page) ?? [];
const rooms = [...diagram.matchAll(/\["((?:shared|supabase)\/\w+)"\]/g)].map(([, room]) => room!);

Deno.test("the diagram of the rooms shows every folder of shared/", async () => {
  const paths = (await projectFiles([".ts"])).filter((path) => path.startsWith("shared/"));
  const shown = rooms.filter((room) => room.startsWith("shared/"));
  assert.deepEqual(shown.sort(), [...new Set(paths.map(roomOf))].sort());
});

Deno.test("imports follow the arrows of the diagram, or stay in their room", async () => {
  const against: string[] = [];
  for (const path of await projectFiles([".ts"])) {
    const from = rooms.indexOf(roomOf(path));
    if (from === -1) continue;
    for (const [, target] of (await readProjectFile(path)).matchAll(/ from "(\.[^"]+)"/g)) {
      const imported = posix.join(posix.dirname(path), target!);
      const to = rooms.indexOf(roomOf(imported));
      if (to < from) against.push(`${path} imports ${imported}`);
    }
  }
  assert.deepEqual(against, []);
});
