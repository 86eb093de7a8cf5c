/** Programs of the system that tests start. */

/** Returns the first of the paths at which a program is installed, or null. */
export async function findProgram(places: readonly string[]): Promise<string | null> {
  for (const path of places) {
    if (await Deno.stat(path).then(() => true, () => false)) return path;
  }
  return null;
}

/** Reports whether a program takes connections at a loopback port. */
export async function listens(port: number): Promise<boolean> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port }).catch(() => null);
  connection?.close();
  return connection !== null;
}
