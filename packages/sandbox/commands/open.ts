/** `open`: opens the console of the service in the browser, with the key of the service. */

import { spawn } from "node:child_process";
import process from "node:process";
import { keyLink } from "../key_link.ts";
import {
  type Command,
  EXIT,
  JSON_OPTION,
  refuseArguments,
  SERVICE_OPTIONS,
  type Surroundings,
  textOf,
  type Values,
} from "../command.ts";
import { findService, isTestKey, openClient } from "../service_access.ts";

/** Seconds until the key of another sandbox ends. */
const KEY_S = 86_400;

/** The programs that open an address in the browser of the user. */
const OPENERS: Readonly<Record<string, string[]>> = {
  darwin: ["open"],
  linux: ["xdg-open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

export const OPEN: Command = {
  name: "open",
  summary: "Open the console of the local start in the browser, with its test key",
  options: {
    print: { help: "print the address and open nothing" },
    sandbox: { value: "ID", help: "one that yours has made, by a key for a day" },
    ...JSON_OPTION,
    ...SERVICE_OPTIONS,
  },
  examples: ["open", "open --print", "open --sandbox env_1m83h6y3aej38rn63qdprkcbc0"],
  async run(values, args, surroundings) {
    refuseArguments(args);
    const service = findService(values, surroundings);
    const { base_url } = service;
    const sandbox = textOf(values, "sandbox");
    const key = sandbox === undefined ? service.key : await keyOf(sandbox, values, surroundings);
    // The console takes test keys only, so a live key must not get into the history of the browser.
    const url = isTestKey(key) ? keyLink(base_url, key) : new URL("/console/", base_url).href;
    surroundings.print(values["json"] ? `${JSON.stringify({ url })}\n` : `${url}\n`);
    if (values["print"]) return EXIT.success;
    const [program, ...first] = OPENERS[process.platform] ?? OPENERS["linux"]!;
    const is_open = await launch(program!, [...first, url]);
    if (!is_open) {
      surroundings.printMessage("No browser could be opened: open the address yourself");
    }
    return EXIT.success;
  },
};

/** Makes a key of a disposable sandbox that the sandbox of the service has made. */
async function keyOf(id: string, values: Values, surroundings: Surroundings): Promise<string> {
  const { sandboxes } = openClient(values, surroundings);
  return (await sandboxes.createKey(id, { name: "Console", expires_in: KEY_S })).secret;
}

/** Starts a program and does not wait for its end. Returns false if it cannot be started. */
function launch(program: string, args: string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
