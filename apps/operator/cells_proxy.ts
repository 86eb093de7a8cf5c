/** Switches a label to another cell in HAProxy's map: in its file, and in the running proxy. */

import { connect } from "node:net";
import { basename, dirname, join } from "node:path";
import { readMap } from "./cells_map.ts";
import { CommandError, UsageError } from "./command_line.ts";

export interface ProxyMap {
  /** The file, with the path that the configuration of the proxy has. */
  file: string;
  /** The sockets of the running proxies; none: they read the file when they are reloaded. */
  sockets: string[];
}

/** The longest time that the proxy has to respond. */
const SOCKET_MS = 5_000;

/** Reads the map. Throws a UsageError if it has a fault. */
export async function readProxyMap({ file }: ProxyMap): Promise<Map<string, string>> {
  return readMap(
    await Deno.readTextFile(file).catch((error) => {
      throw new UsageError(`--map ${file} cannot be read: ${error.message}`);
    }),
  );
}

/**
 * Refuses cells for which a running proxy has no backend: their requests would get 503.
 * @throws {CommandError} if a proxy has no such backend, or does not respond
 */
export async function refuseAbsentCells(
  { sockets }: ProxyMap,
  cells: readonly string[],
): Promise<void> {
  for (const socket of sockets) {
    const backends = new Set((await command(socket, "show backend")).split("\n"));
    const absent = cells.find((cell) => !backends.has(`cell_${cell}`));
    if (absent === undefined) continue;
    throw new CommandError(
      `The proxy has no backend "cell_${absent}": add the cell to its configuration`,
    );
  }
}

/**
 * Sends requests with the labels to a cell from now on, also after a restart of the proxy. Without
 * labels it only shows that the file can be written. Returns whether a running proxy, or the file,
 * had another cell.
 * @throws {CommandError} if the file cannot be written, or a proxy does not respond
 */
export async function switchLabels(
  map: ProxyMap,
  labels: readonly string[],
  cell: string,
): Promise<boolean> {
  const before = await readProxyMap(map);
  let is_changed = labels.some((label) => before.get(label) !== cell);
  await rewrite(map.file, labels, cell).catch((error) => {
    throw new CommandError(`--map ${map.file} cannot be written: ${error.message}`);
  });
  for (const socket of map.sockets) {
    for (const label of labels) {
      const entry = `${map.file} ${label}`;
      const has_cell = (found: string) => found.includes(`value="${cell}"`);
      if (has_cell(await command(socket, `get map ${entry}`))) continue;
      is_changed = true;
      const set = await command(socket, `set map ${entry} ${cell}`);
      if (set !== "") await command(socket, `add map ${entry} ${cell}`);
      if (!has_cell(await command(socket, `get map ${entry}`))) {
        throw new CommandError(`The proxy does not take the map's line "${label} ${cell}": ${set}`);
      }
    }
  }
  return is_changed;
}

/** Changes the lines of the labels, and keeps all others and the comments. */
async function rewrite(file: string, labels: readonly string[], cell: string): Promise<void> {
  const left = new Set(labels);
  const lines = (await Deno.readTextFile(file)).split("\n").map((line) => {
    const label = line.trim().split(/[ \t]+/)[0]!;
    return left.delete(label) ? `${label} ${cell}` : line;
  });
  if (lines.at(-1) === "") lines.pop();
  lines.push(...[...left].map((label) => `${label} ${cell}`), "");
  const text = lines.join("\n");
  const { mode, uid, gid } = await Deno.stat(file);
  const path = join(dirname(file), `.${basename(file)}.new`);
  await Deno.writeTextFile(path, text);
  using written = await Deno.open(path, { write: true });
  await written.syncData();
  if (mode !== null) await Deno.chmod(path, mode & 0o7777);
  if (uid !== null && Deno.uid() === 0) await Deno.chown(path, uid, gid);
  // Under its name at once, so that a proxy that starts meanwhile reads a whole map.
  await Deno.rename(path, file);
}

/** Sends a command to the proxy and returns its reply without surrounding white space. */
async function command(socket: string, line: string): Promise<string> {
  const reply = Promise.withResolvers<string>();
  const connection = connect(
    { path: socket, timeout: SOCKET_MS },
    () => connection.end(`${line}\n`),
  );
  let text = "";
  connection.setEncoding("utf8").on("data", (part) => text += part);
  connection.on("timeout", () => connection.destroy(new Error("no reply")));
  connection.on("error", reply.reject).on("end", () => reply.resolve(text.trim()));
  return await reply.promise.catch((error) => {
    throw new CommandError(`The proxy does not respond at ${socket}: ${error.message}`);
  });
}
