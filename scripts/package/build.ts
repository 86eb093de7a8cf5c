/**
 * `deno task package` makes the npm package in `artifacts/`: the folder and its archive, which
 * `npm install` takes. The package has everything that a start needs, so a start fetches nothing:
 * programs as bundles, the console and the reference as files, and the migrations. The package
 * manager installs Deno and PostgreSQL with it.
 *
 * @see docs/decisions/0033-one-npm-package.md
 */

import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as library from "../../package/mod.ts";
import PACKAGE from "../../package/package.json" with { type: "json" };
import { MOUNT } from "../local/local_server.ts";
import { MIGRATIONS_DIR } from "../schema/migrate.ts";
import { buildConsoleSite } from "../sites/console_site.ts";
import { buildReferenceSite } from "../sites/reference_site.ts";
import { PACKAGED_ORIGIN, writeSiteFolder } from "../sites/site_folder.ts";
import { renderNotices } from "./notices.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../", import.meta.url));
const ARTIFACTS = join(PROJECT_DIR, "artifacts");
/** The programs, by the paths of their bundles. The depth of a path is part of the program. */
const PROGRAMS = {
  "dist/cli.js": "package/cli.ts",
  "dist/service/start.js": "scripts/local/package_start.ts",
} as const;
/** The module for `import` and `require`: Jest and older releases of Node only require CommonJS. */
const LIBRARY = "dist/mod.cjs";
/** The compiler of the client's package, which writes the types of this one too. */
const TYPESCRIPT = "typescript@7.0.2";

if (import.meta.main) {
  try {
    const archive = await buildPackage(Deno.args[0] ?? ARTIFACTS);
    console.log(`Written: ${relative(Deno.cwd(), archive)}`);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(1);
  }
}

/**
 * Makes the package.
 * @param parent the folder for the package's folder and archive
 * @returns the path of the archive
 */
async function buildPackage(parent: string): Promise<string> {
  const folder = join(parent, PACKAGE.name);
  await Deno.remove(folder, { recursive: true }).catch(() => {});
  await Deno.mkdir(folder, { recursive: true });
  await Promise.all([
    ...Object.entries(PROGRAMS).map(([path, entry]) => bundle(entry, join(folder, path), "esm")),
    writeLibrary(join(folder, LIBRARY)),
    writeTypes(join(folder, "types")),
    writeSites(join(folder, "sites")),
    copyMigrations(join(folder, "supabase", "migrations")),
    renderNotices(PROJECT_DIR, ["scripts/local/package_start.ts", "console/main.tsx"])
      .then((text) => Deno.writeTextFile(join(folder, "THIRD_PARTY_NOTICES"), text)),
    ...["package/package.json", "package/README.md", "LICENSE"].map((path) =>
      Deno.copyFile(join(PROJECT_DIR, path), join(folder, path.split("/").at(-1)!))
    ),
  ]);
  if (Deno.build.os !== "windows") await Deno.chmod(join(folder, "dist/cli.js"), 0o755);
  const packed = await run(["npm", "pack", "--silent", folder], parent);
  return join(parent, packed.trim().split("\n").at(-1)!);
}

async function bundle(entry: string, path: string, format: "esm" | "cjs"): Promise<void> {
  const options = ["--quiet", "--platform=deno", `--format=${format}`, "--output", path];
  await run([Deno.execPath(), "bundle", ...options, entry], PROJECT_DIR);
}

/** Writes the module. Its last line is not executed: Node reads the names for `import` from it. */
async function writeLibrary(path: string): Promise<void> {
  await bundle("package/mod.ts", path, "cjs");
  const names = Object.keys(library).join(", ");
  await Deno.writeTextFile(path, `0 && (module.exports = { ${names} });\n`, { append: true });
}

/** Writes declarations. `deno check` has checked the types, with those of Node. */
async function writeTypes(folder: string): Promise<void> {
  await run([
    ...["npm", "exec", "--yes", `--package=${TYPESCRIPT}`, "--", "tsc"],
    ...["--declaration", "--emitDeclarationOnly", "--noCheck", "--ignoreConfig"],
    ...["--rewriteRelativeImportExtensions", "--resolveJsonModule", "--target", "es2022"],
    ...["--module", "nodenext", "--types", "", "--rootDir", ".", "--outDir", folder],
    "package/mod.ts",
  ], PROJECT_DIR);
  // The types are those of a CommonJS module.
  await Deno.writeTextFile(join(folder, "package.json"), '{ "type": "commonjs" }\n');
}

async function writeSites(folder: string): Promise<void> {
  const cache = await Deno.makeTempDir({ prefix: "payments-reference-" });
  try {
    await writeSiteFolder(await buildConsoleSite(MOUNT), join(folder, "console"));
    const reference = await buildReferenceSite(cache, PACKAGED_ORIGIN + MOUNT);
    await writeSiteFolder(reference, join(folder, "reference"));
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
}

async function copyMigrations(folder: string): Promise<void> {
  await Deno.mkdir(folder, { recursive: true });
  for await (const { name } of Deno.readDir(MIGRATIONS_DIR)) {
    await Deno.copyFile(join(MIGRATIONS_DIR, name), join(folder, name));
  }
}

/** Runs a program and returns its output. Throws an error with its output if it fails. */
async function run([program, ...args]: readonly string[], cwd: string): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program!, {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", npm_config_update_notifier: "false" },
    stdin: "null",
  }).output();
  const [printed, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  if (!success) throw new Error(`${program} ${args.join(" ")} failed:\n${printed}${errors}`);
  return printed!;
}
