/** `sandbox new`: makes a sandbox beside that of the key, for one test, branch or pull request. */

import { textOf, wholeNumberOf } from "../command.ts";
import { printResult } from "../output.ts";
import { serviceCommand } from "./service_command.ts";

/** The bounds of the API: a minute and 7 days. */
const LIFE_S = { least: 60, most: 604_800 };

export const SANDBOX_NEW = serviceCommand({
  name: "sandbox new",
  summary: "Make an empty sandbox beside yours, and print its test key",
  options: {
    name: { value: "TEXT", help: "such as the branch" },
    "expires-in": { value: "SECONDS", help: "60 to 604800 (86400, one day)" },
  },
  examples: ["sandbox new", "sandbox new --name feature-7 --expires-in 3600 --json"],
  begin(values) {
    const name = textOf(values, "name");
    const expires_in = wholeNumberOf(values, "expires-in", LIFE_S.least, LIFE_S.most);
    return ({ sandboxes }) => sandboxes.create({ name, expires_in });
  },
  print(sandbox, values, surroundings) {
    // The key is alone on standard output, so that a script can read it.
    printResult(sandbox, ({ test_key }) => test_key, values, surroundings);
    if (!values["json"]) surroundings.printMessage(`${sandbox.id}, until ${sandbox.expires_at}`);
  },
});
