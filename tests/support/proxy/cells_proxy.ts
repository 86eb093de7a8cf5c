/** Runs HAProxy with the configuration of examples/cells in front of two cells. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../common/free_port.ts";
import { runHaproxy } from "./haproxy.ts";

const EXAMPLE = fileURLToPath(new URL("../../../examples/cells/", import.meta.url));

/** A proxy in front of cells. */
export type CellsProxy = Awaited<ReturnType<typeof startHaproxy>>;

/**
 * Starts the proxy, and resolves when it takes connections.
 * @param cells their addresses, `127.0.0.1:<port>`
 * @param map the lines of the map file, by default those of the example
 */
export async function startHaproxy(cells: { a: string; b: string }, map?: string) {
  const folder = await Deno.makeTempDir({ prefix: "payments-haproxy-" });
  const port = freePort();
  const map_file = join(folder, "cells.map");
  const socket = join(folder, "admin.sock");
  await Deno.writeTextFile(map_file, map ?? await Deno.readTextFile(join(EXAMPLE, "cells.map")));
  const proxy = await runHaproxy(join(EXAMPLE, "haproxy.cfg"), port, {
    CELLS_BIND: `127.0.0.1:${port}`,
    CELLS_SOCKET: socket,
    CELLS_MAP: map_file,
    CELL_A: cells.a,
    CELL_B: cells.b,
  });
  return {
    origin: `http://127.0.0.1:${port}`,
    map_file,
    /** The socket through which the map is changed. */
    socket,
    async close() {
      await proxy.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}
