/**
 * The README and the tutorial are true: their shell blocks are run in order, in one shell, against the
 * product, started by the README's first command. Each answer is compared, and so are the tables of
 * the documents that belong to the README.
 *
 * What is run and how answers are written: readme_document.ts and readme_answers.ts.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { nextStatuses } from "../shared/domain/lifecycle.ts";
import { TEST_CARDS } from "../shared/domain/test_values.ts";
import { PAYMENTS_FUNCTION_OPERATIONS } from "../shared/http/payments_function.ts";
import { SANDBOX_OPERATIONS } from "../shared/http/sandbox_operations.ts";
import { OUTCOMES, PAYMENT_STATUSES } from "../shared/schema/payment.ts";
import { assertAnswer, NamesOfRun } from "./readme_answers.ts";
import {
  codeTexts,
  type ShellExample,
  shellExamples,
  tableRows,
  uncheckedCurls,
} from "./readme_document.ts";
import { missingPrograms, runInOneShell } from "./readme_shell.ts";
import { launchStart, type LocalStart } from "./support/local_start.ts";
import { withTemporaryFolder } from "./support/temporary_folder.ts";

const ROOT = new URL("../", import.meta.url);
/** Read by the code, not set by people. */
const SET_BY_OTHERS = ["SUPABASE_DB_URL", "SUPABASE_URL", "CI", "TEST_SERVER", "PATH", "HOME"];
/** Where the receiver of the section on webhooks listens; a test takes a free port in its place. */
const RECEIVER_PORT = "4343";
const [README, TUTORIAL, REFERENCE, CONTRACT, OPERATIONS] = await Promise.all(
  [
    "README.md",
    ...["tutorial", "reference", "contract", "operations"].map((name) => `docs/${name}.md`),
  ]
    .map((path) => Deno.readTextFile(new URL(path, ROOT))),
) as [string, string, string, string, string];
/** Documents whose blocks are run, in the order in which a reader does. */
const RUN = [["README.md", README], ["docs/tutorial.md", TUTORIAL]] as const;

const missing = await missingPrograms(["bash", "curl", "node"]);
if (missing.length > 0) {
  console.warn(`The documents are not run unless CI is set: ${missing.join(", ")} not installed`);
}

Deno.test({
  name: "README.md and docs/tutorial.md, run from the first block to the last, give their answers",
  ignore: missing.length > 0 && Deno.env.get("CI") === undefined,
  // A reader's shell stands in the folder that holds `.local/` and `client/`.
  fn: (t) =>
    withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder);
      await Deno.symlink(new URL("client", ROOT), join(folder, "client"));
      const product = await launchStart({ DATA_DIR: join(folder, ".local") }, ["task", "start"]);
      try {
        await runBlocks(t, folder);
        for (const { name, body, expected } of valueCases()) {
          await t.step(`${name} gives ${expected}`, async () => {
            assert.equal(await create(product, body), expected);
          });
        }
      } finally {
        await product.end();
      }
    }),
});

