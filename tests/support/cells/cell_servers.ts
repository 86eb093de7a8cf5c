/**
 * Two cells as an operator has them: each is a PostgreSQL server of its own with the roles of
 * Supabase, so that no superuser moves an account, and a process with both functions. HAProxy with
 * the configuration of examples/cells stands in front.
 */

import { fileURLToPath } from "node:url";
import { idGenerator } from "../../../shared/core/ids.ts";
import { migrate } from "../../../apps/server/migrations/migrate.ts";
import { launchCommand, type RunningCommand } from "../common/running_command.ts";
import { createApiKey, createEnvironment } from "../database/api_keys.ts";
import { launchServer } from "../service/server_process.ts";
import { type Disks, startSupabaseServer } from "../supabase/supabase_server.ts";
import { startHaproxy } from "../proxy/cells_proxy.ts";
import { connect } from "../database/database.ts";

const OPERATOR = fileURLToPath(new URL("../../../apps/operator/operator.ts", import.meta.url));
/** An attempt is over before, also on a slow machine: otherwise it is made again. */
const LEASE_MS = 10_000;
/** So that the write-ahead log fits on a small disk. */
const SMALL_WAL = { min_wal_size: "32MB", max_wal_size: "128MB" };
/** Longer than a request waits behind a fence. */
const KEEP_S = "4";
/** A variable in front of a command, as in a shell. */
const VARIABLE = /^[A-Z_]+=/;

/** A cell. */
type Cell = Awaited<ReturnType<typeof openCell>>;
/** The cells, the proxy and the commands. */
export type TwoCells = Awaited<ReturnType<typeof openTwoCells>>;

/**
 * Starts everything. `open` closes it.
 * @param disks folders for the database of the cell `b`; by default in memory
 */
export async function openTwoCells(open: AsyncDisposableStack, disks?: Disks) {
  const [a, b] = await Promise.all([openCell(open, "a"), openCell(open, "b", disks)]);
  const proxy = await startHaproxy({ a: a.address, b: b.address });
  open.defer(proxy.close);
  return {
    ...{ a, b, proxy },
    /** The variables and the arguments of a move of an account to a cell. */
    moveTo: (cell: Cell, account: string) => {
      const from = cell === a ? b : a;
      return [
        ...[`CELLS_FROM_URL=${from.url}`, `CELLS_TO_URL=${cell.url}`, "move"],
        ...["--account", account],
        ...["--map", proxy.map_file, "--cell", cell.name, "--socket", proxy.socket],
        ...["--keep", KEEP_S],
      ];
    },
    start: startCells,
    run: (args: readonly string[]) => startCells(args).ended,
  };
}

/** Starts `deno task cells` with these arguments. @param onLine gets each line that it prints */
export function startCells(
  words: readonly string[],
  onLine?: (line: string) => void,
): RunningCommand {
  const args = words.filter((word) => !VARIABLE.test(word));
  const variables = words.filter((word) => VARIABLE.test(word));
  return launchCommand({
    args: [Deno.execPath(), "run", "-A", OPERATOR, "cells", ...args],
    env: Object.fromEntries(variables.map((word) => word.split(/=(.*)/, 2))),
  }, onLine);
}

/**
 * Starts a cell. `open` closes it.
 * @param disks folders for its database; by default in memory
 */
export async function openCell(
  open: AsyncDisposableStack,
  /** The name in the map. */
  name: "a" | "b",
  disks?: Disks,
) {
  const settings = { wal_level: "logical", max_connections: "200", ...(disks && SMALL_WAL) };
  const server = open.use(await startSupabaseServer(17, settings, disks && { disks }));
  await using admin = connect(server.admin_url);
  await admin`grant pg_create_subscription to postgres`;
  await migrate(server.url, undefined, undefined, () => {});
  const sql = open.use(connect(server.admin_url, 2));
  const functions = await launchServer(server.url, { lease_ms: LEASE_MS });
  open.defer(functions.kill);
  return {
    ...{ name, url: server.url, sql },
    address: new URL(functions.base_url).host,
    /** Makes a sandbox or a live environment of an account, and returns a key. */
    async makeKey(account: string, label: string, livemode = false) {
      const [found] = await sql`select pay.find_environment(${account}, ${livemode}) as id`;
      const id = found!.id ?? idGenerator(Date.now())("env_");
      if (found!.id === null) await createEnvironment(sql, { id, account, livemode });
      return await createApiKey(sql, {
        id: idGenerator(Date.now())("key_"),
        environment_id: id,
        livemode,
        prefix: label,
      });
    },
    /** Starts its PostgreSQL again, also if it has ended. */
    restartDatabase: () => server.restart(),
    /** Kills its PostgreSQL and starts it again. */
    async killDatabase() {
      Deno.kill(server.pid(), "SIGKILL");
      await server.restart();
    },
  };
}
