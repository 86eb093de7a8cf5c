/**
 * Runs the README's code in other languages than the shell. Each block is the middle of a program,
 * and this module adds the beginning and the end that a reader's own program has.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { codeBlocks } from "./readme_document.ts";

/** A language of the README. */
interface Program {
  /** Language of its block. */
  fence: string;
  file: string;
  before: string;
  /** The end of the program, which prints the payment as JSON. */
  after: string;
  /** The command without the file. */
  command: readonly [string, ...string[]];
}

/** The base URL of the API, and a key. */
interface Api {
  base_url: string;
  test_key: string;
}

/** Every language of the README. */
export const PROGRAMS: readonly Program[] = [
  {
    fence: "ts",
    file: "program.ts",
    before: `
const base_url = Deno.env.get("BASE_URL")!;
const test_key = Deno.env.get("TEST_KEY")!;
`,
    after: "console.log(JSON.stringify(payment));",
    command: [Deno.execPath(), "run", "--no-lock", "--check", "--allow-env", "--allow-net"],
  },
  {
    fence: "python",
    file: "program.py",
    before: `
import json, os, urllib.request

base_url, test_key = os.environ["BASE_URL"], os.environ["TEST_KEY"]
`,
    after: "print(json.dumps(payment))",
    command: ["python3"],
  },
  {
    fence: "go",
    file: "program.go",
    before: `package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	base_url, test_key := os.Getenv("BASE_URL"), os.Getenv("TEST_KEY")
`,
    after: `
	if err != nil {
		panic(err)
	}
	io.Copy(os.Stdout, answer.Body)
}
`,
    command: ["go", "run"],
  },
];

/** Runs the block of a language in a folder that holds `client/`, and returns the payment. */
export async function runProgram(
  { fence, file, before, after, command: [name, ...args] }: Program,
  readme: string,
  folder: string,
  { base_url, test_key }: Api,
): Promise<{ id: string; status: string }> {
  const blocks = codeBlocks(readme).filter(({ language }) => language === fence);
  assert.equal(blocks.length, 1, `${fence} blocks of the README`);
  await Deno.writeTextFile(join(folder, file), `${before}${blocks[0]!.text}${after}\n`);
  const { code, stdout, stderr } = await new Deno.Command(name, {
    args: [...args, file],
    cwd: folder,
    env: { BASE_URL: base_url, TEST_KEY: test_key, NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1" },
    stdin: "null",
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}
