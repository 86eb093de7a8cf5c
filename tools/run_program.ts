/** Runs programs, such as git and npm. */

interface Surroundings {
  cwd: string;
  env?: Readonly<Record<string, string>>;
}

/** Runs a program and returns its standard output. Throws with its output if it fails. */
export async function runProgram(
  [program, ...args]: readonly string[],
  { cwd, env }: Surroundings,
): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program!, {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", npm_config_update_notifier: "false", ...env },
    stdin: "null",
  }).output();
  const [printed, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  if (!success) throw new Error(`${program} ${args.join(" ")} failed:\n${printed}${errors}`);
  return printed!;
}

/** Runs a program of an npm package, such as "publint@0.3.25", which npm fetches. */
export async function runNpmProgram(
  npm_package: string,
  command: readonly string[],
  surroundings: Surroundings,
): Promise<string> {
  const fetch = ["npm", "exec", "--yes", `--package=${npm_package}`, "--"];
  return await runProgram([...fetch, ...command], surroundings);
}

/** Packs a folder as npm would publish it. Returns the path of the archive in `parent`. */
export async function packFolder(folder: string, parent: string): Promise<string> {
  const printed = await runProgram(["npm", "pack", "--silent", folder], { cwd: parent });
  return `${parent}/${printed.trim().split("\n").at(-1)!}`;
}
