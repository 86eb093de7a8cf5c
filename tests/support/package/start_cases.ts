/** What `payments-sandbox start` must do in a folder of a user. */

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import {
  type InstalledPackage,
  linesOf,
  lineWith,
  nodeProgram,
  otherAccount,
  type PackageCommand,
  runCommand,
  spawnCommand,
} from "./installed_package.ts";

/** A case of the package. */
export interface PackageCase {
  name: string;
  run(installed: InstalledPackage): Promise<void>;
}

/** Versions of Node beside the installed one. They are fetched, so only CI tests them. */
const OTHER_NODES = Deno.env.get("CI") === undefined ? [] : [22, 24];

export const START_CASES: readonly PackageCase[] = [
  { name: "start runs the service with nothing but Node", run: (installed) => start(installed) },
  ...OTHER_NODES.map((major): PackageCase => ({
    name: `start runs the service on Node ${major}`,
    run: async (installed) => {
      const PATH = `${dirname(await nodeProgram(major))}:${Deno.env.get("PATH")}`;
      await start({ ...installed, env: { ...installed.env, PATH } });
    },
  })),
  {
    name: "start runs the service as another account than root",
    run: async (installed) => {
      const account = await otherAccount();
      // The other cases run as that account then.
      if (account === null) return;
      const home = join(installed.path, "home");
      await Deno.mkdir(home);
      await Deno.chown(home, account.uid, account.gid);
      // Without CACHE_DIR the cache is in the account's home.
      const env = { ...installed.env, CACHE_DIR: "", HOME: home, XDG_CACHE_HOME: "" };
      await start({ ...installed, env }, account, home);
      const cached = [...Deno.readDirSync(join(home, ".cache/payments-sandbox"))];
      assert.deepEqual(cached.map(({ name }) => name), ["postgres-17.10"]);
    },
  },
  {
    name: "PostgreSQL is unpacked once for all data folders",
    run: async ({ path, env }) => {
      const found = [...Deno.readDirSync(join(path, "first"))].map(({ name }) => name);
      assert.ok(found.includes("postgres") && !found.some((name) => name.startsWith("postgres-")));
      assert.deepEqual([...Deno.readDirSync(env["CACHE_DIR"]!)].map(({ name }) => name), [
        "postgres-17.10",
      ]);
      await Promise.resolve();
    },
  },
  {
    name: "a wrong option and an unknown command exit with 2 and name it",
    run: async ({ program, path, env }) => {
      for (
        const [args, message] of [
          [["start", "--prot", "1"], /'--prot'/],
          [["start", "--port", "x"], /--port must be a whole number from 0 to 65535/],
          [["strat"], /Unknown command "strat"/],
          [["payments", "create"], /--amount is missing/],
        ] as const
      ) {
        const ended = await runCommand({ args: [program, ...args], cwd: path, env });
        assert.equal(ended.code, 2, args.join(" "));
        assert.match(ended.stderr, message);
      }
    },
  },
];

/** Starts the service, uses it as a person does, and ends it. */
async function start(
  { program, path, env }: InstalledPackage,
  account: PackageCommand["account"] = {},
  cwd = path,
): Promise<void> {
  const data_dir = join(cwd, "first");
  const child = spawnCommand({
    args: [program, "start", "--port", "0", "--data-dir", data_dir],
    cwd,
    env,
    account,
  });
  const lines = linesOf(child);
  try {
    const base_url = (await lineWith(lines, /Base URL/)).trim().split(/\s+/).at(-1)!;
    await lineWith(lines, /Ctrl-C stops everything/);
    assert.equal((await fetch(`${base_url}/api-v1-payments/health`)).status, 200);
    for (const page of ["/console/", "/console/main.js", "/docs/", "/docs/scalar.js"]) {
      const answer = await fetch(new URL(page, base_url));
      assert.equal(answer.status, 200, page);
      assert.ok((await answer.text()).length > 400, page);
    }
    const document = await (await fetch(new URL("/docs/openapi.json", base_url))).text();
    assert.ok(
      document.includes(`curl -X POST ${base_url}/api-v1-`),
      "the samples call the service",
    );
    assert.ok(!document.includes("service.invalid"));
    const command = async (...args: string[]) =>
      await runCommand({
        args: [program, ...args, "--data-dir", data_dir],
        cwd,
        env,
        account,
      });
    const paid = await command("payments", "create", "--amount", "1999", "--json");
    assert.equal(paid.code, 0, paid.stderr);
    assert.equal(JSON.parse(paid.stdout).status, "completed");
    const card = "4000 0000 0000 9995";
    const declined = await command("payments", "create", "--amount", "1999", "--card", card);
    assert.equal(declined.code, 1);
    assert.match(declined.stdout, /^pay_\w+ {2}declined {2}19\.99 EUR\n$/);
    assert.match(declined.stderr, /\(insufficient_funds\)\n$/);
    const address = await command("open", "--print");
    assert.equal(address.stdout, `${new URL("/console/", base_url)}\n`);
    assert.equal(await Deno.readTextFile(join(data_dir, ".gitignore")), "*\n");
  } finally {
    child.kill("SIGTERM");
    await child.stdin.close();
    for await (const _ of lines);
  }
  assert.equal((await child.status).code, 0);
}
