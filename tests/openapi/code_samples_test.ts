/**
 * The code samples of the reference page run as they stand: in every language the first example of
 * each operation, with the ids of a sandbox of its own. The response has the members of the
 * recorded one. An alias has the sample of its operation with another path.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import {
  type CodeSample,
  codeSamples,
  type SampleCall,
} from "../../tools/generate/code_samples/code_samples.ts";
import { readExamples } from "../../tools/generate/openapi/examples.ts";
import { ADDRESSES, mainOperation } from "../../tools/generate/openapi/operations.ts";
import {
  buildReferenceDocument,
  type DocumentedOperation,
  sampleCall,
} from "../../tools/site/reference_document.ts";
import { missingPrograms, testWith } from "../support/common/programs.ts";
import { outputOf } from "../support/common/running_command.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";
import { CATALOGUE } from "../support/catalogue/requests.ts";
import { fill, firstValues, saveId } from "../support/catalogue/run_catalogue.ts";
import { RELAY_TOKEN } from "../support/service/service.ts";
import { type ServedService, withServedService } from "../support/service/served_service.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";

/** A value that a sample has printed: of JSON, or a text. */
type Printed = Record<string, unknown> | string;

/** Runs samples of one language, one at a time. */
interface SampleRunner {
  /** @param call the request that the sample sends */
  run(source: string, call: SampleCall): Promise<Printed>;
  close(): Promise<void>;
}

/** A language of the samples. */
interface SampleLanguage {
  /** As in `label` of a sample. */
  label: string;
  /** Program that the samples need; null for a part of Deno. */
  program: string | null;
  open(env: Readonly<Record<string, string>>): SampleRunner;
}

/** Python needs the package requests, which `.ci/client_generators FOLDER` installs there. */
const INSTALLED = Deno.env.get("CLIENT_GENERATORS");
const CLIENT = new URL("../../packages/client/mod.ts", import.meta.url);

/** Runs each program, a line of JSON, and prints the printed value as a line of JSON. */
const PYTHON = `
import json, sys
for line in sys.stdin:
    printed = []
    names = {"print": lambda *values: printed.append(values[-1])}
    exec(compile(json.loads(line), "sample.py", "exec"), names)
    print(json.dumps(printed[0]), flush=True)
`;

/** Every language of the samples. */
const SAMPLE_LANGUAGES: readonly SampleLanguage[] = [
  { label: "curl", program: "curl", open: runIn("sh", "-c") },
  { label: "TypeScript", program: null, open: runHere },
  {
    label: "Python",
    program: INSTALLED ? join(INSTALLED, "python/bin/python") : "python3 with requests",
    open: runInOne(join(INSTALLED ?? "", "python/bin/python"), "-c", PYTHON),
  },
];

const ROOT = new URL("../../", import.meta.url);
const BASE_URL = "http://127.0.0.1:54321/functions/v1";

const { paths } = await buildReferenceDocument(BASE_URL, BASE_URL) as {
  paths: Record<string, Record<string, DocumentedOperation & { "x-codeSamples": CodeSample[] }>>;
};
const EXAMPLES = await readExamples();
const DOCUMENTED = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation }))
);

Deno.test("the reference document shows every operation in curl, TypeScript and Python", () => {
  for (const { operation } of DOCUMENTED) {
    const labels = operation["x-codeSamples"].map(({ label }) => label);
    assert.deepEqual(labels, ["curl", "TypeScript", "Python"], operation.operationId);
  }
});

Deno.test("the samples in TypeScript have the types of the client", () =>
  withTemporaryFolder(async (folder) => {
    await Deno.mkdir(folder);
    for (const { operation } of DOCUMENTED) {
      const { source } = operation["x-codeSamples"].find(({ lang }) => lang === "typescript")!;
      const module = source.replace(
        "@payments-api/client",
        new URL("packages/client/mod.ts", ROOT).href,
      );
      await Deno.writeTextFile(
        join(folder, `${operation.operationId}.ts`),
        `${module}\nexport {};`,
      );
    }
    const check = [Deno.execPath(), "check", "--quiet", "--no-config", "--no-lock", "."];
    await outputOf(check, { cwd: folder, env: { NO_COLOR: "1" } });
  }));

for (const { label, program, open } of SAMPLE_LANGUAGES) {
  testWith(
    program ?? "Deno",
    program === null || (await missingPrograms([program])).length === 0,
    `the samples for ${label} get the recorded responses`,
    () =>
      withServedService(async (served) => {
        const runner = open({
          PAYMENTS_BASE_URL: served.base_url,
          PAYMENTS_API_KEY: served.service.key.text,
          RELAY_TOKEN,
        });
        try {
          const run = (call: SampleCall) => {
            const sample = codeSamples(call).find((sample) => sample.label === label)!;
            return runner.run(sample.source, call);
          };
          await runExamples(served, run);
          await runWithoutExamples(served, run);
        } finally {
          await runner.close();
        }
      }, { request_log: true }),
  );
}

