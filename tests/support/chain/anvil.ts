/**
 * Starts anvil, a node of a chain that mines by hand. `.ci/anvil FOLDER` installs it. ANVIL names
 * its path; without it the program is looked for in PATH.
 */

import { findProgram, placesOf, startListening } from "../common/programs.ts";

const executable = await findProgram(placesOf("anvil", "ANVIL"));

/** Whether tests with anvil are skipped. In CI a missing program is a failure. */
export const no_anvil = executable === null && Deno.env.get("CI") === undefined;
if (no_anvil) console.warn("Tests with anvil are not run unless CI is set: not installed");

/** A running node. */
export type Anvil = Awaited<ReturnType<typeof startAnvil>>;

/** Starts a node on the loopback. The block tag `finalized` is 4 blocks behind the head. */
export async function startAnvil(
  { chain_id = 31_337, port = 0 }: {
    chain_id?: number;
    /** 0: a free one. */
    port?: number;
  } = {},
) {
  if (executable === null) throw new Error("anvil is not installed: see .ci/anvil");
  const args = [
    ...["--port", `${port}`, "--chain-id", `${chain_id}`],
    ...["--no-mining", "--slots-in-an-epoch", "2"],
  ];
  const { url, close } = await startListening(executable, args, /Listening on (\S+:\d+)/);
  /** Sends a request, and throws if the node responds with an error. */
  const call = <T>(method: string, ...params: unknown[]) => callNode<T>(url, method, params);
  return { url, call, close };
}

async function callNode<T>(url: string, method: string, params: unknown[]): Promise<T> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body });
  const { result, error } = await response.json();
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}
