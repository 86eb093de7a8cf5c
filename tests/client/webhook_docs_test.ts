/**
 * Runs the code of `docs/webhook_verification.md` unchanged: its functions on every vector, its
 * handlers on newly signed deliveries. A language whose interpreter is not installed is skipped and
 * named.
 */

import assert from "node:assert/strict";
// This import makes the package's files findable. A package that is not imported resolves to
// `npm:…`.
import "stripe";
import vectors from "../../packages/client/test_vectors/webhook_signatures.json" with {
  type: "json",
};
import { lacksPrograms } from "../support/common/programs.ts";
import { outputOf } from "../support/common/running_command.ts";
import { signDelivery } from "../../shared/core/webhook_signature.ts";

const ROOT = new URL("../../", import.meta.url);
const DOCUMENT = await Deno.readTextFile(new URL("docs/webhook_verification.md", ROOT));
const VECTORS_PATH = decodeURIComponent(
  new URL("packages/client/test_vectors/webhook_signatures.json", ROOT).pathname,
);
const VECTORS = vectors.vectors;
const [OLD_SECRET, NEW_SECRET, FOREIGN_SECRET] = ["o", "n", "f"].map((letter) =>
  `whsec_${btoa(letter.repeat(32))}`
) as [string, string, string];

/** One language of the document. */
interface DocumentedLanguage {
  /** Heading of its section. */
  heading: string;
  /** Language of its code block. */
  fence: string;
  /** File that the code block, changed by `adapt`, is written to. */
  file: string;
  /** Makes the change that a reader would make: the name of a package. */
  adapt?: (code: string) => string;
  /** The calling program: appended to the block, or a file of its own. */
  caller: { file: string; code: string } | { append: string };
  /** Command without the path of the vectors. */
  command: readonly [string, ...string[]];
}

/**
 * Every language whose function takes the clock as an argument. Its program reads the file of
 * vectors that the first argument names, calls the documented function for every vector, and prints
 * one line for each: `valid` or `refused`.
 */
const DOCUMENTED_LANGUAGES: readonly DocumentedLanguage[] = [
  {
    heading: "Node without our module",
    fence: "js",
    file: "verify_webhook.mjs",
    caller: {
      file: "main.mjs",
      code: `
import { readFileSync } from "node:fs";
import { verifyWebhook } from "./verify_webhook.mjs";
for (const v of JSON.parse(readFileSync(process.argv[2], "utf8")).vectors) {
  const body = v.body === undefined ? Buffer.from(v.body_base64, "base64") : Buffer.from(v.body);
  let result = "valid";
  try { verifyWebhook(body, v.header ?? undefined, v.secret, v.now); } catch { result = "refused"; }
  console.log(result);
}`,
    },
    command: ["node", "main.mjs"],
  },
  {
    heading: "Python",
    fence: "python",
    file: "verify_webhook.py",
    caller: {
      append: `
import base64, sys
for v in json.load(open(sys.argv[1], encoding="utf-8"))["vectors"]:
    body = v["body"].encode() if "body" in v else base64.b64decode(v["body_base64"])
    try:
        verify_webhook(body, v["header"], v["secret"], v["now"])
        print("valid")
    except ValueError:
        print("refused")
`,
    },
    command: ["python3", "verify_webhook.py"],
  },
  {
    heading: "Go",
    fence: "go",
    file: "verify_webhook.go",
    adapt: (code) => code.replace("package webhooks", "package main"),
    caller: {
      file: "main.go",
      code: `package main

import ("encoding/json"; "fmt"; "os"; "time")

func main() {
	text, _ := os.ReadFile(os.Args[1])
	var file struct{ Vectors []struct {
		Header, Secret string
		Body *string
		Body_base64 []byte
		Now int64
	} }
	if err := json.Unmarshal(text, &file); err != nil { panic(err) }
	for _, v := range file.Vectors {
		body := v.Body_base64
		if v.Body != nil { body = []byte(*v.Body) }
		_, err := VerifyWebhook(body, v.Header, v.Secret, time.Unix(v.Now, 0))
		if err == nil { fmt.Println("valid") } else { fmt.Println("refused") }
	}
}`,
    },
    command: ["go", "run", "verify_webhook.go", "main.go"],
  },
  {
    heading: "Ruby",
    fence: "ruby",
    file: "verify_webhook.rb",
    caller: {
      append: `
JSON.parse(File.read(ARGV[0], encoding: "UTF-8"))["vectors"].each do |v|
  body = (v["body"] || v["body_base64"].unpack1("m")).b
  begin
    verify_webhook(body, v["header"], v["secret"], v["now"])
    puts "valid"
  rescue ArgumentError, JSON::ParserError
    puts "refused"
  end
end
`,
    },
    command: ["ruby", "verify_webhook.rb"],
  },
  {
    heading: "PHP",
    fence: "php",
    file: "verify_webhook.php",
    caller: {
      append: `
foreach (json_decode(file_get_contents($argv[1]))->vectors as $v) {
    $body = $v->body ?? base64_decode($v->body_base64 ?? '');
    try {
        verify_webhook($body, $v->header, $v->secret, $v->now);
        echo "valid\\n";
    } catch (InvalidArgumentException) {
        echo "refused\\n";
    }
}
`,
    },
    command: ["php", "verify_webhook.php"],
  },
];

