/**
 * Starts anvil, a node of a chain that mines by hand. `.ci/anvil FOLDER` installs it. ANVIL names
 * its path; without it the program is looked for in PATH.
 */

import { delimiter, join } from "node:path";

const executable = await findAnvil();

/** Whether tests with anvil are skipped. In CI a missing program is a failure. */
export const no_anvil = executable === null && Deno.env.get("CI") === undefined;
if (no_anvil) console.warn("Tests with anvil are not run unless CI is set: not installed");

/** A running node. */
export interface Anvil {
  url: string;
  /** Sends a request, and throws if the node responds with an error. */
  call<T>(method: string, ...params: unknown[]): Promise<T>;
  close(): Promise<void>;
}

/** Starts a node on the loopback. The block tag `finalized` is 4 blocks behind the head. */
export async function startAnvil(
  { chain_id = 31_337, port = 0 }: {
    chain_id?: number;
    /** 0: a free one. */
    port?: number;
  } = {},
): Promise<Anvil> {
  if (executable === null) throw new Error("anvil is not installed: see .ci/anvil");
  const child = new Deno.Command(executable, {
    args: [
      ...["--port", `${port}`, "--chain-id", `${chain_id}`],
      ...["--no-mining", "--slots-in-an-epoch", "2"],
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  let address: string | undefined;
  while (address === undefined) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`anvil has ended: ${text}`);
    text += value;
    address = /Listening on (\S+:\d+)/.exec(text)?.[1];
  }
  // It logs each request; the pipe must not fill.
  const drained = (async () => {
    while (!(await reader.read()).done);
  })();
  const url = `http://${address}`;
  return {
    url,
    call: (method, ...params) => callNode(url, method, params),
    async close() {
      child.kill("SIGKILL");
      await child.status;
      await drained;
    },
  };
}

async function callNode<T>(url: string, method: string, params: unknown[]): Promise<T> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body });
  const { result, error } = await response.json();
  if (error) throw new Error(`${method}: ${error.message}`);
  return result;
}

async function findAnvil(): Promise<string | null> {
  const named = Deno.env.get("ANVIL");
  const folders = (Deno.env.get("PATH") ?? "").split(delimiter).filter((path) => path !== "");
  for (const path of named ? [named] : folders.map((folder) => join(folder, "anvil"))) {
    if (await Deno.stat(path).then((info) => info.isFile, () => false)) return path;
  }
  return null;
}
