/**
 * Starts stripe-mock, which checks each request against Stripe's OpenAPI document and responds with
 * fixtures. It keeps no state and accepts only keys that begin with `sk_test_`. Install it with
 * `go install github.com/stripe/stripe-mock@v0.203.0`. STRIPE_MOCK names another path.
 */

import { delimiter, join } from "node:path";

const NAME = "stripe-mock";

const executable = await findStripeMock();

/** Whether tests with stripe-mock are skipped. In CI a missing program is a failure. */
export const no_stripe_mock = executable === null && Deno.env.get("CI") === undefined;
if (no_stripe_mock) console.warn(`Tests with ${NAME} are not run unless CI is set: not installed`);

/** Starts stripe-mock on a free loopback port, or returns null if it is not installed. */
export async function startStripeMock(): Promise<
  { base_url: string; close(): Promise<void> } | null
> {
  if (executable === null) return null;
  const child = new Deno.Command(executable, {
    // Without the second address it also listens on port 12112 of every address.
    args: ["-http-addr", "127.0.0.1:0", "-https-addr", "127.0.0.1:0"],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const output = child.stdout.pipeThrough(new TextDecoderStream());
  let address: string | undefined;
  let text = "";
  const reader = output.getReader();
  while (address === undefined) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`${NAME} has ended: ${text}`);
    text += value;
    address = /HTTP at address: (\S+)\n/.exec(text)?.[1];
  }
  // It logs each request; the pipe must not fill.
  const drained = (async () => {
    while (!(await reader.read()).done);
  })();
  return {
    base_url: `http://${address}`,
    async close() {
      child.kill("SIGKILL");
      await child.status;
      await drained;
    },
  };
}

async function findStripeMock(): Promise<string | null> {
  const named = Deno.env.get("STRIPE_MOCK");
  const folders = (Deno.env.get("PATH") ?? "").split(delimiter).filter((path) => path !== "");
  const places = named ? [named] : folders.map((folder) => join(folder, NAME));
  for (const path of places) if (await isFile(path)) return path;
  if (named) return null;
  try {
    const go = await new Deno.Command("go", { args: ["env", "GOPATH"], stderr: "null" }).output();
    const path = join(new TextDecoder().decode(go.stdout).trim(), "bin", NAME);
    return await isFile(path) ? path : null;
  } catch {
    return null;
  }
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isFile, () => false);
}
