/**
 * The bill of materials of a package (SBOM, CycloneDX) and the licenses of everything in it. npm
 * makes it from a lock file of the packages that are bundled, and of those that the package manager
 * installs beside them.
 */

import { join } from "node:path";
import { runProgram } from "../run_program.ts";
import type { Manifest } from "../publication/publication.ts";

interface Part {
  name: string;
  version: string;
}

export interface Component extends Part {
  /** Its SPDX expression. Null: the package names none. */
  license: string | null;
}

/** The members of CycloneDX that are read here. */
interface Bill {
  components: CycloneComponent[];
  /** Each by the references of the components, and of the package itself. */
  dependencies: { ref: string; dependsOn: string[] }[];
}

interface CycloneComponent extends Part {
  "bom-ref": string;
  licenses?: { license?: { id?: string; name?: string }; expression?: string }[];
}

/** Licenses that let users pass the packages on without further duties than to name the authors. */
const ALLOWED = new Set([
  ...["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense"],
]);

/**
 * Writes the bill of a package.
 * @param bundled the packages in its bundles
 * @returns its components
 * @throws {Error} if npm resolves a bundled package to another version than the bundle has
 */
export async function writeBill(
  path: string,
  { name, version, license, description, optionalDependencies }: Manifest,
  bundled: readonly Part[],
): Promise<Component[]> {
  const folder = await Deno.makeTempDir({ prefix: "payments-bill-" });
  try {
    const dependencies = Object.fromEntries(bundled.map((one) => [one.name, one.version]));
    const manifest = { name, version, license, description, dependencies, optionalDependencies };
    await Deno.writeTextFile(join(folder, "package.json"), JSON.stringify(manifest));
    const npm = (...args: string[]) => runProgram(["npm", ...args], { cwd: folder });
    await npm("install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund");
    const printed = await npm("sbom", "--package-lock-only", "--sbom-format=cyclonedx");
    const installed = Object.keys(optionalDependencies ?? {});
    const bill = billOfParts(JSON.parse(printed), bundled, installed);
    await Deno.writeTextFile(path, `${JSON.stringify(bill, null, 2)}\n`);
    return bill.components.map(({ name, version, licenses }) => ({
      name,
      version,
      license: licenses?.map(({ license, expression }) =>
        expression ?? license?.id ?? license?.name
      ).join(" AND ") ?? null,
    }));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/**
 * Returns a bill without the packages that npm adds because others depend on them, but that have no
 * code in the bundles.
 * @param installed names of the packages that the package manager installs beside the bundles
 * @throws {Error} if the bill has no bundled package of this version
 */
function billOfParts(
  bill: Bill,
  bundled: readonly Part[],
  installed: readonly string[],
): Bill {
  const titles = new Set(bundled.map(titleOf));
  const is_part = (one: Part) => titles.has(titleOf(one)) || installed.includes(one.name);
  const components = bill.components.filter(is_part);
  const missing = titles.difference(new Set(components.map(titleOf)));
  if (missing.size > 0) {
    throw new Error(`The bundles have versions that npm does not: ${[...missing].join(", ")}`);
  }
  const others = bill.components.filter((one) => !is_part(one)).map((one) => one["bom-ref"]);
  const dependencies = bill.dependencies.filter(({ ref }) => !others.includes(ref))
    .map(({ ref, dependsOn }) => ({
      ref,
      dependsOn: dependsOn.filter((other) => !others.includes(other)),
    }));
  return { ...bill, components, dependencies };
}

/** Returns the parts whose license a person must read before a release, a sentence for each. */
export function findLicenseProblems(components: readonly Component[]): string[] {
  return components.filter(({ license }) => !isAllowed(license)).map((one) =>
    `${titleOf(one)} has the license ${
      one.license ?? "(none)"
    }: read it, and add it to ALLOWED in ` +
    "tools/release/bill_of_materials.ts or replace the package"
  );
}

function isAllowed(license: string | null): boolean {
  const choices = license?.replace(/^\((.*)\)$/, "$1").split(" OR ") ?? [];
  return choices.some((choice) => ALLOWED.has(choice));
}

/** Returns a line for each component, sorted: its license, name and version. */
export function listLicenses(components: readonly Component[]): string {
  const lines = components.map((one) => `${(one.license ?? "").padEnd(14)} ${titleOf(one)}\n`);
  return [...new Set(lines)].sort().join("");
}

function titleOf({ name, version }: Part): string {
  return `${name} ${version}`;
}
