/** Runs the programs of the documents in other languages than the shell, as their reader does. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { readCloneDocument } from "./clone_documents.ts";
import { codeBlocks } from "./readme_document.ts";

/** A whole program of a document. */
interface Program {
  document: string;
  /** Language of its block. */
  fence: string;
  file: string;
  /** The command of the document, without the file. */
  command: readonly [string, ...string[]];
}

/** Every program that prints the payment of the key `order-1043`. */
export const PROGRAMS: readonly Program[] = [
  {
    document: "README.md",
    fence: "ts",
    file: "pay.ts",
    command: [Deno.execPath(), "run", "--no-lock", "--check", "-A"],
  },
  { document: "README.md", fence: "python", file: "pay.py", command: ["python3"] },
  { document: "docs/clients.md", fence: "go", file: "pay.go", command: ["go", "run"] },
];

/**
 * Runs a program in a folder that holds `packages/client/` and `.local/`, like a clone, and returns the
 * payment that it prints.
 */
export async function runProgram(
  { document, fence, file, command: [name, ...args] }: Program,
  folder: string,
): Promise<{ id: string | undefined; status: string | undefined }> {
  const page = await readCloneDocument(document);
  const blocks = codeBlocks(page).filter(({ language }) => language === fence);
  assert.equal(blocks.length, 1, `${fence} blocks of ${document}`);
  assert.ok(page.includes(` ${file}\``), `${document} does not say how to run ${file}`);
  await Deno.writeTextFile(join(folder, file), blocks[0]!.text);
  const { code, stdout, stderr } = await new Deno.Command(name, {
    args: [...args, file],
    cwd: folder,
    env: { NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1" },
    stdin: "null",
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  const printed = new TextDecoder().decode(stdout);
  const [id] = /pay_[0-9a-z]{26}/.exec(printed) ?? [];
  const [, status] = /\b(?:"status":")?(completed|declined|failed)\b/.exec(printed) ?? [];
  return { id, status };
}
