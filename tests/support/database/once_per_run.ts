/** Work that is done once for all test files of a run. */

import { join } from "node:path";
import { testServer } from "./database.ts";

/** The first caller makes the text of this name. Later callers wait for it, and get the same one. */
export async function oncePerRun(name: string, make: () => Promise<string>): Promise<string> {
  const path = join(testServer().folder, name);
  using file = await Deno.open(path, { create: true, append: true });
  await file.lock(true);
  const found = await Deno.readTextFile(path);
  if (found !== "") return found;
  const made = await make();
  await Deno.writeTextFile(path, made);
  return made;
}
