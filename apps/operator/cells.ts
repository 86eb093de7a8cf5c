/**
 * `deno task cells` is for deployments with several cells (docs/scaling.md): it shows the map of
 * labels, and moves an account from one cell to another while it is written to.
 */

import { isUnavailable } from "../../shared/core/database_error.ts";
import {
  type CellDatabase,
  holdOwner,
  keysOfBoth,
  openCell,
  refusePair,
  type Side,
  URL_VARIABLES,
} from "./cells_database.ts";
import { abortMove, listMoves, LostLock, type Move, planMove, runMove } from "./cells_move.ts";
import { type ProxyMap, readProxyMap, refuseAbsentCells } from "./cells_proxy.ts";
import {
  type Action,
  action,
  CommandError,
  print,
  printMessage,
  readAction,
  UsageError,
  type Values,
} from "./command_line.ts";

/**
 * Longer than a request lives that was at the fence: the source must not delete its key before.
 * Such a request was seen to live for 10 s, because it had waited for a duplicate and for its
 * database too.
 */
const KEEP_S = 20;
export const USAGE = `Usage:
  deno task cells list --map FILE [--socket PATH]…
  deno task cells move --account ACCOUNT --map FILE --cell CELL [--socket PATH]…
                       [--keep SECONDS] [--run]
  deno task cells status
  deno task cells abort --account ACCOUNT [--map FILE] [--socket PATH]… [--keep SECONDS]

list shows the cell of each label, and with --socket refuses a cell that the proxy does not have.
move shows what it would do, and with --run does it; the same command goes on with a move that was
interrupted. status shows the moves that are under way, and the extended keys and signers that both
cells count. abort goes back, as long as the account is not open at the target.

Two environment variables have the databases of the cells, for an administrator: a direct
connection, without a pooler. A command line would show their passwords to others.

    CELLS_FROM_URL     The source, which has the account.
    CELLS_TO_URL       The target, which gets it.

    --account ACCOUNT  The account. Its keys have a label that no other account has.
    --map FILE         The map of the proxy, with the path that its configuration has.
    --cell CELL        The name of the target in the map.
    --socket PATH      The socket of a running proxy, once for each proxy. Without it, reload the
                       proxy when move says so, and run move again. abort takes the map and the
                       sockets of the move, unless they are given.
    --keep SECONDS     How long the source keeps the keys after the proxy has switched, for requests
                       that wait there. Default: ${KEEP_S}.
`;
/** How long a move tries again while a database is away, and how often. */
const PATIENCE_MS = 600_000;
const RETRY_MS = 1_000;
/** Between two lines about it. */
const TELL_MS = 10_000;

const ACTIONS: Readonly<Record<string, Action<() => Promise<void>>>> = {
  list: action(["map", "socket"], (values) => async () => {
    const proxy = mapOf(values);
    const map = await readProxyMap(proxy);
    await refuseAbsentCells(proxy, [...new Set(map.values())]);
    for (const [label, cell] of map) print(`${label.padEnd(12)} ${cell}\n`);
  }),
  move: action(
    ["account", "map", "cell", "socket", "keep", "run"],
    (values) => () =>
      withCells(values.run === true, async (source, target) => {
        const move = moveOf(values, source, target);
        const destination = { map: mapOf(values), cell: need("cell", values.cell) };
        if (values.run) return await runMove(move, destination);
        print(
          `${(await planMove(move, destination)).join("\n")}\nNothing was changed: add --run\n`,
        );
      }),
  ),
  status: action([], () => () =>
    withCells(false, async (source, target) => {
      const moves = await listMoves([source, target]);
      const keys = (await keysOfBoth(source, target)).map((key) =>
        `${key}: both cells count it, and give the same addresses or nonces twice`
      );
      if (moves.length === 0) moves.push("No account is moving");
      print(`${[...moves, ...keys].join("\n")}\n`);
    })),
  abort: action(
    ["account", "map", "socket", "keep"],
    (values) => () =>
      withCells(false, async (source, target) => {
        const move = moveOf(values, source, target);
        await abortMove(move, values.map ? mapOf(values) : null);
      }),
  ),
};

/** Exit codes: 0 success, 1 failure, 2 invalid arguments. */
export async function main(args: readonly string[]): Promise<number> {
  await readAction("cells", args, ACTIONS, USAGE)();
  return 0;
}

function need(name: string, value: string | undefined): string {
  if (!value) throw new UsageError(`--${name} is missing`);
  return value;
}

function mapOf({ map, socket: sockets = [] }: Values<"map" | "socket">): ProxyMap {
  return { file: need("map", map), sockets };
}

function moveOf(
  { account, keep }: Values<"account" | "keep">,
  source: CellDatabase,
  target: CellDatabase,
): Move {
  const keep_ms = readSeconds(keep) * 1_000;
  return { account: need("account", account), source, target, keep_ms, report: printMessage };
}

function readSeconds(keep: string = String(KEEP_S)): number {
  if (/^\d{1,4}$/.test(keep)) return Number(keep);
  throw new UsageError("--keep must be a whole number of seconds");
}

function openSide(side: Side): CellDatabase {
  const url = side === "source" ? Deno.env.get("CELLS_FROM_URL") : Deno.env.get("CELLS_TO_URL");
  if (!url) throw new UsageError(`Set ${URL_VARIABLES[side]} to the database of the ${side}`);
  return openCell(side, url);
}

/**
 * Opens two cells that an account can move between.
 * @param is_patient whether the work begins again after a database was away that has responded
 */
async function withCells(
  is_patient: boolean,
  work: (source: CellDatabase, target: CellDatabase) => Promise<void>,
): Promise<void> {
  let away_since: number | null = null;
  let has_begun = false;
  for (let told_at = 0;;) {
    const cells = [openSide("source"), openSide("target")] as const;
    try {
      return await withOwner(cells, () => {
        away_since = null;
        has_begun = true;
        return work(...cells);
      });
    } catch (error) {
      const has_lost_lock = error instanceof LostLock;
      if (!has_lost_lock && !isUnavailable(error)) throw error;
      away_since ??= Date.now();
      const reason = (error as Error).message.split("\n")[0];
      const fault = has_lost_lock
        ? error.message
        : `${await nameAway(cells)} does not respond: ${reason}`;
      if (!is_patient) throw new CommandError(fault);
      // An address with a fault never responds.
      if (!has_begun) {
        throw new CommandError(`${fault}. Check the address, or run the command when it responds`);
      }
      if (Date.now() - away_since > PATIENCE_MS) {
        throw new CommandError(`${fault}. Run the same command when it does`);
      }
      if (Date.now() - told_at > TELL_MS) {
        told_at = Date.now();
        printMessage(`${fault}. Trying again`);
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    } finally {
      await Promise.all(cells.map(({ sql }) => sql.end({ timeout: 0 })));
    }
  }
}

async function nameAway(cells: readonly CellDatabase[]): Promise<string> {
  const away = await Promise.all(
    cells.map(({ side, sql }) => sql`select`.then(() => [], () => [URL_VARIABLES[side]])),
  );
  return away.flat().join(" and ") || "A database";
}

/** Runs the work as a member of the owner of the tables. */
async function withOwner(
  cells: readonly [CellDatabase, CellDatabase],
  work: () => Promise<void>,
): Promise<void> {
  await refusePair(...cells);
  for (const cell of cells) await holdOwner(cell, true);
  await work().finally(async () => {
    // A database that is away keeps the membership until the next command.
    for (const cell of cells) await holdOwner(cell, false).catch(() => {});
  });
}
