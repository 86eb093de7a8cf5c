/** `deno task merchant`: what payers see of an account, in each of its environments. */

import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { readCommand } from "../../apps/operator/operator.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { createEnvironment } from "../support/database/api_keys.ts";
import { operate } from "../support/live/provider_commands.ts";
import { serviceCase } from "../support/service/service_case.ts";

/** Files by name. The largest logo is a data URL of 19 998 characters. */
const FILES: Record<string, Uint8Array> = {
  "logo.png": file("\x89PNG\r\n\x1a\n", 14_982),
  "large.png": file("\x89PNG\r\n\x1a\n", 14_985),
  "logo.jpg": file("\xff\xd8\xff\xe0", 100),
  "logo.webp": file("RIFF\0\0\0\0WEBP", 100),
  "logo.svg": file("<svg", 100),
};

function file(start: string, length: number): Uint8Array {
  return Buffer.from(start.padEnd(length, "\0"), "latin1");
}

const FOLDER = Deno.makeTempDirSync();
for (const [name, bytes] of Object.entries(FILES)) Deno.writeFileSync(join(FOLDER, name), bytes);
Deno.test.afterAll(() => Deno.remove(FOLDER, { recursive: true }));

/** `--logo` with one of these files. */
const withLogo = (name: string) => ["--logo", join(FOLDER, name)];

/** Arguments, and the refusal; null: they are taken. */
const CASES: [args: string[], refusal: RegExp | null][] = [
  [["--name", "x".repeat(100)], null],
  [["--name", "x".repeat(101)], /^--name .* must have 1 to 100/],
  [["--name", " "], /^--name/],
  [["--name", "a\nb"], /^--name/],
  [["--name", ""], null],
  [["--color", "#767676"], null],
  [["--color", "#777777"], /^--color "#777777" has a contrast of 4.47 with white.* needs 4.5/],
  [["--color", "#FFCC00"], /^--color .* a contrast of 1\.5/],
  [["--color", "red"], /^--color "red" must be like #0a5c36/],
  [["--color", "#0a5c36;x"], /^--color/],
  ...["logo.png", "logo.jpg", "logo.webp"].map((name): [string[], null] => [withLogo(name), null]),
  [["--logo", ""], null],
  [withLogo("large.png"), /^--logo ".*large.png" has 14985 bytes, which is too large/],
  [withLogo("logo.svg"), /^--logo ".*logo.svg" must be a PNG, JPEG or WebP/],
  [withLogo("none.png"), /^--logo ".*none.png" cannot be read/],
  [[], /^set needs/],
];
for (const [args, refusal] of CASES) {
  Deno.test(
    `deno task merchant ${refusal ? "refuses" : "takes"} ${
      args.map((each) => each.replace(FOLDER, "")).join(" ")
    }`,
    async () => {
      const read = readCommand("merchant", ["set", ...args]);
      if (refusal) await assert.rejects(read, { name: "UsageError", message: refusal });
      else await read;
    },
  );
}

serviceCase("an account has one merchant in all of its environments", async (t, service) => {
  const { sql } = service;
  const [{ account }] = await sql<[{ account: string }]>`
    select account from pay.environments where id = ${service.key.environment_id}`;
  const run = async (action: string, ...args: string[]) =>
    (await operate(sql, ["merchant", action, "--account", account, ...args])).out;
  const seen = async () => {
    const rows = await sql`
      select distinct pay_internal.merchant_of(id)::jsonb as merchant from pay.environments
      where account = ${account} and retired_at is null`;
    assert.equal(rows.length, 1);
    return rows[0]!.merchant;
  };
  await t.step("the name of the account by default", async () => {
    assert.match(await run("show"), new RegExp(`^name: ${account}\ncolor: none\nlogo: none\n$`));
  });
  await t.step("each part for itself", async () => {
    await run("set", "--name", "Acme", ...withLogo("logo.webp"));
    assert.match(
      await run("set", "--color", "#0A5C36"),
      /^name: Acme\ncolor: #0a5c36\nlogo: image\/webp\n/,
    );
    const { logo, ...others } = await seen();
    assert.deepEqual(others, { name: "Acme", color: "#0a5c36" });
    assert.match(logo, /^data:image\/webp;base64,UklGR/);
    await run("set", "--logo", "");
    assert.equal((await seen()).logo, null);
  });
  await t.step("new environments too", async () => {
    await service.call("POST", "/api-v1-sandbox/reset");
    await service.call("POST", "/api-v1-sandbox/sandboxes", { body: {} });
    await createEnvironment(sql, { id: idGenerator(Date.now())("env_"), account, livemode: false });
    assert.deepEqual(await seen(), { name: "Acme", color: "#0a5c36", logo: null });
  });
  await t.step("an account that does not exist, and the demo account by default", async () => {
    await assert.rejects(run("show", "--account", "nobody"), /"nobody" has no environment/);
    await assert.rejects(operate(sql, ["merchant", "show"]), /"demo" has no environment/);
  });
});
