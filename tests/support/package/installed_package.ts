/**
 * The npm package as its users get it: made from the sources, packed, and installed into an empty
 * project. No script of a package runs, because users can forbid them.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { postgresAccount } from "../../../apps/server/postgres/postgres_account.ts";
import { withTemporaryFolder } from "../common/temporary_folder.ts";
import { until } from "../common/until.ts";

/** A project with the package. */
export interface InstalledPackage {
  /** The folder of the project. Its name has a space, like those of many users. */
  path: string;
  /** The folder whose `artifacts/` has the archive, as in a clone. */
  clone: string;
  /** The program of the package. */
  program: string;
  /** Variables of every command: an empty cache, and no network beside this machine. */
  env: Record<string, string>;
}

/** A command and its surroundings. */
export interface PackageCommand {
  args: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** The account that runs it. By default that of the tests. */
  account?: { uid?: number; gid?: number };
}

/** The result of a command that has ended. */
interface EndedCommand {
  code: number;
  stdout: string;
  stderr: string;
}

/** A port on which nothing listens: a fetch through such a proxy fails at once. */
const NO_PROXY = "http://127.0.0.1:9";
const PROJECT_DIR = fileURLToPath(new URL("../../../", import.meta.url));

/** Variables of a command that has no network beside this machine. */
export const OFFLINE: Readonly<Record<string, string>> = {
  HTTP_PROXY: NO_PROXY,
  HTTPS_PROXY: NO_PROXY,
  NO_PROXY: "127.0.0.1,localhost",
  npm_config_offline: "true",
};

/** Installs the package for the work. */
export async function withInstalledPackage(
  work: (installed: InstalledPackage) => Promise<void>,
): Promise<void> {
  await withTemporaryFolder(async (folder) => {
    const path = join(folder, "my project");
    const clone = join(folder, "clone");
    const artifacts = join(clone, "artifacts");
    await Deno.mkdir(artifacts, { recursive: true });
    await Deno.mkdir(path, { recursive: true });
    await Deno.writeTextFile(join(path, "package.json"), '{"private":true,"type":"module"}');
    const build = ["run", "-A", "tools/release/package/build.ts", artifacts];
    const built = await runCommand({
      args: [Deno.execPath(), ...build],
      cwd: PROJECT_DIR,
      env: {},
    });
    assert.equal(built.code, 0, built.stdout + built.stderr);
    const archive = built.stdout.trim().split("/").at(-1)!;
    await install(path, ["--ignore-scripts", join(artifacts, archive)]);
    await work({
      path,
      clone,
      program: join(path, "node_modules/.bin/payments-sandbox"),
      env: { ...OFFLINE, CACHE_DIR: join(folder, "cache") },
    });
  });
}

/** Adds packages of the registry to a project. */
export async function install(path: string, packages: readonly string[]): Promise<void> {
  const args = ["npm", "install", "--no-audit", "--no-fund", ...packages];
  const { code, stdout, stderr } = await runCommand({ args, cwd: path, env: {} });
  assert.equal(code, 0, stdout + stderr);
}

/** Returns an account other than that of the tests, or null if this account cannot use one. */
export async function otherAccount(): Promise<{ uid: number; gid: number } | null> {
  const account = await postgresAccount();
  return "uid" in account ? account : null;
}

/** The oldest and the newest version of Node that the packages support. */
const NODES = [20, 24] as const;

/** Those of them that are not installed. They are fetched, so only CI tests them. */
export const OTHER_NODES: readonly number[] = Deno.env.get("CI") === undefined
  ? []
  : await otherNodes();

async function otherNodes(): Promise<number[]> {
  const args = ["node", "-p", "process.versions.node.split('.')[0]"];
  const { stdout } = await runCommand({ args, cwd: PROJECT_DIR, env: {} });
  return NODES.filter((major) => major !== Number(stdout));
}

/** The path of Node of this version, such as 22 or "20.0.0", which npm fetches. */
export async function nodeProgram(version: number | string): Promise<string> {
  const args = ["npm", "exec", "--yes", `--package=node@${version}`, "--"];
  const print = ["node", "-p", "process.execPath"];
  const { code, stdout, stderr } = await runCommand({
    args: [...args, ...print],
    cwd: PROJECT_DIR,
    env: {},
  });
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

/** Runs a command until it ends. */
export async function runCommand(command: PackageCommand): Promise<EndedCommand> {
  const { code, stdout, stderr } = await prepare(command, "null").output();
  const [printed, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, stdout: printed!, stderr: errors! };
}

/** A command that runs until it is stopped. Its standard input stays open. */
export interface RunningCommand {
  /** The output of the program so far. */
  stdout(): string;
  stderr(): string;
  /** Waits until standard output or standard error matches, and returns the match. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Ends it with a signal and returns its exit code. */
  end(signal?: Deno.Signal): Promise<number>;
  /** Waits until it ends by itself, and returns its exit code. */
  ended(): Promise<number>;
}

/** Starts a command. */
export function launchCommand(command: PackageCommand): RunningCommand {
  const child = prepare(command, "piped").spawn();
  const texts = { stdout: "", stderr: "" };
  const readings = (["stdout", "stderr"] as const).map(async (name) => {
    for await (const text of child[name].pipeThrough(new TextDecoderStream())) texts[name] += text;
  });
  let is_over = false;
  const ended = (async () => {
    const [{ code }] = await Promise.all([child.status, ...readings]);
    await child.stdin.close().catch(() => {});
    is_over = true;
    return code;
  })();
  return {
    stdout: () => texts.stdout,
    stderr: () => texts.stderr,
    async printed(pattern) {
      const find = () => pattern.exec(texts.stdout) ?? pattern.exec(texts.stderr);
      await until(`${pattern} is printed`, () => {
        if (is_over && !find()) throw new Error(`Ended: ${texts.stdout}${texts.stderr}`);
        return find() !== null;
      });
      return find()!;
    },
    end(signal = "SIGTERM") {
      if (!is_over) child.kill(signal);
      return ended;
    },
    async ended() {
      await until("the command ends", () => is_over);
      return await ended;
    },
  };
}

function prepare(
  { args: [program, ...args], cwd, env, account = {} }: PackageCommand,
  stdin: "null" | "piped",
): Deno.Command {
  return new Deno.Command(program!, {
    args,
    cwd,
    env: { npm_config_update_notifier: "false", NO_COLOR: "1", ...env },
    stdin,
    stdout: "piped",
    stderr: "piped",
    ...account,
  });
}
