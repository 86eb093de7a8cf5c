/**
 * Programs of others that read bank files: xmllint with the schemas of sepaxml, mock-bank and
 * pyiso20022. `.ci/bank_programs FOLDER` installs all but xmllint, and BANK_PROGRAMS names the
 * folder.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram } from "../common/programs.ts";
import { withTemporaryFolder } from "../common/temporary_folder.ts";
import { outputOf } from "../common/running_command.ts";

const FOLDER = Deno.env.get("BANK_PROGRAMS");
const READER = fileURLToPath(new URL("./read_bank_files.py", import.meta.url));
const XMLLINT = await findProgram(["/usr/bin/xmllint", "/usr/local/bin/xmllint"]);

/** Whether tests with these programs are skipped. In CI a missing program is a failure. */
export const no_bank_programs = (FOLDER === undefined || XMLLINT === null) &&
  Deno.env.get("CI") === undefined;
if (no_bank_programs) {
  console.warn("Tests with readers of bank files are not run unless CI is set: not installed");
}

/** A file to check. */
export type CheckedFile = readonly [name: `${string}.xml`, bytes: Uint8Array];

/**
 * Reads files with all programs. Returns the problems in each. Throws if one of them breaks its
 * schema.
 */
export async function readWithPrograms(
  files: readonly CheckedFile[],
): Promise<Record<string, string[]>> {
  if (FOLDER === undefined || XMLLINT === null) throw new Error("see .ci/bank_programs");
  return await withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder);
    for (const [name, bytes] of files) await Deno.writeFile(join(folder, name), bytes);
    for (const schema of ["pain.001.001.09", "pain.008.001.08"]) {
      const names = files.flatMap(([name, bytes]) => messageOf(bytes) === schema ? [name] : []);
      if (names.length > 0) await checkSchema(XMLLINT, schema, folder, names);
    }
    return JSON.parse(
      await outputOf([join(FOLDER, "bin/python"), READER, folder], { cwd: folder }),
    );
  });
}

function messageOf(bytes: Uint8Array): string | undefined {
  return /:xsd:([a-z0-9.]+)"/.exec(new TextDecoder().decode(bytes))?.[1];
}

async function checkSchema(
  xmllint: string,
  schema: string,
  folder: string,
  names: readonly string[],
): Promise<void> {
  const code = "import sepaxml; print(sepaxml.__path__[0])";
  const package_folder =
    (await outputOf([join(FOLDER!, "bin/python"), "-c", code], { cwd: folder })).trim();
  const path = join(package_folder, "schemas", `${schema}.xsd`);
  await outputOf([xmllint, "--nonet", "--noout", "--schema", path, ...names], { cwd: folder });
}
