/** `sandbox new`: makes a sandbox beside that of the key, for one test, branch or pull request. */

import {
  type Command,
  EXIT,
  JSON_OPTION,
  refuseArguments,
  SERVICE_OPTIONS,
  textOf,
  wholeNumberOf,
} from "../command.ts";
import { openClient } from "../service_access.ts";

/** The bounds of the API: a minute and 7 days. */
const LIFE_S = { least: 60, most: 604_800 };

export const SANDBOX_NEW: Command = {
  name: "sandbox new",
  summary: "Make an empty sandbox beside yours, and print its test key",
  options: {
    name: { type: "string", value: "TEXT", help: "such as the branch" },
    "expires-in": { type: "string", value: "SECONDS", help: "60 to 604800 (86400, one day)" },
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["sandbox new", "sandbox new --name feature-7 --expires-in 3600 --json"],
  async run(values, args, surroundings) {
    refuseArguments(args);
    const name = textOf(values, "name");
    const expires_in = wholeNumberOf(values, "expires-in", LIFE_S.least, LIFE_S.most);
    const client = openClient(values, surroundings);
    const sandbox = await client.sandboxes.create({
      ...(name !== undefined && { name }),
      ...(expires_in !== undefined && { expires_in }),
    });
    if (values["json"]) {
      surroundings.print(`${JSON.stringify(sandbox, null, 2)}\n`);
    } else {
      // The key is alone on standard output, so that a script can read it.
      surroundings.print(`${sandbox.test_key}\n`);
      surroundings.printMessage(`${sandbox.id}, until ${sandbox.expires_at}`);
    }
    return EXIT.success;
  },
};