/** Sends every example request in order, the first of each operation with its sample. */
async function runExamples(
  { service, base_url }: ServedService,
  run: (call: SampleCall) => Promise<Printed>,
): Promise<void> {
  const receiver = openRecorder();
  try {
    const saved = firstValues(receiver.url("/webhooks"));
    const shown = new Set<string>();
    for (const request of CATALOGUE) {
      const { operation } = request;
      const { method, path, id, body, options } = fill(request, saved);
      let response: Printed;
      if (shown.has(operation)) {
        response = (await service.call(method, path, options)).body;
      } else {
        shown.add(operation);
        const address = ADDRESSES.find(({ id }) => id === operation)!;
        const documented = DOCUMENTED.find((own) => own.operation.operationId === operation)!;
        const call = sampleCall(documented.operation, method, address.path, base_url, EXAMPLES);
        const sent_to = id === null ? call.path : call.path.replace(call.id!, id);
        response = await run({ ...call, path: sent_to, id, body: body ?? null });
        const [recorded] = Object.values(EXAMPLES.operations[mainOperation(operation)]!.responses!);
        assert.deepEqual(Object.keys(response), Object.keys(recorded!.value), operation);
      }
      saveId(request, response, saved);
    }
  } finally {
    await receiver.close();
  }
}

/** Runs the samples of the addresses without recorded examples: they take no body and no id. */
async function runWithoutExamples(
  { base_url }: ServedService,
  run: (call: SampleCall) => Promise<Printed>,
): Promise<void> {
  for (const { path, method, operation } of DOCUMENTED) {
    if (ADDRESSES.some(({ id }) => id === operation.operationId)) continue;
    const response = await run(
      sampleCall(operation, method.toUpperCase(), path, base_url, EXAMPLES),
    );
    assert.ok(
      typeof response === "string" || !("error" in response),
      `${operation.operationId}: ${JSON.stringify(response)}`,
    );
  }
}

/** Runs each sample in a process of its own. */
function runIn(program: string, ...args: string[]): SampleLanguage["open"] {
  return (env) => ({
    async run(source) {
      const command = new Deno.Command(program, { args: [...args, source], env, stderr: "null" });
      const text = new TextDecoder().decode((await command.output()).stdout);
      assert.ok(text !== "", `The sample has failed:\n${source}`);
      return text.startsWith("#") ? text : JSON.parse(text);
    },
    close: () => Promise.resolve(),
  });
}

/** Runs all samples in one process, because Python takes long to load its packages. */
function runInOne(program: string, ...args: string[]): SampleLanguage["open"] {
  return (env) => {
    const child = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "ignore"],
    });
    const ended = once(child, "close");
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      async run(source) {
        child.stdin.write(`${JSON.stringify(source)}\n`);
        const { done, value } = await lines.next();
        assert.ok(!done, `The sample has failed:\n${source}`);
        return JSON.parse(value);
      },
      async close() {
        child.stdin.end();
        await ended;
      },
    };
  };
}

/** Imports each sample as a module with its own console, so that it can run in this process. */
function runHere(env: Readonly<Record<string, string>>): SampleRunner {
  const before = new Map(Object.keys(env).map((name) => [name, Deno.env.get(name)]));
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  const printed: Printed[] = [];
  const { fetch } = globalThis;
  let sent: RequestInit = {};
  Object.assign(globalThis, {
    printSampleValue: (...values: Printed[]) => printed.push(values.at(-1)!),
    fetch(url: string, init: RequestInit = {}) {
      sent = init;
      return fetch(url, init);
    },
  });
  return {
    async run(source, { method, body }) {
      const own = "const console = { log: globalThis.printSampleValue };";
      const module = `${own}\n${source.replace('"@payments-api/client"', `"${CLIENT}"`)}`;
      const file = await Deno.makeTempFile({ suffix: ".ts" });
      try {
        await Deno.writeTextFile(file, module);
        await import(`file://${file}`);
      } finally {
        await Deno.remove(file);
      }
      const sent_body = JSON.parse(String(sent.body ?? "{}"));
      assert.deepEqual([sent.method ?? "GET", sent_body], [method, body ?? {}], source);
      return printed.pop()!;
    },
    close() {
      globalThis.fetch = fetch;
      for (const [name, value] of before) {
        if (value === undefined) Deno.env.delete(name);
        else Deno.env.set(name, value);
      }
      return Promise.resolve();
    },
  };
}
