/**
 * The README is true: its shell blocks are run in order against the product, started as its first
 * command says, each answer is compared, and its tables are compared with the product and the code.
 *
 * What is run and how answers are written: readme_document.ts and readme_answers.ts.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { ERROR_CATALOGUE } from "../shared/core/errors.ts";
import { nextStatuses } from "../shared/domain/lifecycle.ts";
import { TEST_CARDS } from "../shared/domain/test_values.ts";
import { PAYMENTS_FUNCTION_OPERATIONS } from "../shared/http/payments_function.ts";
import { SANDBOX_OPERATIONS } from "../shared/http/sandbox_operations.ts";
import { OUTCOMES, PAYMENT_STATUSES } from "../shared/schema/payment.ts";
import { assertAnswer, NamesOfRun } from "./readme_answers.ts";
import { codeTexts, shellExamples, tableRows, uncheckedCurls } from "./readme_document.ts";
import { missingPrograms, runInOneShell } from "./readme_shell.ts";
import { launchStart, type LocalStart } from "./support/local_start.ts";
import { withTemporaryFolder } from "./support/temporary_folder.ts";

const ROOT = new URL("../", import.meta.url);
/** Read by the code, not set by people. */
const SET_BY_OTHERS = ["SUPABASE_DB_URL", "SUPABASE_URL", "CI", "TEST_SERVER", "PATH", "HOME"];
/** Where the receiver of the section on webhooks listens; a test takes a free port in its place. */
const RECEIVER_PORT = "4343";
const README = await Deno.readTextFile(new URL("README.md", ROOT));

const missing = await missingPrograms(["bash", "curl", "node"]);
if (missing.length > 0) {
  console.warn(`README.md is not run unless CI is set: ${missing.join(", ")} not installed`);
}

Deno.test({
  name: "README.md, run from the first block to the last, gives its answers",
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
  const examples = shellExamples(README.replaceAll(RECEIVER_PORT, String(port)));
  const scripts = examples.map(({ script }) => script);
  const { results, left_running } = await runInOneShell(folder, scripts);
  const names = new NamesOfRun();
  for (const [index, example] of examples.entries()) {
    const { stdout, stderr, code } = results[index]!;
    await t.step(`block at line ${example.line}`, () => {
      assert.deepEqual({ stderr, code }, { stderr: "", code: 0 }, example.script);
      assertAnswer(example, stdout, names);
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

Deno.test("README.md has no curl that is not run and compared", () => {
  assert.deepEqual(uncheckedCurls(README), []);
  const curls = shellExamples(README).filter(({ script }) => script.includes("curl"));
  assert.ok(curls.length >= 10, `${curls.length} blocks with curl`);
});

Deno.test("README.md lists every test card and every outcome", () => {
  const cards = tableRows(README, "Card").map(([cell]) => codeTexts(cell!)[0]!.replace(/ /g, ""));
  assert.deepEqual(cards.sort(), [...TEST_CARDS.keys()].sort());
  const outcomes = tableRows(README, "`outcome`").map(([cell]) => codeTexts(cell!)[0]);
  assert.deepEqual(outcomes.sort(), [...OUTCOMES].sort());
});

Deno.test("README.md shows for each status what it can become", () => {
  const shown = tableRows(README, "Status").map(([status, next]) => {
    return [codeTexts(status!)[0]!, codeTexts(next!).sort()];
  });
  const standing = { amount_minor: 1000, amount_refunded: 0 };
  const expected = PAYMENT_STATUSES.map((status) => {
    const kinds = (["card", "sepa", "swift", "stablecoin"] as const).flatMap((method_kind) =>
      nextStatuses({ ...standing, status, method_kind })
    );
    return [status, [...new Set(kinds)].sort()];
  });
  assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(expected));
});

Deno.test("README.md shows status and type of every error code", () => {
  const shown = tableRows(README, "HTTP").flatMap(([status, type, codes]) =>
    codeTexts(codes!).map((code) => [code, { status: Number(status), type: codeTexts(type!)[0] }])
  );
  assert.deepEqual(Object.fromEntries(shown), ERROR_CATALOGUE);
});

Deno.test("README.md lists every operation, and no other", () => {
  const shown = tableRows(README, "Function").flatMap(([, paths]) => {
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

Deno.test("README.md explains every setting that the code reads, and no other", async () => {
  const shown = tableRows(README, "Variable").map(([cell]) => codeTexts(cell!)[0]!);
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
