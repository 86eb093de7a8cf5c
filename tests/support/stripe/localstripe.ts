/**
 * Starts localstripe, which comes from PyPI (`pip install localstripe==1.15.10`).
 * LOCALSTRIPE_PYTHON names a Python that has it; the default is `python3`.
 */

import { startListening } from "../common/programs.ts";
import { runCommand } from "../common/running_command.ts";

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
web.run_app(server.app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None)
`;

const FIND = "import importlib.util as u, sys; sys.exit(u.find_spec('localstripe') is None)";
/** Whether localstripe is installed. */
export const has_localstripe = await Promise.try(() => runCommand({ args: [PYTHON, "-c", FIND] }))
  .then(({ code }) => code === 0, () => false);

/** Starts localstripe on a port of loopback. */
export function startLocalstripe(port: number) {
  return startListening(PYTHON, ["-u", "-c", SERVE, `${port}`], /Running on http:..(\S+)/);
}
