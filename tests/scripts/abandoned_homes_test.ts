/** The databases of deleted data folders: which of them a start removes. */

import assert from "node:assert/strict";
import { join } from "node:path";
import {
  noteDataFolder,
  removeAbandonedHomes,
} from "../../apps/server/postgres/abandoned_homes.ts";
import { FALLBACK_PARENT } from "../../apps/server/postgres/postgres_account.ts";
import { startPostgres } from "../../apps/server/postgres/embedded_postgres.ts";
import { withTemporaryFolder } from "../support/common/temporary_folder.ts";

const DAY_MS = 24 * 3_600_000;
const MARKER = "data_folders.json";

/** A home that a data folder uses, and the data folder. */
interface Case {
  home: string;
  data_dir: string;
}

/** Cases, and whether a start a day later removes the home. */
const CASES: [name: string, removed: boolean, change: (given: Case) => Promise<unknown>][] = [
  ["a data folder that is there", false, () => Promise.resolve()],
  ["a deleted data folder", true, ({ data_dir }) => Deno.remove(data_dir, { recursive: true })],
  [
    "a data folder that was deleted with its parent",
    true,
    ({ data_dir }) => Deno.remove(join(data_dir, ".."), { recursive: true }),
  ],
  [
    "a second data folder with the same databases",
    false,
    async ({ home, data_dir }) => {
      await Deno.mkdir(`${data_dir}-copy`);
      await noteDataFolder(home, `${data_dir}-copy`);
      await Deno.remove(data_dir, { recursive: true });
    },
  ],
  [
    "a disk that is not mounted",
    false,
    async ({ home, data_dir }) => {
      await Deno.remove(data_dir, { recursive: true });
      const { dev } = await Deno.stat(home);
      await writeMarker(home, [{ path: data_dir, device: dev + 1 }]);
    },
  ],
  ["no marker", false, async ({ home, data_dir }) => {
    await Deno.remove(data_dir, { recursive: true });
    await Deno.remove(join(home, MARKER));
  }],
  ["a marker that names nothing", false, async ({ home, data_dir }) => {
    await Deno.remove(data_dir, { recursive: true });
    await writeMarker(home, []);
  }],
  ["a broken marker", false, async ({ home, data_dir }) => {
    await Deno.remove(data_dir, { recursive: true });
    await Deno.writeTextFile(join(home, MARKER), "[{");
  }],
  ["a marker that is a link", false, async ({ home, data_dir }) => {
    await Deno.remove(data_dir, { recursive: true });
    await Deno.rename(join(home, MARKER), join(home, "elsewhere"));
    await Deno.symlink(join(home, "elsewhere"), join(home, MARKER));
  }],
  ["a server that has written a checkpoint since", false, async ({ home, data_dir }) => {
    await Deno.remove(data_dir, { recursive: true });
    await Deno.mkdir(join(home, "postgres", "global"), { recursive: true });
    await Deno.writeTextFile(join(home, "postgres", "global", "pg_control"), "");
  }],
];

function writeMarker(home: string, folders: unknown): Promise<void> {
  return Deno.writeTextFile(join(home, MARKER), JSON.stringify(folders));
}

/** Makes a home as a root caller has it, last used two days ago. */
async function makeCase(parent: string, name: string = crypto.randomUUID()): Promise<Case> {
  const [home, data_dir] = [join(parent, "homes", name), join(parent, "projects", "one", ".local")];
  await Deno.mkdir(join(home, "postgres"), { recursive: true });
  await Deno.mkdir(data_dir, { recursive: true });
  await noteDataFolder(home, data_dir);
  return { home, data_dir };
}

async function age(home: string): Promise<void> {
  const then = new Date(Date.now() - 2 * DAY_MS);
  const marker = join(home, MARKER);
  const is_file = await Deno.lstat(marker).then(({ isFile }) => isFile, () => false);
  if (is_file) await Deno.utime(marker, then, then);
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

const ignore = Deno.build.os === "windows";

for (const [name, removed, change] of CASES) {
  Deno.test({
    name: `removeAbandonedHomes() ${removed ? "removes the home of" : "keeps the home of"} ${name}`,
    ignore,
    fn: () =>
      withTemporaryFolder(async (parent) => {
        const given = await makeCase(parent);
        await change(given);
        await age(given.home);
        assert.equal(await removeAbandonedHomes(join(parent, "homes")), removed ? 1 : 0);
        assert.equal(await isThere(given.home), !removed);
      }),
  });
}

Deno.test({
  name: "removeAbandonedHomes() waits for a day, because a data folder can have been moved",
  ignore,
  fn: () =>
    withTemporaryFolder(async (parent) => {
      const { home, data_dir } = await makeCase(parent);
      const homes = join(parent, "homes");
      await Deno.rename(data_dir, `${data_dir}-moved`);
      const used_ms = (await Deno.stat(join(home, MARKER))).mtime!.getTime();
      assert.equal(await removeAbandonedHomes(homes, used_ms + DAY_MS - 1), 0);
      await noteDataFolder(home, `${data_dir}-moved`);
      assert.equal(await removeAbandonedHomes(homes, used_ms + 10 * DAY_MS), 0);
      await Deno.remove(`${data_dir}-moved`);
      assert.equal(await removeAbandonedHomes(homes, used_ms + 10 * DAY_MS), 1);
      assert.equal(await isThere(home), false);
    }),
});

Deno.test({
  name: "removeAbandonedHomes() keeps other folders, and has nothing to do without any",
  ignore,
  fn: () =>
    withTemporaryFolder(async (parent) => {
      const homes = join(parent, "homes");
      assert.equal(await removeAbandonedHomes(homes), 0);
      const { home, data_dir } = await makeCase(parent, "mine");
      await Deno.remove(data_dir, { recursive: true });
      await Deno.symlink(home, join(homes, crypto.randomUUID()));
      assert.equal(await removeAbandonedHomes(homes, Date.now() + 9 * DAY_MS), 0);
      assert.ok(await isThere(home));
    }),
});

Deno.test({
  name: "startPostgres() of root removes the databases of a deleted data folder, unless they run",
  ignore: ignore || Deno.uid() !== 0,
  fn: () =>
    withTemporaryFolder(async (parent) => {
      const start = async (name: string) => {
        const data_dir = join(parent, name);
        await Deno.mkdir(data_dir, { recursive: true });
        // PostgreSQL's account cannot enter it.
        await Deno.chmod(data_dir, 0o700);
        const server = await startPostgres({ data_dir, durable: false });
        return { data_dir, server, home: server.home };
      };
      const ended = await start("ended");
      const running = await start("running");
      const homes = [ended, running].map(({ home }) => home);
      let third: Awaited<ReturnType<typeof start>> | null = null;
      try {
        await ended.server.stop();
        for (const { home, data_dir } of [ended, running]) {
          assert.ok(home.startsWith(`${FALLBACK_PARENT}/`), home);
          await Deno.remove(data_dir, { recursive: true });
          await age(home);
          const control = join(home, "postgres", "global", "pg_control");
          await Deno.utime(control, 1, 1);
        }
        third = await start("third");
        homes.push(third.home);
        assert.deepEqual(await Promise.all(homes.map(isThere)), [false, true, true]);
      } finally {
        await running.server.stop();
        await third?.server.stop();
        for (const home of homes) await Deno.remove(home, { recursive: true }).catch(() => {});
      }
    }),
});
