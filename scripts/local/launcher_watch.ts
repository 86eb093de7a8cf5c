/**
 * Notices that the command which launched us is gone. `npx` and `deno task` put up to three
 * processes between the one that a person or a script started and this one; a signal to the outer
 * one does not always get here, and without this the service would go on unseen, with its port.
 * A start from a shell that exits (nohup) goes on as it should: only those launchers are watched.
 */

/** A process and the parent that it had when we looked first. */
interface Link {
  pid: number;
  parent: number;
}

const POLL_MS = 200;
/** From this process to `npm exec` it is four steps: deno run, deno task, sh, npm. */
const MAX_STEPS = 6;
const DENO_TASK = /\bdeno\S* task\b/;
const NPM_EXEC = /\b(npm exec|npx)\b/;

/** Calls `onLost` once when a launcher has ended. Watches nothing on Windows. */
export async function watchLauncher(onLost: () => void): Promise<void> {
  const links = await findLinks();
  if (links.length === 0) return;
  const timer = setInterval(async () => {
    for (const { pid, parent } of links) {
      if ((await inspect(pid))?.parent === parent) continue;
      clearInterval(timer);
      return onLost();
    }
  }, POLL_MS);
  Deno.unrefTimer(timer);
}

/** The links between this process and the outermost launcher that is known. */
async function findLinks(): Promise<Link[]> {
  const links: Link[] = [];
  let watched = 0;
  for (let pid = Deno.pid; links.length < MAX_STEPS;) {
    const parent = (await inspect(pid))?.parent ?? 0;
    if (parent <= 1) break;
    links.push({ pid, parent });
    const { command } = await inspect(parent) ?? { command: "" };
    if ((links.length === 1 && DENO_TASK.test(command)) || NPM_EXEC.test(command)) {
      watched = links.length;
    }
    pid = parent;
  }
  return links.slice(0, watched);
}

/** Parent and command line of a process, or null when it is gone. */
async function inspect(pid: number): Promise<{ parent: number; command: string } | null> {
  if (Deno.build.os === "linux") {
    try {
      const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
      const command = await Deno.readTextFile(`/proc/${pid}/cmdline`);
      // "pid (name) state parent …", and the name may hold anything.
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
