/**
 * Detects that the command which launched this process has ended. `npx` and `deno task` put up to
 * three processes between the command that the user started and this process, and a signal to the
 * outermost one does not always reach this one. Without the watch, the service would keep running
 * unnoticed and occupy its port. Only `npx`, `deno task`, the command of the npm package and the
 * processes between them are watched, so a start under nohup continues when its shell exits.
 */

import PACKAGE from "../../../packages/sandbox/package.json" with { type: "json" };

/** A process and its parent at the time of the first check. */
interface Link {
  pid: number;
  parent: number;
}

const POLL_MS = 200;
/** `npm exec` is at most four processes away: deno run, deno task, sh, npm. */
const MAX_STEPS = 6;
const DENO_TASK = /\bdeno\S* task\b/;
/** The command of the npm package, whose process is the parent of the service. */
const PACKAGE_COMMAND = `${PACKAGE.name} start`;
const NPM_EXEC = /\b(npm exec|npx)\b/;

/** Calls `onLost` once when a launcher has ended. Does nothing on Windows. */
export async function watchLauncher(onLost: () => void): Promise<void> {
  const links = await findLinks();
  if (links.length === 0) return;
  const timer = setInterval(async () => {
    for (const { pid, parent } of links) {
      if ((await inspect(pid, false))?.parent === parent) continue;
      clearInterval(timer);
      return onLost();
    }
  }, POLL_MS);
  Deno.unrefTimer(timer);
}

/** Returns the links between this process and its outermost launcher (`deno task` or `npx`). */
async function findLinks(): Promise<Link[]> {
  const links: Link[] = [];
  let watched = 0;
  for (let pid = Deno.pid; links.length < MAX_STEPS;) {
    const parent = (await inspect(pid))?.parent ?? 0;
    if (parent <= 1) break;
    links.push({ pid, parent });
    const { command } = await inspect(parent) ?? { command: "" };
    const is_launcher = DENO_TASK.test(command) || command.includes(PACKAGE_COMMAND);
    if ((links.length === 1 && is_launcher) || NPM_EXEC.test(command)) watched = links.length;
    pid = parent;
  }
  return links.slice(0, watched);
}

/**
 * Returns the parent and the command line of a process, or null if it has ended.
 * @param with_command false: without the command line on Linux, where it costs as much again
 */
async function inspect(
  pid: number,
  with_command = true,
): Promise<{ parent: number; command: string } | null> {
  if (Deno.build.os === "linux") {
    try {
      // Synchronous, because these files are in memory, and a promise of each costs more.
      const stat = Deno.readTextFileSync(`/proc/${pid}/stat`);
      const command = with_command ? Deno.readTextFileSync(`/proc/${pid}/cmdline`) : "";
      // The line is "pid (name) state parent …". The name can contain any character, also ")".
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      return { parent, command: command.replaceAll("\0", " ") };
    } catch {
      return null;
    }
  }
  if (Deno.build.os !== "darwin") return null;
  const { stdout } = await new Deno.Command("/bin/ps", {
    args: ["-o", "ppid=,command=", "-p", String(pid)],
  }).output();
  const [, parent, command] = /^\s*(\d+)\s+(.*)/.exec(new TextDecoder().decode(stdout)) ?? [];
  return parent === undefined ? null : { parent: Number(parent), command: command ?? "" };
}
