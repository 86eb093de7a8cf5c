/**
 * Runs an example as its reader does: in a copy, with the shell blocks of its README. The service
 * is a local start, and the shop listens on a free port.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { copySources } from "../common/temporary_folder.ts";
import { freePort } from "../common/free_port.ts";
import { launchCommand } from "../common/running_command.ts";
import { until } from "../common/until.ts";
import { shellExamples } from "../documents/readme_document.ts";
import { readCredentials } from "../local/local_start.ts";
import type { SharedStart } from "../local/shared_start.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** The port of the shops in their READMEs. */
const README_PORT = "3000";
/** The READMEs make a random one. */
export const ADMIN_TOKEN = "token-of-the-test";
/** The first run fetches packages. */
const START_MS = 180_000;

/** Starts the example. `folder` must be empty or absent. */
export async function startExample(
  name: string,
  folder: string,
  { data_dir, test_key }: SharedStart,
) {
  const path = join(folder, "examples", name);
  await copySources(join(ROOT, "examples", name), path);
  await copySources(join(ROOT, "packages/client"), join(folder, "packages/client"));
  await Deno.mkdir(join(folder, ".local"));
  const credentials = JSON.stringify({ ...await readCredentials(data_dir), test_key });
  await Deno.writeTextFile(join(folder, ".local/credentials.json"), credentials);
  const readme = await Deno.readTextFile(join(path, "README.md"));
  const port = String(freePort());
  const script = shellExamples(readme).map(({ script }) => script).join("")
    .replaceAll(README_PORT, port)
    .replace(/ADMIN_TOKEN=.*/, `ADMIN_TOKEN=${ADMIN_TOKEN}`);
  const shop = launchCommand({
    args: ["bash", "-e", "-c", script],
    cwd: path,
    env: { PORT: port },
    detached: true,
  });
  const stop = async () => {
    if (!shop.hasEnded()) Deno.kill(-shop.pid, "SIGTERM");
    await shop.ended;
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await until(`${name} responds`, async () => {
      if (shop.hasEnded()) throw new Error(`${name} ended`);
      const response = await fetch(url).catch(() => null);
      await response?.body?.cancel();
      return response?.ok === true;
    }, START_MS);
  } catch (error) {
    await stop();
    throw new Error(shop.output(), { cause: error });
  }
  return { url, [Symbol.asyncDispose]: stop };
}
