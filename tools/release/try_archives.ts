/**
 * Installs archives of packages as their users do, without a network, and takes a payment with
 * them: once on each release of Node.js that is supported.
 */

import { dirname, join } from "node:path";
import { runNpmProgram, runProgram } from "../run_program.ts";

/** Releases of Node.js that `engines` of the packages and docs/versioning.md name. */
export const NODE_RELEASES = [20, 22, 24] as const;

/** Nothing listens at this address, so each fetch through this proxy fails. */
const NO_PROXY = "http://127.0.0.1:9";
const OFFLINE = {
  HTTP_PROXY: NO_PROXY,
  HTTPS_PROXY: NO_PROXY,
  NO_PROXY: "127.0.0.1,localhost",
  npm_config_offline: "true",
};
const INSTALL = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"];
/** Takes a payment from the one package with the other. Prints the release of Node.js. */
const PAY = `
const { startSandbox } = require("payments-sandbox");
import("@payments-api/client").then(async ({ PaymentsClient }) => {
  const { testKey: apiKey, baseUrl, stop } = await startSandbox();
  const { payments } = new PaymentsClient({ apiKey, baseUrl });
  const { status } = await payments.create({ amount: 1999, currency: "EUR", outcome: "success" });
  await stop();
  console.log(process.versions.node.split(".")[0], status);
});
`;

/** Tries the archives. Throws with the output of the step that failed. */
export async function tryArchives(archives: readonly string[]): Promise<void> {
  const parent = await Deno.makeTempDir({ prefix: "payments-archives-" });
  try {
    // For root PostgreSQL runs as another account, which must be able to enter its cache.
    if (Deno.build.os !== "windows") await Deno.chmod(parent, 0o711);
    const shared = { npm_config_cache: join(parent, "npm"), CACHE_DIR: join(parent, "cache") };
    // The first installation fetches what the packages depend on into npm's cache.
    const fetched = join(parent, "fetched");
    await Deno.mkdir(fetched);
    await runProgram([...INSTALL, ...archives], { cwd: fetched, env: shared });
    await Deno.remove(fetched, { recursive: true });
    for (const release of NODE_RELEASES) {
      const node = ["node", "-p", "process.execPath"];
      const program = (await runNpmProgram(`node@${release}`, node, { cwd: parent })).trim();
      // npm runs on the first Node.js in the path.
      const PATH = `${dirname(program)}:${Deno.env.get("PATH")}`;
      const cwd = join(parent, `node ${release}`);
      await Deno.mkdir(cwd);
      await runProgram([...INSTALL, ...archives], { cwd, env: { ...shared, ...OFFLINE, PATH } });
      await Deno.writeTextFile(join(cwd, "pay.cjs"), PAY);
      const env = { ...shared, ...OFFLINE, PATH };
      const printed = await runProgram([program, "pay.cjs"], { cwd, env });
      if (printed !== `${release} completed\n`) throw new Error(`Node.js ${release}: ${printed}`);
      await Deno.remove(cwd, { recursive: true });
    }
  } finally {
    await Deno.remove(parent, { recursive: true });
  }
}
