/**
 * The README and the tutorial are true. The test starts the service with the README's first
 * command, runs the shell blocks in order in one shell, and compares each response. It also
 * runs the programs in other languages, and compares tables of the documents that the README refers
 * to.
 *
 * readme_document.ts and readme_responses.ts define the forms of blocks and responses.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ERROR_CATALOGUE, type ErrorCode } from "../../shared/core/errors.ts";
import { OUTCOMES } from "../../shared/core/vocabulary.ts";
import { MASTER_SECRET_MIN_BYTES } from "../../shared/core/webhook_signature.ts";
import {
  DEFAULT_RATE_LIMIT,
  DEFAULT_STORAGE_GB,
  KEYS_AT_LIMIT,
} from "../../shared/functions/read_settings.ts";
import { assertResponse, NamesOfRun } from "../support/documents/readme_responses.ts";
import { projectFiles, readProjectFile } from "../support/documents/project_files.ts";
import { readCloneDocument } from "../support/documents/clone_documents.ts";
import {
  codeBlocks,
  codeTexts,
  type ShellExample,
  shellExamples,
  tableRows,
} from "../support/documents/readme_document.ts";
import { runInOneShell } from "../support/documents/readme_shell.ts";
import { lacksPrograms } from "../support/common/programs.ts";
import { launchStart, type LocalStart } from "../support/local/local_start.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { freePort } from "../support/common/free_port.ts";
import { outputOf } from "../support/common/running_command.ts";

const ROOT = new URL("../../", import.meta.url);
/** Variables that the code reads and other programs set. */
const SET_BY_OTHERS = ["SUPABASE_DB_URL", "SUPABASE_URL", "HOME", "XDG_CACHE_HOME"]
  .concat("LOCALAPPDATA");
/** The port of the receiver in the section on webhooks. The test replaces it by a free port. */
const RECEIVER_PORT = "4343";
const README = await readCloneDocument("README.md");
const PULL_REQUEST = "docs/tutorials/a_sandbox_for_every_pull_request.md";
const [CONFIGURATION, ERRORS] = await Promise.all(
  ["docs/operations/configuration.md", "docs/errors.md"].map(readCloneDocument),
) as [string, string];
/** The documents whose blocks are run. Each list is read in one shell. */
const SHELLS: (readonly [path: string, document: string])[][] = await Promise.all(
  [
    ["README.md", "docs/tutorial.md"],
    ["docs/tutorials/a_link_that_sells.md"],
    ["docs/tutorials/a_month_in_a_second.md"],
    ["docs/tutorials/a_year_of_renewals.md"],
    ["docs/tutorials/break_it_on_purpose.md"],
    ["docs/tutorials/the_same_bytes_every_run.md"],
    [PULL_REQUEST],
  ].map((paths) =>
    Promise.all(paths.map(async (path) => [path, await readCloneDocument(path)] as const))
  ),
);

/** A whole program of a document. */
interface Program {
  document: string;
  /** Language of its block. */
  fence: string;
  file: string;
  /** The command of the document, without the file. */
  command: readonly [string, ...string[]];
}

/** Every program that prints the payment of the key `order-1043`. */
const PROGRAMS: readonly Program[] = [
  {
    document: "README.md",
    fence: "ts",
    file: "pay.ts",
    command: [Deno.execPath(), "run", "--no-lock", "--check", "-A"],
  },
  { document: "README.md", fence: "python", file: "pay.py", command: ["python3"] },
];

/** The tables, by their first header cells. */
const VALUE_TABLES = ["Card", "IBAN or wallet", "`outcome`"];

const is_skipped = await lacksPrograms("the documents", ["bash", "curl", "node"]);

Deno.test({
  name: "README.md and the tutorials give the shown responses when run in order",
  ignore: is_skipped,
  // A reader's shell is in the folder that contains `.local/` and `packages/client/`.
  fn: (t) =>
    withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder);
      await Deno.symlink(new URL("packages", ROOT), join(folder, "packages"));
      const product = await launchStart({ DATA_DIR: join(folder, ".local") }, ["task", "start"]);
      try {
        // A reader repeats them in the same sandbox.
        for (const time of ["first", "second"]) {
          for (const pages of SHELLS) await runBlocks(t, folder, time, pages);
        }
        for (const { name, body, expected } of valueCases(ERRORS)) {
          await t.step(`${name} gives ${expected}`, async () => {
            assert.equal(await createValue(product, body), expected);
          });
        }
        await runPrograms(t, folder);
        await t.step("the workflow of docs/tutorials makes and deletes a sandbox", async () => {
          await runWorkflow(product, folder);
        });
      } finally {
        await product.end();
      }
    }),
});