/** The first code block of a language under a heading. */
function codeBlock(heading: string, fence: string): string {
  const section = DOCUMENT.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  const block = section?.split(`\`\`\`${fence}\n`)[1]?.split("\n```")[0];
  assert.ok(block, `no ${fence} block under "${heading}"`);
  return `${block}\n`;
}

/** Registers a test that needs an interpreter and a folder of its own. */
async function testWith(
  interpreter: string,
  name: string,
  body: (folder: string) => Promise<void>,
) {
  Deno.test({
    name,
    ignore: await lacksPrograms(name, [interpreter]),
    fn: async () => {
      const folder = await Deno.makeTempDir();
      try {
        await body(folder);
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  });
}

for (const language of DOCUMENTED_LANGUAGES) {
  const { heading, fence, file, adapt = (code) => code, caller, command } = language;
  const name = `docs/webhook_verification.md, ${heading}: every vector as expected`;
  await testWith(command[0], name, async (folder) => {
    const code = adapt(codeBlock(heading, fence));
    await Deno.writeTextFile(`${folder}/${file}`, "append" in caller ? code + caller.append : code);
    if ("code" in caller) await Deno.writeTextFile(`${folder}/${caller.file}`, caller.code);
    const lines = (await outputOf([...command, VECTORS_PATH], { cwd: folder })).trim().split("\n");
    const actual = VECTORS.map((vector, i) => `${vector.name}: ${lines[i]}`);
    const expected = VECTORS.map(({ name, expect }) =>
      `${name}: ${expect === "valid" ? "valid" : "refused"}`
    );
    assert.deepEqual(actual, expected);
  });
}

await testWith(
  "openssl",
  "docs/webhook_verification.md, openssl: match or no match",
  async (folder) => {
    const script = codeBlock("By hand, with openssl", "sh");
    let compared = 0;
    for (const { name, header, secret, body, expect } of VECTORS) {
      if (
        body === undefined || (expect !== "valid" && expect !== "no_matching_signature")
      ) continue;
      await Deno.writeTextFile(`${folder}/delivery.json`, body);
      const env = { header: header ?? "", secret, body: "delivery.json" };
      const response = await outputOf(["sh", "-c", script], { cwd: folder, env });
      assert.equal(response.trim(), expect === "valid" ? "match" : "no match", name);
      compared++;
    }
    assert.ok(compared > 40, `${compared} vectors`);
  },
);

/** Newly signed deliveries, each with its expected outcome. */
function liveCases() {
  const event_id = "evt_00000000000000000000000001";
  const body = `{"id":"${event_id}","object":"event","type":"payment.completed","note":"Größe"}`;
  const now = Math.floor(Date.now() / 1000);
  const signed = (timestamp_seconds: number, secrets: string[]) => {
    const headers = signDelivery({ event_id, body, secrets, timestamp_seconds });
    return Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
  };
  const headers = signed(now, [NEW_SECRET, OLD_SECRET]);
  return [
    { body, headers, secret: NEW_SECRET, expected: "valid" },
    { body, headers, secret: OLD_SECRET, expected: "valid" },
    { body, headers, secret: FOREIGN_SECRET, expected: "refused" },
    { body: `${body} `, headers, secret: NEW_SECRET, expected: "refused" },
    { body, headers: signed(now - 301, [NEW_SECRET]), secret: NEW_SECRET, expected: "refused" },
    { body, headers: {}, secret: NEW_SECRET, expected: "refused" },
  ];
}

/** Runs a program that reads the cases from `cases.json`, and compares its output. */
async function runLiveCases(folder: string, files: Record<string, string>, command: string[]) {
  const cases = liveCases();
  await Deno.writeTextFile(`${folder}/cases.json`, JSON.stringify(cases));
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  const printed = (await outputOf(command, { cwd: folder })).trim().split("\n");
  assert.deepEqual(printed, cases.map((one) => one.expected));
}

/** Calls `readWebhook` of the document for each case. */
const PACKAGE_CALLER = `
import { readFileSync } from "node:fs";
import { readWebhook } from "./read_webhook.mjs";
for (const { body, headers, secret } of JSON.parse(readFileSync("cases.json", "utf8"))) {
  let result = "refused";
  try { if (readWebhook(body, headers, secret).object === "event") result = "valid"; } catch {}
  console.log(result);
}`;
const DENO_RUN = [Deno.execPath(), "run", "-A", "--no-lock"]
  .concat("--config", decodeURIComponent(new URL("deno.json", ROOT).pathname));

await testWith("node", "docs/webhook_verification.md, stripe: live deliveries", async (folder) => {
  const package_root = new URL("../", import.meta.resolve("stripe")).pathname;
  await Deno.mkdir(`${folder}/node_modules`);
  await Deno.symlink(decodeURIComponent(package_root), `${folder}/node_modules/stripe`);
  const read_webhook = codeBlock("With the npm package `stripe`", "js");
  const files = { "read_webhook.mjs": read_webhook, "main.mjs": PACKAGE_CALLER };
  await runLiveCases(folder, files, ["node", "main.mjs"]);
});

const standard_name = "docs/webhook_verification.md, standardwebhooks: live deliveries";
await testWith(Deno.execPath(), standard_name, async (folder) => {
  const read_webhook = codeBlock("With the npm package `standardwebhooks`", "js");
  const files = { "read_webhook.mjs": read_webhook, "main.mjs": PACKAGE_CALLER };
  await runLiveCases(folder, files, [...DENO_RUN, "main.mjs"]);
});

const typescript_name = "docs/webhook_verification.md, TypeScript: live deliveries";
await testWith(Deno.execPath(), typescript_name, async (folder) => {
  const heading = "TypeScript: Node 20+, Deno, Bun, browsers, edge runtimes";
  const module = await Deno.readTextFile(new URL("packages/client/webhook_signature.ts", ROOT));
  const main = `
import { handleWebhook } from "./handle_webhook.ts";
console.log = () => {};
for (const { body, headers, secret } of JSON.parse(Deno.readTextFileSync("cases.json"))) {
  const request = new Request("https://example.com/hooks", { method: "POST", body, headers });
  const { status } = await handleWebhook(request, secret);
  const outcome = status === 204 ? "valid" : status === 400 ? "refused" : String(status);
  Deno.stdout.writeSync(new TextEncoder().encode(outcome + "\\n"));
}`;
  const files = {
    "webhook_signature.ts": module,
    "handle_webhook.ts": codeBlock(heading, "ts"),
    "main.ts": main,
  };
  await runLiveCases(folder, files, [...DENO_RUN, "--check", "main.ts"]);
});
