/**
 * `deno task package` makes the npm package in `artifacts/`: the folder and its archive, which
 * `npm install` takes. The package has everything that a start needs, so a start fetches nothing:
 * programs as bundles, the console and the documentation as files, and the migrations. The package
 * manager installs Deno and PostgreSQL with it.
 *
 * @see docs/decisions/0024-the-published-packages.md
 */

import { cp } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as library from "../../../packages/sandbox/mod.ts";
import PACKAGE from "../../../packages/sandbox/package.json" with { type: "json" };
import { CONSOLE_LINK, MOUNT } from "../../../apps/server/local/local_server.ts";
import { MIGRATIONS_DIR } from "../../../apps/server/migrations/migrate.ts";
import { buildCheckoutSite } from "../../site/checkout_site.ts";
import { buildConsoleSite } from "../../site/console_site.ts";
import { buildDocsSite } from "../../site/docs_site.ts";
import { buildReferenceSite, SCALAR } from "../../site/reference_site.ts";
import { PACKAGED_ORIGIN, writeSiteFolder } from "../../site/site_folder.ts";
import { renderPackageReadme } from "../../generate/installation.ts";
import { PUBLICATION, type Publication } from "../../publication/publication.ts";
import { writeManifestAndPage } from "./manifest_and_page.ts";
import { type Bundle, bundledPackages, renderNotices } from "./notices.ts";
import { packFolder, runNpmProgram, runProgram } from "../../run_program.ts";

const PROJECT_DIR = fileURLToPath(new URL("../../../", import.meta.url));
const ARTIFACTS = join(PROJECT_DIR, "artifacts");
/**
 * The command line, in `dist/cli.js`. Modules that a command imports only when it runs have files
 * of their own, so the SDK of `mcp` makes no other command slower.
 */
const COMMAND_LINE = "packages/sandbox/cli.ts";
/** The service. The depth of both paths in the package is part of the program. */
const SERVICE = {
  entry: "apps/server/local/package_start.ts",
  path: "dist/service/local/start.js",
} as const;
/** The module for `import` and `require`: Jest and older releases of Node only require CommonJS. */
const LIBRARY = "dist/mod.cjs";
const BUNDLES: readonly Bundle[] = [
  { entry: COMMAND_LINE, platform: "deno" },
  { entry: SERVICE.entry, platform: "deno" },
  { entry: "packages/sandbox/mod.ts", platform: "deno" },
  { entry: "apps/console/main.tsx", platform: "browser" },
  { entry: "apps/checkout/main.tsx", platform: "browser" },
  { entry: "apps/checkout/card/main.tsx", platform: "browser" },
  { entry: "tools/site/docs_site/page.ts", platform: "browser" },
];
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

export function packagesInBundles() {
  return bundledPackages(PROJECT_DIR, BUNDLES);
}

/**
 * Makes the package.
 * @param parent the folder for the package's folder and archive
 * @param publication where the package is installed from, for its page
 * @returns the path of the archive
 */
export async function buildPackage(
  parent: string,
  publication: Publication = PUBLICATION,
): Promise<string> {
  const folder = join(parent, PACKAGE.name);
  await Deno.remove(folder, { recursive: true }).catch(() => {});
  await Deno.mkdir(folder, { recursive: true });
  // Alone, because the first bundle on a machine fetches the bundler.
  await bundle(COMMAND_LINE, "esm", ["--code-splitting", "--outdir", join(folder, "dist")]);
  await Promise.all([
    bundle(SERVICE.entry, "esm", ["--output", join(folder, SERVICE.path)]),
    writeLibrary(join(folder, LIBRARY)),
    writeTypes(join(folder, "types")),
    writeSites(join(folder, "sites")),
    cp(MIGRATIONS_DIR, join(folder, "supabase", "migrations"), { recursive: true }),
    renderAllNotices().then((text) =>
      Deno.writeTextFile(join(folder, "THIRD_PARTY_NOTICES"), text)
    ),
    writeManifestAndPage(folder, "packages/sandbox", renderPackageReadme, publication),
    Deno.copyFile(join(PROJECT_DIR, "LICENSE"), join(folder, "LICENSE")),
  ]);
  if (Deno.build.os !== "windows") await Deno.chmod(join(folder, "dist/cli.js"), 0o755);
  return await packFolder(folder, parent);
}

/** The licenses of the packages in the bundles, and of files of others that the sites have. */
async function renderAllNotices(): Promise<string> {
  const font = await Deno.readTextFile(join(PROJECT_DIR, "apps/console/geist_license.txt"));
  return renderNotices(await packagesInBundles(), [
    [`${SCALAR.name} ${SCALAR.version}`, `License: ${SCALAR.license}`],
    ["Geist, the font", font],
  ]);
}

async function bundle(entry: string, format: "esm" | "cjs", output: string[]): Promise<void> {
  const options = ["--quiet", "--platform=deno", `--format=${format}`, ...output];
  await runProgram([Deno.execPath(), "bundle", ...options, entry], { cwd: PROJECT_DIR });
}

/** Writes the module. Its last line is not executed: Node reads the names for `import` from it. */
async function writeLibrary(path: string): Promise<void> {
  await bundle("packages/sandbox/mod.ts", "cjs", ["--output", path]);
  const names = Object.keys(library).join(", ");
  await Deno.writeTextFile(path, `0 && (module.exports = { ${names} });\n`, { append: true });
}

/** Writes declarations. `deno check` has checked the types, with those of Node. */
async function writeTypes(folder: string): Promise<void> {
  await runNpmProgram(TYPESCRIPT, [
    ...["tsc", "--declaration", "--emitDeclarationOnly", "--noCheck", "--ignoreConfig"],
    ...["--rewriteRelativeImportExtensions", "--resolveJsonModule", "--target", "es2022"],
    ...["--module", "nodenext", "--types", "", "--rootDir", ".", "--outDir", folder],
    "packages/sandbox/mod.ts",
  ], { cwd: PROJECT_DIR });
  // The types are those of a CommonJS module.
  await Deno.writeTextFile(join(folder, "package.json"), '{ "type": "commonjs" }\n');
}

async function writeSites(folder: string): Promise<void> {
  const cache = await Deno.makeTempDir({ prefix: "payments-reference-" });
  try {
    await writeSiteFolder(await buildConsoleSite(MOUNT), join(folder, "console"));
    await writeSiteFolder(await buildCheckoutSite(MOUNT), join(folder, "checkout"));
    await writeSiteFolder(await buildDocsSite(CONSOLE_LINK), join(folder, "docs"));
    const reference = await buildReferenceSite(cache, PACKAGED_ORIGIN + MOUNT);
    await writeSiteFolder(reference, join(folder, "reference"));
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
}