async function runBlocks(
  t: Deno.TestContext,
  folder: string,
  time: string,
  pages: (typeof SHELLS)[number],
): Promise<void> {
  const port = freePort();
  const examples = pages.flatMap(([path, document]) =>
    shellExamples(document.replaceAll(RECEIVER_PORT, String(port)))
      .map((example): [string, ShellExample] => [path, example])
  );
  const scripts = examples.map(([, { script }]) => script);
  const { results, left_running } = await runInOneShell(folder, scripts);
  const names = new NamesOfRun();
  for (const [index, [path, example]] of examples.entries()) {
    const { stdout, stderr, code } = results[index]!;
    await t.step(`${path}, block at line ${example.line}, the ${time} time`, () => {
      assert.deepEqual({ stderr, code }, { stderr: "", code: 0 }, example.script);
      assertResponse(path, example, stdout, names);
    });
  }
  await t.step(`${pages.at(-1)![0]}: no process is left running, the ${time} time`, () => {
    assert.equal(left_running, "");
    Deno.listen({ hostname: "127.0.0.1", port }).close();
  });
}

/** Runs the programs in other languages. With one idempotency key, they create one payment. */
async function runPrograms(t: Deno.TestContext, folder: string) {
  const ids = new Set<string>();
  for (const program of PROGRAMS) {
    const name = program.command[0];
    await t.step({
      name: `${program.document}, ${program.file}: creates the payment`,
      ignore: await lacksPrograms(`${program.file} of ${program.document}`, [name]),
      fn: async () => {
        const { id, status } = await runProgram(program, folder);
        assert.equal(status, "completed");
        ids.add(id!);
      },
    });
  }
  assert.equal(ids.size, 1, [...ids].join(" "));
}

/** Runs the first and the last script of the workflow for pull requests, as a runner does. */
async function runWorkflow({ base_url, test_key, call }: LocalStart, folder: string) {
  const [workflow] = codeBlocks(await readCloneDocument(PULL_REQUEST)).filter(({ language }) =>
    language === "yaml"
  );
  const scripts = [...workflow!.text.matchAll(/run: \|\n((?: {10}.*\n)+)/g)].map(([, text]) =>
    text!
  );
  const outputs = join(folder, "outputs");
  const run = (script: string) =>
    outputOf(["bash", "-e", "-o", "pipefail", "-c", script], {
      env: {
        PAYMENTS_BASE_URL: base_url,
        PAYMENTS_API_KEY: test_key,
        NAME: 'feature/"quoted"',
        RUNNER_TEMP: folder,
        GITHUB_OUTPUT: outputs,
        GITHUB_RUN_ID: "1",
        GITHUB_RUN_ATTEMPT: "1",
        no_proxy: "127.0.0.1",
      },
    });
  const printed = await run(scripts[0]!);
  const written = await Deno.readTextFile(outputs);
  const [, key] = /^key=(sk_test_\w+)$/m.exec(written)!;
  const [, id] = /^id=(env_\w+)$/m.exec(written)!;
  assert.equal(printed, `::add-mask::${key}\n`);
  const path = `/api-v1-sandbox/sandboxes/${id}`;
  // deno-lint-ignore no-explicit-any
  const read = async () => (await call("GET", path)).body as any;
  assert.equal((await read()).name, 'feature/"quoted"');
  const end = scripts.at(-1)!.replace("${{ steps.sandbox.outputs.id }}", id!);
  assert.ok(scripts.length === 2 && !end.includes("${{"));
  await run(end);
  assert.ok(Date.parse((await read()).expires_at) <= Date.now());
}

Deno.test({
  name: "README.md begins with the clone, in which its commands run",
  ignore: is_skipped,
  fn: () =>
    withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder);
      const [start, test, ...others] = codeBlocks(README)
        .filter(({ language }) => language === "console").map(({ text }) => text);
      assert.deepEqual([test, others], ["npx -y deno@2.9.6 task test\n", []]);
      const stub = 'npx() { [ -f deno.json ] && [ -f packages/client/mod.ts ] && echo "$*"; }\n';
      const script = stub + start!.replace(/<[^>]+>/, `"${fileURLToPath(ROOT)}"`);
      const { results: [result] } = await runInOneShell(folder, [script]);
      assert.deepEqual([result!.stdout, result!.code], [
        "-y deno@2.9.6 task --node-modules-dir=manual start\n",
        0,
      ]);
    }),
});

Deno.test("README.md shows test values with their results in docs/errors.md", () => {
  const all = VALUE_TABLES.flatMap((header) => tableRows(ERRORS, header))
    .map((cells) => String([cells[0], cells.at(-1)]));
  const shown = tableRows(README, "Test value").map(String);
  assert.deepEqual(shown.filter((row) => !all.includes(row)), []);
  assert.ok(shown.length >= 8, `${shown.length} test values`);
});

