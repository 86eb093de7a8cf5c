/**
 * The shell blocks of docs/production.md that make the database, the settings and a payment, back
 * up, and restore into a new cluster, with those of docs/operations/backup.md that they name. The
 * test replaces the folders and ports of the page, and `runuser`. Instances of `deno task serve`
 * run with the settings that the blocks wrote, before the backup and after the restore.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { testWith } from "../support/common/programs.ts";
import { until } from "../support/common/until.ts";
import { shellBlock } from "../support/documents/operations_document.ts";
import { readProjectFile } from "../support/documents/project_files.ts";
import { shellExamples } from "../support/documents/readme_document.ts";
import { runInOneShell } from "../support/documents/readme_shell.ts";
import { PROJECT_DIR } from "../support/local/local_start.ts";
import { launchInstance } from "../support/production/serve_process.ts";
import { keyedCall } from "../support/service/keyed_call.ts";
import {
  DEBIAN_15,
  hasVersion,
  startSupabaseServer,
  type SupabaseServer,
} from "../support/supabase/supabase_server.ts";
import { openRecorder } from "../support/webhook/recording_receiver.ts";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";

const page = shellExamples(await readProjectFile("docs/production.md"));

/** The block of the page that contains a text. */
function blockWith(text: string): string {
  const blocks = page.filter(({ script }) => script.includes(text));
  assert.equal(blocks.length, 1, text);
  return blocks[0]!.script;
}

const ROLES_AND_DATABASE = blockWith("create role payments_owner");
const MIGRATE_AND_LOGIN = blockWith("create role pay_functions");
const WRITE_SETTINGS = blockWith("cat > /etc/payments/environment");
const READ_OWNER = ". /etc/payments/owner";
const PAY = blockWith("keys create");

/** A machine with a cluster of its own, and the folder that stands for its disk. */
async function openMachine(open: AsyncDisposableStack) {
  const server = open.use(await startSupabaseServer(15));
  const disk = await Deno.makeTempDir({ prefix: "payments-machine-" });
  open.defer(() => Deno.remove(disk, { recursive: true }));
  await Deno.mkdir(join(disk, "programs"));
  await Deno.mkdir(join(disk, "etc"));
  await Deno.symlink(Deno.execPath(), join(disk, "programs", "deno"));
  await Deno.writeTextFile(join(disk, "programs", "runuser"), runuser(server), { mode: 0o755 });
  return {
    disk,
    /** Runs blocks in a new shell. Returns what each printed, and throws if one fails. */
    async run(...blocks: string[]): Promise<string[]> {
      const session = await runInOneShell(PROJECT_DIR, [
        `export PATH="${disk}/programs:${DEBIAN_15}:$PATH" PGPORT=${server.port}`,
        ...blocks.map((block) =>
          block.replaceAll("/opt/payments", PROJECT_DIR).replaceAll("/etc/", `${disk}/etc/`)
            .replaceAll("/root/", `${disk}/`)
        ),
      ]);
      return session.results.slice(1).map(({ code, stdout, stderr }, index) => {
        assert.equal(code, 0, `${blocks[index]}\n${stderr}`);
        return stdout;
      });
    },
    /** Launches an instance with the settings that the blocks wrote. */
    async serve() {
      const text = await Deno.readTextFile(join(disk, "etc/payments/environment"));
      const settings = text.trimEnd().split("\n").map((line) => line.split(/=(.*)/s, 2));
      const instance = await launchInstance({
        ...Object.fromEntries(settings),
        PGPORT: String(server.port),
        ALLOW_PRIVATE_WEBHOOKS: "true",
      });
      open.defer(async () => void await instance.end("SIGKILL"));
      return instance;
    },
  };
}

/** A script in place of `runuser -u postgres --` that becomes the superuser of the server. */
function runuser({ admin_url }: SupabaseServer): string {
  const { username, password } = new URL(admin_url);
  return `#!/bin/sh
  [ "$1 $2 $3" = "-u postgres --" ] || exit 1
  shift 3
  PGHOST=127.0.0.1 PGDATABASE=postgres PGUSER=${username} PGPASSWORD=${password} exec "$@"
`;
}

