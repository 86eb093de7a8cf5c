/** Runs programs to their end. */

/** The end of a program's output that the message of a failure shows. */
const SHOWN = 5_000;

/** Runs a program and returns its standard output. Throws with all its output if it fails. */
export async function outputOf(
  [program, ...args]: readonly string[],
  options: Omit<Deno.CommandOptions, "args"> = {},
): Promise<string> {
  const command = new Deno.Command(program!, { stdin: "null", ...options, args });
  const { success, stdout, stderr } = await command.output();
  const [output, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  if (!success) throw new Error(`${program} failed:\n${`${output}\n${errors}`.slice(-SHOWN)}`);
  return output!;
}
