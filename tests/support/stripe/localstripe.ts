/**
 * Starts localstripe, which comes from PyPI (`pip install localstripe==1.15.10`).
 * LOCALSTRIPE_PYTHON names a Python that has it; the default is `python3`.
 */

import { until } from "../common/until.ts";

/** The Python that runs localstripe. */
export const PYTHON = Deno.env.get("LOCALSTRIPE_PYTHON") || "python3";
/**
 * localstripe's own command listens on every address, and writes its store to one file of the
 * system's temporary folder after each change. Here it serves loopback and keeps only the newest
 * objects, because it reads its whole store for each response.
 */
const SERVE = `
import sys
from aiohttp import web
from localstripe import resources, server

def keep_newest(store):
    for key in list(store)[:-100]:
        store.pop(key)

resources.Store.dump_to_disk = keep_newest
web.run_app(server.app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
`;

/** Whether localstripe is installed. */
export const has_localstripe = await hasLocalstripe();

/** Starts localstripe on a port of loopback, and resolves when it responds. */
export async function startLocalstripe(port: number): Promise<Deno.ChildProcess> {
  const child = new Deno.Command(PYTHON, {
    args: ["-c", SERVE, String(port)],
    stdin: "null",
    stdout: "null",
  }).spawn();
  const responses = () =>
    fetch(`http://127.0.0.1:${port}/`).then((response) => response.body?.cancel())
      .then(() => true, () => false);
  await until("localstripe responds", responses);
  return child;
}

async function hasLocalstripe(): Promise<boolean> {
  const find = "import importlib.util as u, sys; sys.exit(u.find_spec('localstripe') is None)";
  try {
    const command = new Deno.Command(PYTHON, { args: ["-c", find], stderr: "null" });
    return (await command.output()).success;
  } catch {
    return false;
  }
}
