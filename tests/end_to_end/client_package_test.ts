/**
 * The client as its users get it: packed, installed into an empty project, type-checked there with
 * every check on, and run on Node and Bun against the service. The code comes from its README.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PaymentsClient } from "../../packages/client/mod.ts";
import { VERSION } from "../../packages/client/user_agent.ts";
import { methodsOf } from "../../tools/generate/code_samples/client_methods.ts";
import { readCloneDocument } from "../support/documents/clone_documents.ts";
import { codeBlocks, codeTexts, tableRows } from "../support/documents/readme_document.ts";
import { lacksPrograms } from "../support/common/programs.ts";
import { outputOf } from "../support/common/running_command.ts";
import { variablesOf } from "../support/package/command_line.ts";
import { OFFLINE, OTHER_NODES, otherAccount } from "../support/package/installed_package.ts";
import { copySources, withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { withServedService } from "../support/service/served_service.ts";

const CLIENT = new URL("../../packages/client/", import.meta.url);
const README = await readCloneDocument("packages/client/README.md");
const PACKAGE = JSON.parse(await Deno.readTextFile(new URL("package.json", CLIENT)));
/** The compiler that builds the package also checks the user's project. */
const TYPESCRIPT = /typescript@[\d.]+/.exec(PACKAGE.scripts.prepack)![0];
const NODE_TYPES = "@types/node@20.19.25";
const BUN = "bun@1.4.5";

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    target: "es2022",
    lib: ["es2022"],
    types: ["node"],
    module: "nodenext",
  },
  files: ["shop.ts"],
};

Deno.test({
  name: "the client's package can be installed, type-checked and run as in its README",
  ignore: await lacksPrograms("the client's package", ["node", "npm"]),
  fn: (t) =>
    withTemporaryFolder(async (folder) => {
      const project = join(folder, "project");
      await Deno.mkdir(project, { recursive: true });
      const blocks = codeBlocks(README);
      const source = blocks.filter(({ language }) => language === "ts").map(({ text }) => text);
      const [expected] = blocks.filter(({ language }) => language === "text");
      await Deno.writeTextFile(join(project, "package.json"), '{"private":true,"type":"module"}');
      await Deno.writeTextFile(join(project, "tsconfig.json"), JSON.stringify(TSCONFIG));
      await Deno.writeTextFile(join(project, "shop.ts"), source.join("\n"));

      let archive = "";
      await t.step("npm pack includes the needed files and no sources", async () => {
        await copySources(fileURLToPath(CLIENT), join(folder, "packages/client"));
        const packed = await run(["npm", "pack", "--json", "./packages/client"], folder);
        // npm 10 and older print the output of prepack before the JSON.
        const [{ filename, files }] = JSON.parse(packed.slice(packed.indexOf("[\n")));
        const paths = files.map(({ path }: { path: string }) => path);
        for (const path of ["LICENSE", "README.md", "dist/mod.js", "dist/mod.d.ts"]) {
          assert.ok(paths.includes(path), path);
        }
        const left_over = paths.filter((path: string) => /\.ts$/.test(path))
          .filter((path: string) => !/^dist\/\w+\.d\.ts$/.test(path));
        assert.deepEqual(left_over, []);
        archive = join(folder, filename);
        await run(["npm", "install", archive, NODE_TYPES], project);
      });
      await t.step("the user's project passes the type checker", async () => {
        await run(["npm", "exec", "--yes", `--package=${TYPESCRIPT}`, "--", "tsc"], project);
      });
      await t.step("it can be installed and used offline, by another account than root", () =>
        withServedService(async (served) => {
          const other = await otherAccount();
          const account = other ?? {};
          const cwd = join(folder, "offline");
          const manifest = join(cwd, "package.json");
          const program = join(cwd, "shop.js");
          await Deno.mkdir(cwd);
          await Deno.writeTextFile(manifest, '{"private":true,"type":"module"}');
          await Deno.copyFile(join(project, "shop.js"), program);
          for (const path of other === null ? [] : [cwd, manifest, program]) {
            await Deno.chown(path, other!.uid, other!.gid);
          }
          const env = {
            ...OFFLINE,
            HOME: cwd,
            npm_config_cache: join(cwd, "cache"),
            ...variablesOf(served),
          };
          const args = ["npm", "install", "--no-audit", "--no-fund", archive];
          await outputOf(args, { cwd, env, account });
          assert.equal(await outputOf(["node", program], { cwd, env, account }), expected!.text);
        }));
      const programs: [name: string, command: string[]][] = [
        ["Node", ["node"]],
        ...OTHER_NODES.map((major): [string, string[]] => {
          const node = `node@${major}`;
          return [node, fetched(node, "node")];
        }),
        ["Bun", fetched(BUN, "bun")],
      ];
      for (const [name, program] of programs) {
        await t.step(`the README's code runs on ${name} and prints the shown output`, () =>
          withServedService(async (served) => {
            const printed = await run([...program, "shop.js"], project, variablesOf(served));
            assert.equal(printed, expected!.text);
          }));
      }
    }),
});

Deno.test("the client's package and its code have one name and version", async () => {
  const jsr = JSON.parse(await Deno.readTextFile(new URL("jsr.json", CLIENT)));
  assert.equal(PACKAGE.version, VERSION);
  assert.deepEqual([jsr.name, jsr.version, jsr.license], [
    PACKAGE.name,
    PACKAGE.version,
    PACKAGE.license,
  ]);
  assert.ok(README.includes(`${PACKAGE.name.replace("@", "").replace("/", "-")}-${VERSION}.tgz`));
  const licenses = ["LICENSE", "../../LICENSE"].map((path) =>
    Deno.readTextFile(new URL(path, CLIENT))
  );
  const [own, root] = await Promise.all(licenses);
  assert.equal(own, root);
});

Deno.test("the client's README lists every resource and method and no other", () => {
  const shown = tableRows(README, "`client.`").map(([resource, methods]) => [
    codeTexts(resource!)[0],
    codeTexts(methods!).sort(),
  ]);
  const client = new PaymentsClient({ apiKey: "sk_test_x", baseUrl: "http://localhost" });
  const real = Object.entries(client).map(([name, resource]) => [name, methodsOf(resource).sort()]);
  assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(real));
});

/** The command that runs a program of a package that npm fetches. */
function fetched(package_version: string, program: string): string[] {
  return ["npm", "exec", "--yes", `--package=${package_version}`, "--", program];
}

/** Runs a program and returns its output. Throws if the program fails. */
function run(args: readonly string[], cwd: string, env: Record<string, string> = {}) {
  return outputOf(args, { cwd, env: { npm_config_audit: "false", ...env } });
}
