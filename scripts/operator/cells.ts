/**
 * `deno task cells` is for deployments with several cells (docs/scaling.md): it shows the map of
 * labels, and moves an account from one cell to another while it is written to.
 */

import { parseArgs } from "node:util";
import { isUnavailable } from "../../shared/core/database_error.ts";
import {
  type CellDatabase,
  holdOwner,
  keysOfBoth,
  openCell,
  refusePair,
} from "./cells_database.ts";
import { abortMove, listMoves, LostLock, type Move, planMove, runMove } from "./cells_move.ts";
import { readProxyMap, refuseAbsentCells } from "./cells_proxy.ts";
import { CommandError, print, printMessage, reportFailure, UsageError } from "./command_line.ts";

/**
 * Longer than a request lives that was at the fence: the source must not delete its key before. Such
 * a request was seen to live for 10 s, because it had waited for a duplicate and for its database too.
 */
const KEEP_S = 20;
const USAGE = `Usage:
  deno task cells list --map FILE [--socket PATH]…
  deno task cells move --account ACCOUNT --from URL --to URL --map FILE --cell CELL
                       [--socket PATH]… [--keep SECONDS] [--run]
  deno task cells status --from URL --to URL
  deno task cells abort --account ACCOUNT --from URL --to URL [--map FILE] [--socket PATH]…
                       [--keep SECONDS]

list shows the cell of each label, and with --socket refuses a cell that the proxy does not have.
move shows what it would do, and with --run does it; the same command goes on with a move that was
interrupted. status shows the moves that are under way, and the extended keys and signers that both
cells count. abort goes back, as long as the account is not open at --to.

    --account ACCOUNT  The account. Its keys have a label that no other account has.
    --from URL         The database of the cell that has the account, for an administrator:
                       a direct connection, without a pooler. Default: CELLS_FROM_URL.
    --to URL           The database of the cell that gets it. Default: CELLS_TO_URL.
    --map FILE         The map of the proxy, with the path that its configuration has.
    --cell CELL        The name of the cell of --to in the map.
    --socket PATH      The socket of a running proxy, once for each proxy. Without it, reload the
                       proxy when move says so, and run move again. abort takes the map and the
                       sockets of the move, unless they are given.
    --keep SECONDS     How long --from keeps the keys after the proxy has switched, for requests
                       that wait there. Default: ${KEEP_S}.
`;
/** How long a move tries again while a database is away, and how often. */
const PATIENCE_MS = 600_000;
const RETRY_MS = 1_000;
/** Between two lines about it. */
const TELL_MS = 10_000;
const ACTIONS = ["list", "move", "status", "abort"] as const;

/** The arguments, checked as far as they can be without a database. */
interface Options {
  action: typeof ACTIONS[number] | "help";
  values: Record<string, string | undefined>;
  sockets: string[];
  is_run: boolean;
}

if (import.meta.main) Deno.exit(await main(Deno.args));

/** Exit codes: 0 success, 1 failure, 2 invalid arguments. */
async function main(args: string[]): Promise<number> {
  try {
    const { action, values, sockets, is_run } = readOptions(args);
    const need = (name: string) => {
      const value = values[name];
      if (!value) throw new UsageError(`--${name} is missing`);
      return value;
    };
    if (action === "help") {
      print(USAGE);
    } else if (action === "list") {
      const proxy = { file: need("map"), sockets };
      const map = await readProxyMap(proxy);
      await refuseAbsentCells(proxy, [...new Set(map.values())]);
      for (const [label, cell] of map) print(`${label.padEnd(12)} ${cell}\n`);
    } else {
      await withCells(need("from"), need("to"), is_run, async (source, target) => {
        if (action === "status") {
          const moves = await listMoves([source, target]);
          const keys = (await keysOfBoth(source, target)).map((key) =>
            `${key}: --from and --to both count it, and give the same addresses or nonces twice`
          );
          if (moves.length === 0) moves.push("No account is moving");
          return print(`${[...moves, ...keys].join("\n")}\n`);
        }
        const move: Move = {
          account: need("account"),
          ...{ source, target },
          keep_ms: readSeconds(values.keep) * 1_000,
          report: printMessage,
        };
        if (action === "abort") {
          return await abortMove(move, values.map ? { file: values.map, sockets } : null);
        }
        const map = { file: need("map"), sockets };
        const destination = { map, cell: need("cell") };
        if (is_run) return await runMove(move, destination);
        print(
          `${(await planMove(move, destination)).join("\n")}\nNothing was changed: add --run\n`,
        );
      });
    }
    return 0;
  } catch (error) {
    return reportFailure(error);
  }
}

function readOptions(args: string[]): Options {
  const [action, ...rest] = args;
  if (action === undefined || args.includes("--help")) {
    return { action: "help", values: {}, sockets: [], is_run: false };
  }
  const known = ACTIONS.find((each) => each === action);
  if (!known) throw new UsageError(`cells: unknown action "${action}", try ${ACTIONS.join(", ")}`);
  try {
    const text = { type: "string" } as const;
    const { values: { run, socket, ...given } } = parseArgs({
      args: rest,
      options: {
        account: text,
        from: text,
        to: text,
        map: text,
        cell: text,
        socket: { type: "string", multiple: true },
        keep: text,
        run: { type: "boolean" },
      },
    });
    return {
      action: known,
      is_run: run === true,
      sockets: socket ?? [],
      values: { from: Deno.env.get("CELLS_FROM_URL"), to: Deno.env.get("CELLS_TO_URL"), ...given },
    };
  } catch (error) {
    throw new UsageError(`cells: ${(error as Error).message}`);
  }
}

function readSeconds(keep: string = String(KEEP_S)): number {
  if (/^\d{1,4}$/.test(keep)) return Number(keep);
  throw new UsageError("--keep must be a whole number of seconds");
}

/**
 * Opens two cells that an account can move between.
 * @param is_patient whether the work begins again after a database was away
 */
async function withCells(
  from: string,
  to: string,
  is_patient: boolean,
  work: (source: CellDatabase, target: CellDatabase) => Promise<void>,
): Promise<void> {
  let away_since: number | null = null;
  for (let told_at = 0;;) {
    const cells = [openCell("--from", from), openCell("--to", to)] as const;
    try {
      return await withOwner(cells, () => {
        away_since = null;
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

/** The databases that do not respond. */
async function nameAway(cells: readonly CellDatabase[]): Promise<string> {
  const flags = await Promise.all(
    cells.map(({ flag, sql }) => sql`select`.then(() => [], () => [flag])),
  );
  return flags.flat().join(" and ") || "A database";
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
