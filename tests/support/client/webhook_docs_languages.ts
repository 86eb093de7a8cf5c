/**
 * Programs that run the functions of `docs/webhook_verification.md`, one for each language. A
 * program reads the file of vectors that its first argument names, calls the documented function
 * for every vector, and prints one line for each: `valid` or `refused`.
 */

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

/** Every language whose function takes the clock as an argument. */
export const DOCUMENTED_LANGUAGES: readonly DocumentedLanguage[] = [
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