async function runBlocks(t: Deno.TestContext, folder: string): Promise<void> {
  const port = freePort();
  const examples = RUN.flatMap(([path, document]) =>
    shellExamples(document.replaceAll(RECEIVER_PORT, String(port)))
      .map((example): [string, ShellExample] => [path, example])
  );
  const scripts = examples.map(([, { script }]) => script);
  const { results, left_running } = await runInOneShell(folder, scripts);
  const names = new NamesOfRun();
  for (const [index, [path, example]] of examples.entries()) {
    const { stdout, stderr, code } = results[index]!;
    await t.step(`${path}, block at line ${example.line}`, () => {
      assert.deepEqual({ stderr, code }, { stderr: "", code: 0 }, example.script);
      assertAnswer(path, example, stdout, names);
    });
  }
  await t.step("nothing is left running", () => {
    assert.equal(left_running, "");
    Deno.listen({ hostname: "127.0.0.1", port }).close();
  });
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

Deno.test("every curl of README.md and docs/tutorial.md is run and compared", () => {
  for (const [path, document] of RUN) assert.deepEqual(uncheckedCurls(document), [], path);
  const curls = RUN.flatMap(([, document]) => shellExamples(document))
    .filter(({ script }) => script.includes("curl"));
  assert.ok(curls.length >= 20, `${curls.length} blocks with curl`);
});

Deno.test("README.md lists every test card and every outcome", () => {
  const cards = tableRows(README, "Card").map(([cell]) => codeTexts(cell!)[0]!.replace(/ /g, ""));
  assert.deepEqual(cards.sort(), [...TEST_CARDS.keys()].sort());
  const outcomes = tableRows(README, "`outcome`").map(([cell]) => codeTexts(cell!)[0]);
  assert.deepEqual(outcomes.sort(), [...OUTCOMES].sort());
});

Deno.test("docs/contract.md has every move of a payment, and no other", () => {
  const shown = tableRows(CONTRACT, "From").flatMap(([from, , to]) => {
    const next = codeTexts(to!).filter((text) => PAYMENT_STATUSES.some((one) => one === text));
    return codeTexts(from!).flatMap((status) => next.map((one) => [status, one]));
  }).filter(([from, to]) => from !== to).map(String);
  const standing = { amount_minor: 1000, amount_refunded: 0 };
  const moves = PAYMENT_STATUSES.flatMap((status) =>
    (["card", "sepa", "swift", "stablecoin"] as const).flatMap((method_kind) =>
      nextStatuses({ ...standing, status, method_kind }).map((next) => `${status},${next}`)
    )
  );
  assert.deepEqual([...new Set(shown)].sort(), [...new Set(moves)].sort());
});

Deno.test("docs/reference.md lists every operation, and no other", () => {
  const shown = tableRows(REFERENCE, "Function").flatMap(([, paths]) => {
    let method = "";
    return codeTexts(paths!).map((text) => {
      const [path, verb = method] = text.split(" ").reverse();
      method = verb;
      return `${method} ${path}`;
    });
  });
  const served = [...PAYMENTS_FUNCTION_OPERATIONS, ...SANDBOX_OPERATIONS]
    .map(({ method, paths }) => `${method} ${paths[0].replace(/:(\w+)/g, "{$1}")}`);
  assert.deepEqual(shown.sort(), served.sort());
});

Deno.test("docs/operations.md explains every setting that the code reads, and no other", async () => {
  const shown = tableRows(OPERATIONS, "Variable").map(([cell]) => codeTexts(cell!)[0]!);
  const read = new Set<string>();
  for (const folder of ["scripts", "shared"]) {
    for await (const text of sources(new URL(`${folder}/`, ROOT))) {
      for (const [, name] of text.matchAll(/\b(?:env|read|env\.get)\("([A-Z][A-Z_]+)"\)/g)) {
        read.add(name!);
      }
    }
  }
  for (const name of SET_BY_OTHERS) read.delete(name);
  assert.deepEqual(shown.sort(), [...read].sort());
});

/** A row of a table of test values: what is sent, and HTTP status, payment status and code. */
interface ValueCase {
  name: string;
  body: Record<string, unknown>;
  expected: string;
}

function valueCases(): ValueCase[] {
  return ["Card", "IBAN or wallet", "`outcome`"].flatMap((header) =>
    tableRows(README, header).map(([value, http, payment, remark = ""]) => {
      const name = codeTexts(value!)[0]!;
      const status = codeTexts(payment!)[0] ?? "none";
      const code = header === "`outcome`" && status === "declined"
        ? "payment_declined"
        : /^`(.+?)`/.exec(remark)?.[1] ?? "";
      return { name, body: bodyOf(header, name), expected: `${http} ${status} ${code}`.trim() };
    })
  );
}

function bodyOf(header: string, value: string): Record<string, unknown> {
  if (header === "Card") {
    const cvc = value.startsWith("37") ? "1234" : "123";
    return { card: { number: value, exp_month: 12, exp_year: 2034, cvc } };
  }
  if (header === "`outcome`") return { outcome: value };
  return value.startsWith("0x") ? { wallet: value } : { iban: value };
}

/** Creates a payment and tells the answer as a table row would. */
async function create(product: LocalStart, body: Record<string, unknown>): Promise<string> {
  const sent = { amount: 1000, currency: "EUR", ...body };
  const answer = await product.call("POST", "/api-v1-payments/v1/payments", sent);
  // deno-lint-ignore no-explicit-any
  const { error, ...created } = answer.body as any;
  const payment = error?.payment ?? created;
  const code = error?.code ?? payment.failure_code ?? "";
  return `${answer.status} ${payment.status ?? "none"} ${code}`.trim();
}

/** The texts of all TypeScript files below a folder. */
async function* sources(folder: URL): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (isDirectory) yield* sources(new URL(`${name}/`, folder));
    else if (name.endsWith(".ts")) yield await Deno.readTextFile(new URL(name, folder));
  }
}
