/** The arguments of the commands that write a site for any host. */

import { parseArgs } from "node:util";
import { resolve } from "node:path";

interface HostingArguments {
  /** Base URL of the API, without a slash at its end. */
  base_url: string;
  folder: string;
}

/**
 * Reads `--base-url` and `--out`.
 * @param task name of the task, for the usage
 * @param default_folder folder without `--out`
 * @throws {Error} for people, if the base URL is missing or must get no keys
 */
export function readHostingArguments(
  args: string[],
  task: string,
  default_folder: string,
): HostingArguments {
  const { values } = parseArgs({
    args,
    options: { "base-url": { type: "string" }, out: { type: "string", default: default_folder } },
  });
  const url = URL.parse(values["base-url"] ?? "");
  if (url === null) {
    throw new Error(
      `Usage: deno task ${task} --base-url https://<ref>.supabase.co/functions/v1 [--out <folder>]`,
    );
  }
  const is_local = url.hostname === "127.0.0.1" || url.hostname === "localhost";
  if (url.protocol !== "https:" && !(is_local && url.protocol === "http:")) {
    throw new Error(
      `--base-url "${url.href}" cannot be used: it must begin with https://, because the page ` +
        "sends keys to it",
    );
  }
  return { base_url: url.href.replace(/(?<!\/)\/+$/, ""), folder: resolve(values.out) };
}
