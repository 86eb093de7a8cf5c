/** The recipes of docs/testing.md, each run in the project as its reader would. */

import assert from "node:assert/strict";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCloneDocument } from "../documents/clone_documents.ts";
import { codeBlocks } from "../documents/readme_document.ts";
import { outputOf, runCommand } from "../common/running_command.ts";
import { install, type InstalledPackage } from "./installed_package.ts";

const JEST = "jest@30.2.0";
const VITEST = "vitest@5.1.1";
const PLAYWRIGHT = "@playwright/test@1.65.1";
const ACTIONLINT = fileURLToPath(new URL("../../../.ci/actionlint", import.meta.url));
const IN_CI = Deno.env.get("CI") !== undefined;
const CHROMIUM = "/usr/bin/chromium";
/** Tests use the Chromium of the system, because Playwright would fetch its own. */
const PLAYWRIGHT_CONFIG = `export default {
  workers: 1,
  use: { launchOptions: { executablePath: "${CHROMIUM}", args: ["--no-sandbox"] } },
};`;

const page = await readCloneDocument("docs/testing.md");
/** The blocks that begin with the name of a file, by that name. */
const files = new Map(
  codeBlocks(page).flatMap(({ text }) => {
    const [, name] = /^(?:\/\/|#) (\S+\.(?:m?js|ts|py|yml))\n/.exec(text) ?? [];
    return name === undefined ? [] : [[name, text] as const];
  }),
);

export async function recipeCases(t: Deno.TestContext, installed: InstalledPackage): Promise<void> {
  const { path, env, program } = installed;
  const passes = async (args: readonly string[], pattern: RegExp) =>
    assert.match(await succeed(installed, args), pattern);
  await t.step("recipe: node:test, and the same file on Deno", async () => {
    const file = await write(installed, "payments.test.mjs");
    await passes(["node", "--test", file], /pass 2/);
    await passes([Deno.execPath(), "test", "-A", "--no-check", file], /2 passed/);
    await passes(["node", "--test", await write(installed, "rehearsals.test.mjs")], /pass 3/);
  });
  await t.step(
    "recipe: the installation from a clone, the GitHub Actions workflow, and Jest",
    () => installFromClone(installed),
  );
  await t.step("recipe: Vitest", async () => {
    const file = await write(installed, "payments.test.ts");
    await install(path, [VITEST]);
    await passes(["npx", "vitest", "run", basename(file)], /1 passed/);
  });
  await t.step("recipe: Playwright", async () => {
    const file = await write(installed, "checkout.spec.ts");
    await write(installed, "playwright.config.ts", PLAYWRIGHT_CONFIG);
    await install(path, [PLAYWRIGHT]);
    await passes(["npx", "playwright", "test", basename(file)], /1 passed/);
  });
  await t.step("run sets the variables of its command, and exits with its code", async () => {
    const script = "console.log(process.env.PAYMENTS_BASE_URL, process.env.PAYMENTS_API_KEY);" +
      "process.exitCode = 3";
    const run = (...args: string[]) =>
      runCommand({ args: [program, "run", "--", ...args], cwd: path, env });
    const { code, stdout, stderr } = await run("node", "-e", script);
    assert.equal(code, 3, stderr);
    assert.match(stdout, /^http:\/\/127\.0\.0\.1:\d+\/functions\/v1 sk_test_\w+$/m);
    for (
      const [name, code, message] of [
        ["nosuchcommand", 127, '"nosuchcommand" cannot be started: there is no such program\n'],
        [path, 126, `"${path}" cannot be started: this user may not execute it\n`],
      ] as const
    ) {
      const ended = await run(name);
      assert.deepEqual([ended.code, ended.stderr], [code, message]);
    }
  });
  await t.step("recipe: pytest", async () => {
    const file = await write(installed, "test_payments.py");
    const venv = join(path, "venv");
    await outputOf(["python3", "-m", "venv", venv], { cwd: path });
    await outputOf([`${venv}/bin/pip`, "install", "pytest"], { cwd: path });
    await passes([`${venv}/bin/pytest`, "-q", file], /2 passed/);
  });
}

/**
 * Installs the package as the page says, and runs the steps of the workflow in a checkout, which
 * has only the files of the repository. Then it runs the recipe of Jest.
 */
async function installFromClone({ clone, env, ...installed }: InstalledPackage): Promise<void> {
  const folder = dirname(clone);
  const project = { ...installed, clone, env, path: join(folder, "other project") };
  const checkout = { ...project, path: join(folder, "checkout") };
  await write(project, "package.json", '{ "private": true, "scripts": { "test": "node --test" } }');
  const [make, add] = codeBlocks(page).filter(({ language }) => language === "sh");
  // The archive has been made for all cases.
  assert.equal(make!.text.trim(), "npx -y deno@2.9.6 task package");
  await fetching(project, add!.text);
  await write(checkout, "payments.test.mjs");
  const workflow = await write(checkout, ".github/workflows/test.yml");
  await succeed(project, [
    "cp",
    "-R",
    "package.json",
    "package-lock.json",
    "vendor",
    checkout.path,
  ]);

  await write(project, "payments.test.js");
  await fetching(project, `npm install --save-dev ${JEST}`);
  assert.match(await succeed(project, ["npx", "jest"]), /Tests: +1 passed/);

  // Compiling the linter takes some seconds, so only CI does it.
  if (IN_CI) await fetching(checkout, `"${ACTIONLINT}" .github/workflows/test.yml`);
  const steps = [...(await Deno.readTextFile(workflow)).matchAll(/- run: (.*)/g)];
  const [install, test] = steps.map(([, command]) => command!);
  assert.equal(install, "npm ci");
  const elsewhere = join(folder, "not on the runner");
  await Deno.rename(clone, elsewhere);
  try {
    await fetching(checkout, install);
    assert.match(await succeed(checkout, ["bash", "-c", test!]), /pass 2/);
  } finally {
    await Deno.rename(elsewhere, clone);
  }
}

/** Runs a script that fetches packages. */
async function fetching({ path, clone }: InstalledPackage, script: string): Promise<void> {
  const env = { clone, npm_config_ignore_scripts: "true" };
  await outputOf(["bash", "-eu", "-c", script], { cwd: path, env });
}

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
  const { code, output } = await runCommand({ args, cwd: path, env });
  assert.equal(code, 0, `${args.join(" ")}\n${output}`);
  return output;
}
