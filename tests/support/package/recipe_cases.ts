/** The recipes of docs/testing.md, each run in the project as its reader would. */

import assert from "node:assert/strict";
import { basename, dirname, join } from "node:path";
import { codeBlocks } from "../documents/readme_document.ts";
import { install, type InstalledPackage, runCommand } from "./installed_package.ts";
import type { PackageCase } from "./start_cases.ts";

const VITEST = "vitest@5.1.1";
const PLAYWRIGHT = "@playwright/test@1.65.1";
const ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";
const IN_CI = Deno.env.get("CI") !== undefined;
const CHROMIUM = "/usr/bin/chromium";
/** Tests use the Chromium of the system, because Playwright would fetch its own. */
const PLAYWRIGHT_CONFIG = `export default {
  workers: 1,
  use: { launchOptions: { executablePath: "${CHROMIUM}", args: ["--no-sandbox"] } },
};`;

const page = await Deno.readTextFile(new URL("../../../docs/testing.md", import.meta.url));
/** The blocks that begin with the name of a file, by that name. */
const files = new Map(
  codeBlocks(page).flatMap(({ text }) => {
    const [, name] = /^(?:\/\/|#) (\S+\.(?:mjs|ts|py|yml))\n/.exec(text) ?? [];
    return name === undefined ? [] : [[name, text] as const];
  }),
);

export const RECIPE_CASES: readonly PackageCase[] = [
  {
    name: "recipe: node:test, and the same file on Deno",
    run: async (installed) => {
      const file = await write(installed, "payments.test.mjs");
      assert.match(await succeed(installed, ["node", "--test", file]), /pass 2/);
      assert.match(
        await succeed(installed, [Deno.execPath(), "test", "-A", "--no-check", file]),
        /2 passed/,
      );
    },
  },
  {
    name: "recipe: Vitest",
    run: async (installed) => {
      const file = await write(installed, "payments.test.ts");
      await install(installed.path, [VITEST]);
      assert.match(await succeed(installed, ["npx", "vitest", "run", basename(file)]), /1 passed/);
    },
  },
  {
    name: "recipe: Playwright",
    run: async (installed) => {
      const file = await write(installed, "checkout.spec.ts");
      await write(installed, "playwright.config.ts", PLAYWRIGHT_CONFIG);
      await install(installed.path, [PLAYWRIGHT]);
      assert.match(
        await succeed(installed, ["npx", "playwright", "test", basename(file)]),
        /1 passed/,
      );
    },
  },
  {
    name: "recipe: pytest",
    run: async (installed) => {
      const file = await write(installed, "test_payments.py");
      const venv = join(installed.path, "venv");
      for (
        const args of [["python3", "-m", "venv", venv], [`${venv}/bin/pip`, "install", "pytest"]]
      ) {
        const { code, stderr } = await runCommand({ args, cwd: installed.path, env: {} });
        assert.equal(code, 0, stderr);
      }
      assert.match(await succeed(installed, [`${venv}/bin/pytest`, "-q", file]), /1 passed/);
    },
  },
  {
    name: "recipe: the steps of the GitHub Actions workflow",
    run: async (installed) => {
      const path = await write(installed, ".github/workflows/test.yml");
      const commands = [...(await Deno.readTextFile(path)).matchAll(/- run: (.*)/g)];
      assert.deepEqual(commands.map(([, command]) => command!), [
        "npm ci",
        "npx payments-sandbox run -- npm test",
      ]);
      if (IN_CI) {
        // Compiling the linter takes some seconds, so only CI does it.
        const lint = { args: ["go", "run", ACTIONLINT, path], cwd: installed.path, env: {} };
        const { code, stdout } = await runCommand(lint);
        assert.equal(code, 0, stdout);
      }
      const manifest = join(installed.path, "package.json");
      const project = JSON.parse(await Deno.readTextFile(manifest));
      const script = "console.log(process.env.PAYMENTS_BASE_URL); process.exitCode = 3";
      const test = `node -e "${script}"`;
      await Deno.writeTextFile(manifest, JSON.stringify({ ...project, scripts: { test } }));
      // The packages are installed: the first step has been done.
      const args = commands[1]![1]!.split(" ");
      const { code, stdout, stderr } = await runCommand({
        args,
        cwd: installed.path,
        env: installed.env,
      });
      assert.equal(code, 3, stderr);
      assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+\/functions\/v1$/m);
    },
  },
];

/** Writes a block of the page to the file that it names. Returns the path. */
async function write(
  { path }: InstalledPackage,
  name: string,
  text = files.get(name),
): Promise<string> {
  assert.ok(text !== undefined, `docs/testing.md has no block for ${name}`);
  const file = join(path, name);
  await Deno.mkdir(dirname(file), { recursive: true });
  await Deno.writeTextFile(file, text);
  return file;
}

/** Runs a command and returns its output. Throws if it fails. */
async function succeed({ path, env }: InstalledPackage, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand({ args, cwd: path, env });
  assert.equal(code, 0, `${args.join(" ")}\n${stdout}${stderr}`);
  return stdout + stderr;
}