Deno.test("README.md names every outcome", () => {
  const [, section = ""] = README.split("## Test values");
  const [, list = ""] = /`outcome` overrides every value: (.*?)\./s.exec(section) ?? [];
  assert.deepEqual(codeTexts(list).sort(), [...OUTCOMES].sort());
});

Deno.test("docs/operations/configuration.md explains every setting of the code and no other", async () => {
  const shown = tableRows(CONFIGURATION, "Variable").map(([cell]) => codeTexts(cell!)[0]!);
  const read = new Set<string>();
  for (const path of await projectFiles([".ts"], ["apps/", "shared/", "tools/testing/"])) {
    const text = await readProjectFile(path);
    for (
      const [, name] of text.matchAll(/\b(?:env|read|env\.get)\("([A-Z][A-Z_]+)"\)/g)
    ) {
      read.add(name!);
    }
  }
  for (const name of SET_BY_OTHERS) read.delete(name);
  assert.deepEqual(shown.sort(), [...read].sort());
  const rows = new Map(
    tableRows(CONFIGURATION, "Variable").map(([name, ...cells]) => [name, cells.join()]),
  );
  for (
    const [name, text] of [
      ["RATE_LIMIT_PER_SECOND", `\`${DEFAULT_RATE_LIMIT}\``],
      ["RATE_LIMIT_ACCOUNT_PER_SECOND", `${KEYS_AT_LIMIT} ×`],
      ["SANDBOX_STORAGE_GB", `\`${DEFAULT_STORAGE_GB}\``],
      ["WEBHOOK_MASTER_SECRET", `${MASTER_SECRET_MIN_BYTES} bytes`],
    ]
  ) assert.ok(rows.get(`\`${name}\``)?.includes(text!), name);
});

/**
 * Runs a program in a folder that holds `packages/client/` and `.local/`, like a clone, and returns
 * the payment that it prints.
 */
async function runProgram(
  { document, fence, file, command }: Program,
  folder: string,
): Promise<{ id: string | undefined; status: string | undefined }> {
  const page = await readCloneDocument(document);
  const blocks = codeBlocks(page).filter(({ language }) => language === fence);
  assert.equal(blocks.length, 1, `${fence} blocks of ${document}`);
  assert.ok(page.includes(` ${file}\``), `${document} does not say how to run ${file}`);
  await Deno.writeTextFile(join(folder, file), blocks[0]!.text);
  const printed = await outputOf([...command, file], {
    cwd: folder,
    env: { NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1" },
  });
  const [id] = /pay_[0-9a-z]{26}/.exec(printed) ?? [];
  const [, status] = /\b(?:"status":")?(completed|declined|failed)\b/.exec(printed) ?? [];
  return { id, status };
}

/** A row of a table of test values: the request, and HTTP status, payment status and code. */
interface ValueCase {
  name: string;
  body: Record<string, unknown>;
  expected: string;
}

/** Every row of the tables; the code after "error" decides the HTTP status. */
function valueCases(errors: string): ValueCase[] {
  return VALUE_TABLES.flatMap((header) =>
    tableRows(errors, header).flatMap((cells) => {
      const result = cells.at(-1);
      const [, error] = /error `(\w+)`/.exec(result!) ?? [];
      const [status, code = ""] = result!.startsWith("no payment")
        ? ["none", error]
        : codeTexts(result!);
      const http = error === undefined ? 201 : ERROR_CATALOGUE[error as ErrorCode].status;
      const expected = `${http} ${status} ${code}`.trim();
      return cells.slice(0, -1).flatMap(codeTexts)
        .map((name) => ({ name, body: bodyOf(name), expected }));
    })
  );
}

function bodyOf(value: string): Record<string, unknown> {
  if (/^[\d ]+$/.test(value)) {
    const cvc = value.startsWith("37") ? "1234" : "123";
    return { card: { number: value, exp_month: 12, exp_year: 2034, cvc } };
  }
  if (value.startsWith("pm_")) return { card: { token: value } };
  if (/^[a-z]+$/.test(value)) return { outcome: value };
  return value.startsWith("0x") ? { wallet: value } : { iban: value };
}

/** Creates a payment and returns the response in the form of a table row. */
async function createValue(product: LocalStart, body: Record<string, unknown>): Promise<string> {
  const sent = { amount: 1000, currency: "EUR", ...body };
  const response = await product.call("POST", "/api-v1-payments/v1/payments", sent);
  // deno-lint-ignore no-explicit-any
  const { error, ...created } = response.body as any;
  const payment = error?.payment ?? created;
  const code = error?.code ?? payment.failure_code ?? "";
  return `${response.status} ${payment.status ?? "none"} ${code}`.trim();
}
