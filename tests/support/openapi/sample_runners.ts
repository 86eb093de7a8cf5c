/**
 * Runs code samples of the reference page. `run` returns the value that a sample prints. Python
 * needs the package requests, which `.ci/client_generators FOLDER` installs; CLIENT_GENERATORS names
 * the folder.
 */

import { join } from "node:path";
import { TextLineStream } from "./text_lines.ts";

/** A value that a sample has printed: of JSON, or a text. */
export type Printed = Record<string, unknown> | string;

/** Runs samples of one language, one at a time. */
interface SampleRunner {
  run(source: string): Promise<Printed>;
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

const INSTALLED = Deno.env.get("CLIENT_GENERATORS");
const CLIENT = new URL("../../../packages/client/mod.ts", import.meta.url);

/** Runs each line of its input, a program as JSON, and prints the printed value as JSON. */
const PYTHON_LOOP = `
import json, sys
for line in sys.stdin:
    printed = []
    exec(compile(json.loads(line), "sample.py", "exec"), {"print": printed.append})
    sys.stdout.write(json.dumps(printed) + "\\n")
    sys.stdout.flush()
`;

/** Every language of the samples. */
export const SAMPLE_LANGUAGES: readonly SampleLanguage[] = [
  { label: "curl", program: "curl", open: runWithShell },
  { label: "TypeScript", program: null, open: runHere },
  {
    label: "Python",
    program: INSTALLED ? join(INSTALLED, "python/bin/python") : "python3 with requests",
    open: runWithPython,
  },
];

function runWithShell(env: Readonly<Record<string, string>>): SampleRunner {
  return {
    async run(source) {
      const command = new Deno.Command("sh", { args: ["-c", source], env, stderr: "null" });
      const { stdout } = await command.output();
      const text = new TextDecoder().decode(stdout);
      return text.startsWith("#") ? text : JSON.parse(text);
    },
    close: () => Promise.resolve(),
  };
}

/** Imports each sample as a module with a console of its own, so that it can run in this process. */
function runHere(env: Readonly<Record<string, string>>): SampleRunner {
  const before = new Map(Object.keys(env).map((name) => [name, Deno.env.get(name)]));
  for (const [name, value] of Object.entries(env)) Deno.env.set(name, value);
  const printed: Printed[] = [];
  Object.assign(globalThis, { printSampleValue: (value: Printed) => printed.push(value) });
  return {
    async run(source) {
      const own = "const console = { log: globalThis.printSampleValue };";
      const module = `${own}\n${source.replace('"@payments-api/client"', `"${CLIENT}"`)}`;
      const file = await Deno.makeTempFile({ suffix: ".ts" });
      try {
        await Deno.writeTextFile(file, module);
        await import(`file://${file}`);
      } finally {
        await Deno.remove(file);
      }
      return printed.pop()!;
    },
    close() {
      for (const [name, value] of before) {
        if (value === undefined) Deno.env.delete(name);
        else Deno.env.set(name, value);
      }
      return Promise.resolve();
    },
  };
}

function runWithPython(env: Readonly<Record<string, string>>): SampleRunner {
  const python = join(INSTALLED!, "python/bin/python");
  const child = new Deno.Command(python, {
    args: ["-c", PYTHON_LOOP],
    env,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const input = child.stdin.getWriter();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).pipeThrough(new TextLineStream())
    .getReader();
  return {
    async run(source) {
      await input.write(new TextEncoder().encode(`${JSON.stringify(source)}\n`));
      const { value, done } = await lines.read();
      if (done) throw new Error(`The sample has failed:\n${source}`);
      return JSON.parse(value)[0];
    },
    async close() {
      await input.close().catch(() => {});
      await child.status;
      await lines.cancel();
    },
  };
}