testWith(
  DEBIAN_15,
  await hasVersion(15),
  "docs/production.md makes a service, backs it up and restores it into a new cluster",
  async () => {
    await using open = new AsyncDisposableStack();
    const [old_machine, new_machine] = await Promise.all([openMachine(open), openMachine(open)]);
    const receiver = open.use(openRecorder(() => 500));

    await old_machine.run(ROLES_AND_DATABASE, MIGRATE_AND_LOGIN, WRITE_SETTINGS);
    const before = await old_machine.serve();
    const address = /--cacert [^]* https:\/\/pay\.example\.com\/functions\/v1/;
    assert.match(PAY, address);
    const pay = PAY.replace(address, before.base_url);
    const [, paid, key] = await old_machine.run(READ_OWNER, pay, 'echo "$key"');
    const first = JSON.parse(paid!);
    assert.equal(first.status, "completed");
    const call = async (base_url: string, method: string, path: string, body?: unknown) => {
      const options = { key: key!.trim(), body, idempotency_key: path };
      return (await keyedCall(base_url, method, `/api-v1-payments/v1/${path}`, options)).text;
    };
    const hook = { url: receiver.url("/"), events: ["*"] };
    const { secret } = JSON.parse(await call(before.base_url, "POST", "webhook_endpoints", hook));
    const order = { amount: 4200, currency: "EUR" };
    const second = await call(before.base_url, "POST", "payments", order);
    await until("a delivery has failed", () => receiver.arrivals.length > 0);
    await before.end("SIGTERM");

    const backup = join(old_machine.disk, "backups", "payments.dump");
    await Deno.mkdir(join(old_machine.disk, "backups"));
    const back_up = [READ_OWNER, `export BACKUP=${backup}`, await shellBlock("Backup")];
    const alter = (option: string) =>
      old_machine.run(`runuser -u postgres -- psql -q -c "alter role payments_owner ${option}"`);
    await alter("nobypassrls");
    await assert.rejects(old_machine.run(...back_up), /pg_dump: error/);
    const left = await Array.fromAsync(Deno.readDir(join(old_machine.disk, "backups")));
    assert.deepEqual(left, [], "a backup that failed leaves no file");
    await alter("bypassrls");
    await old_machine.run(...back_up);
    assert.equal((await Deno.stat(backup)).mode! & 0o077, 0, "only its owner can read it");
    const members = `psql -At "$DATABASE_URL" -c "select pg_has_role('pay_owner', 'usage')"`;
    assert.deepEqual((await old_machine.run(READ_OWNER, members)).at(-1), "f\n");

    const failed = receiver.arrivals.length;
    receiver.judge = () => 200;
    await Deno.copyFile(backup, join(new_machine.disk, "payments.dump"));
    await Deno.copyFile(
      join(old_machine.disk, "etc/payments/environment"),
      join(new_machine.disk, "environment"),
    );
    const printed = await new_machine.run(
      ROLES_AND_DATABASE,
      blockWith("export NEW_DATABASE_URL"),
      await shellBlock("Restore"),
      MIGRATE_AND_LOGIN,
      WRITE_SETTINGS,
      blockWith("check-books"),
    );
    assert.equal(printed[3], "The database has every migration\n");
    assert.match(printed[5]!, /^ok +invariant_ledger_totals/m);
    const after = await new_machine.serve();
    assert.equal(await call(after.base_url, "GET", `payments/${first.id}`), paid);
    assert.equal(await call(after.base_url, "POST", "payments", order), second);
    await until("the pending delivery arrives", () => receiver.arrivals.length > failed);
    const { bytes, headers } = receiver.arrivals.at(-1)!;
    const event = await verifyWebhook(bytes, headers.get("Payment-Signature"), secret);
    assert.equal(event.data.object.id, JSON.parse(second).id);
  },
);
