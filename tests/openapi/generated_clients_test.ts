/**
 * Clients that generators of other languages make from docs/openapi.json compile, and work against
 * a running service: a create, the same create again, a decline, a list and a refund.
 * `.ci/client_generators FOLDER` installs the generators; the variable CLIENT_GENERATORS names the
 * folder.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { testWith } from "../support/common/programs.ts";
import { outputOf } from "../support/common/running_command.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { withServedService } from "../support/service/served_service.ts";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));
const DOCUMENT = join(PROJECT, "docs/openapi.json");
const PROGRAMS = join(PROJECT, "tests/support/openapi");
/** The configurations that readers copy beside the document. */
const CONFIGURATIONS = join(PROJECT, "docs/clients");
/** The folder with the generators. */
const INSTALLED = Deno.env.get("CLIENT_GENERATORS");

/** A language with a generator. */
interface ClientLanguage {
  name: string;
  generator: string;
  /** File in the folder of the generators without which the test is left out. */
  needs: string;
  /** Makes the client and compiles the program, in an empty folder. Returns the program. */
  build(folder: string, installed: string): Promise<readonly string[]>;
  /** The file of the client in that folder, and the most lines that it may have. */
  size?: { file: string; lines_max: number };
}

/** Every language that CI compiles. */
const CLIENT_LANGUAGES: readonly ClientLanguage[] = [
  {
    name: "Go",
    generator: "oapi-codegen",
    needs: "go/oapi-codegen",
    size: { file: "payments/client.gen.go", lines_max: 10_000 },
    async build(folder, installed) {
      const module = join(installed, "go");
      await Deno.mkdir(join(folder, "payments"));
      for (const name of ["go.yaml", "go_overlay.yaml"]) {
        await Deno.copyFile(join(CONFIGURATIONS, name), join(folder, name));
      }
      await runIn(folder, [join(module, "oapi-codegen"), "-config", "go.yaml", DOCUMENT]);
      for (const name of ["go.mod", "go.sum"]) {
        await Deno.copyFile(join(module, name), join(folder, name));
      }
      await Deno.copyFile(join(PROGRAMS, "generated_client.go"), join(folder, "main.go"));
      await runIn(folder, ["go", "build", "-o", "program", "."], { GOFLAGS: "-mod=mod" });
      return [join(folder, "program")];
    },
  },
  {
    name: "Python",
    generator: "openapi-python-client",
    needs: "python/bin/openapi-python-client",
    async build(folder, installed) {
      const bin = join(installed, "python/bin");
      const options = ["--path", DOCUMENT, "--meta", "none", "--output-path"];
      await runIn(folder, [
        join(bin, "openapi-python-client"),
        "generate",
        "--fail-on-warning",
        ...options,
        "payments_api_client",
      ], { PATH: `${bin}:${Deno.env.get("PATH")}` });
      // Unlike an import, this compiles every module.
      await runIn(folder, [join(bin, "python"), "-m", "compileall", "-q", "payments_api_client"]);
      await Deno.copyFile(join(PROGRAMS, "generated_client.py"), join(folder, "program.py"));
      return [join(bin, "python"), "program.py"];
    },
  },
  {
    name: "Java",
    generator: "openapi-generator",
    needs: "java/openapi-generator-cli-7.22.0.jar",
    async build(folder, installed) {
      const jar = join(installed, this.needs);
      // The library "native" refuses null for members such as next_action. Without the property the
      // client refuses members that a later release adds.
      const options = ["-g", "java", "--library", "okhttp-gson", "-i", DOCUMENT, "-o", "client"];
      options.push("--additional-properties=disallowAdditionalPropertiesIfNotPresent=false");
      await runIn(folder, ["java", "-jar", jar, "generate", ...options]);
      const classpath = `classes:${join(installed, "java/libraries")}/*`;
      await Deno.copyFile(
        join(PROGRAMS, "GeneratedClient.java"),
        join(folder, "GeneratedClient.java"),
      );
      await runIn(folder, [
        ...["javac", "-nowarn", "-proc:none", "-cp", classpath, "-d", "classes"],
        ...["-sourcepath", "client/src/main/java"],
        "GeneratedClient.java",
        ...await filesBelow(join(folder, "client/src/main/java")),
      ]);
      return ["java", "-cp", classpath, "GeneratedClient"];
    },
  },
];

const EXPECTED = [
  "create: completed 1999 EUR",
  "create again: true",
  "decline: payment_declined declined use_another_method",
  "list: 2 declined false",
  "refund: completed 500 partially_refunded",
];

for (const language of CLIENT_LANGUAGES) {
  const { name, generator, needs, size } = language;
  testWith(
    generator,
    INSTALLED !== undefined &&
      await Deno.stat(join(INSTALLED, needs)).then(() => true, () => false),
    `docs/openapi.json makes a client for ${name} with ${generator}`,
    () =>
      withServedService(({ service, base_url }) =>
        withTemporaryFolder(async (folder) => {
          const env = { PAYMENTS_BASE_URL: base_url, PAYMENTS_API_KEY: service.key.text };
          assert.deepEqual(await runClient(language, folder, env), EXPECTED);
          if (size === undefined) return;
          const lines = (await Deno.readTextFile(join(folder, size.file))).split("\n").length;
          assert.ok(lines <= size.lines_max, `${size.file} has ${lines} lines`);
        })
      ),
  );
}

Deno.test("docs/clients.md names the versions of the generators that CI installs", async () => {
  const [page, script] = await Promise.all([
    Deno.readTextFile(new URL("../../docs/clients.md", import.meta.url)),
    Deno.readTextFile(new URL("../../.ci/client_generators", import.meta.url)),
  ]);
  const named = page.match(/[\w.-]+(@v|==|cli:)\d+(\.\d+)+/g)!;
  assert.equal(named.length, 4);
  for (const version of named) assert.ok(script.includes(version), version);
});

/** Makes the client of the language, runs its program, and returns the lines that it prints. */
async function runClient(
  language: ClientLanguage,
  folder: string,
  env: { PAYMENTS_BASE_URL: string; PAYMENTS_API_KEY: string },
): Promise<string[]> {
  if (!INSTALLED) throw new Error("CLIENT_GENERATORS is not set: see .ci/client_generators");
  await Deno.mkdir(folder);
  const program = await language.build(folder, INSTALLED);
  return (await runIn(folder, program, env)).trim().split("\n");
}

/** Runs a command to its end and returns its output. */
const runIn = (cwd: string, command: readonly string[], env: Record<string, string> = {}) =>
  outputOf(command, { cwd, env });

async function filesBelow(folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = join(folder, name);
    files.push(...(isDirectory ? await filesBelow(path) : [path]));
  }
  return files;
}
