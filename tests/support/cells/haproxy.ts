/** Runs HAProxy with the configuration of examples/cells in front of two cells. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../common/free_port.ts";
import { findProgram, listens } from "../common/programs.ts";
import { until } from "../common/until.ts";

const EXAMPLE = fileURLToPath(new URL("../../../examples/cells/", import.meta.url));
const PLACES = ["/usr/sbin/haproxy", "/usr/bin/haproxy", "/usr/local/sbin/haproxy"];

/** The addresses of the cells, `127.0.0.1:<port>`. */
interface Cells {
  a: string;
  b: string;
}

/** A running proxy. */
interface Haproxy {
  /** `http://127.0.0.1:<port>` */
  origin: string;
  close(): Promise<void>;
}

/** Returns the path of the program, or null if it is not installed. */
export function findHaproxy(): Promise<string | null> {
  return findProgram(PLACES);
}

/** Starts the proxy with the map of the example, and resolves when it takes connections. */
export async function startHaproxy(cells: Cells): Promise<Haproxy> {
  const program = await findHaproxy();
  if (program === null) throw new Error("haproxy is not installed");
  const folder = await Deno.makeTempDir({ prefix: "payments-haproxy-" });
  const port = freePort();
  const child = new Deno.Command(program, {
    args: ["-db", "-q", "-f", join(EXAMPLE, "haproxy.cfg")],
    env: {
      CELLS_BIND: `127.0.0.1:${port}`,
      CELLS_SOCKET: join(folder, "admin.sock"),
      CELLS_MAP: join(EXAMPLE, "cells.map"),
      CELL_A: cells.a,
      CELL_B: cells.b,
    },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const words = new Response(child.stderr).text();
  let has_ended = false;
  const ended = child.status.then(() => has_ended = true);
  const close = async () => {
    if (!has_ended) child.kill("SIGKILL");
    await ended;
    await words;
    await Deno.remove(folder, { recursive: true });
  };
  await until("haproxy listens", async () => has_ended || await listens(port));
  if (has_ended) throw new Error(`haproxy did not start: ${await words}`);
  return { origin: `http://127.0.0.1:${port}`, close };
}
