/** A small project with migrations and schema files, for tests of the generated migration. */

import { join } from "node:path";
import { MIGRATIONS_DIR } from "../../../apps/server/migrations/migrate.ts";
import { readMigrationFolder } from "../../../apps/server/migrations/migration_folder.ts";
import { hashUnreleased } from "../../../tools/schema/releases.ts";
import {
  type SchemaFolders,
  type SchemaRelease,
  writeRelease,
} from "../../../tools/schema/schema_release.ts";
import { scratchServer } from "../../../apps/server/postgres/scratch_database.ts";
import { testServer } from "./database.ts";
import { withTemporaryFolder } from "../common/temporary_folder.ts";

const ROLES = "20261124000100_roles_and_schema.sql";
/** The first lines of a hand-written migration. */
export const BECOME = `grant pay_owner to current_user;
select pg_catalog.set_config('pay.migrator', current_user, false);
set role pay_owner;\n`;
/** The last lines of a hand-written migration. */
export const LEAVE =
  `do $$ begin execute pg_catalog.format('set role %I', pg_catalog.current_setting('pay.migrator')); end $$;
revoke pay_owner from current_user;\n`;
const TABLE = "20270101000000_table.sql";
/** The beginning of a function in the schema files. */
export const HEAD = "create or replace function";
/** The end of a function's head in the schema files. */
export const TAIL = "language sql stable set search_path = pg_catalog, pg_temp";

/** The schema files of the project, by name; each has one object. */
export const FILES = {
  one: `-- One.\n${HEAD} pay.one() returns integer ${TAIL}\nas $$ select 1 $$;
    comment on function pay.one is 'One.';
    grant execute on function pay.one() to pay_api;`,
  two: `${HEAD} pay.two(p_n integer) returns integer ${TAIL} as $$ select pay.one() + p_n $$;
    grant execute on function pay.two(integer) to pay_operator;`,
  items: `create or replace view pay.items as select i.id, pay.two(1) as two from pay.item i;
    comment on view pay.items is 'Items.';
    comment on column pay.items.two is 'Two.';`,
  item_of: `${HEAD} pay.item_of(p_id integer) returns setof pay.items ${TAIL}
    as $$ select * from pay.items where id = p_id $$;`,
};
/** The file `one`, whose function has a parameter. */
export const ONE_WITH_MORE = FILES.one.replace("pay.one()", "pay.one(p_more integer default 0)")
  .replace("pay.one()", "pay.one(integer)");
type Files = Partial<Record<keyof typeof FILES | "more", string>>;

/** The project, and the operations of a test on it. */
export interface Project {
  folders: SchemaFolders;
  /** Writes these schema files, and all others as in FILES. `null` removes a file. */
  change(files: Record<string, string | null>): Promise<void>;
  release(name?: string): Promise<SchemaRelease>;
  migrations(): Promise<string[]>;
  read(file: string): Promise<string>;
  write(file: string, text: string): Promise<void>;
  /** Marks all migrations as released. */
  freeze(): Promise<void>;
}

/** Runs `test` with a project whose functions are in no migration yet. */
export async function withProject(test: (project: Project) => Promise<void>): Promise<void> {
  await withTemporaryFolder(async (folder) => {
    const folders = {
      migrations: join(folder, "migrations"),
      schemas: join(folder, "schemas"),
      releases: join(folder, "releases.json"),
    };
    const server = scratchServer(testServer().superuser_url);
    await Deno.mkdir(folders.migrations, { recursive: true });
    await Deno.mkdir(folders.schemas);
    const project: Project = {
      folders,
      async change(files) {
        for (const [name, text] of Object.entries({ ...FILES, ...files } as Files)) {
          const path = join(folders.schemas, `${name}.sql`);
          if (text === null) await Deno.remove(path).catch(() => {});
          else await Deno.writeTextFile(path, text);
        }
      },
      release: (name = "change") => writeRelease(server, folders, name),
      migrations: async () =>
        (await readMigrationFolder(folders.migrations)).migrations.map(({ file }) => file),
      read: (file) => Deno.readTextFile(join(folders.migrations, file)),
      write: (file, text) => Deno.writeTextFile(join(folders.migrations, file), text),
      async freeze() {
        const found = await hashUnreleased({}, await readMigrationFolder(folders.migrations));
        await Deno.writeTextFile(folders.releases, JSON.stringify({ "1.0.0": found }));
      },
    };
    await Deno.copyFile(join(MIGRATIONS_DIR, ROLES), join(folders.migrations, ROLES));
    await project.write(
      TABLE,
      `${BECOME} create table pay.item (id integer, secret boolean);
       alter table pay.item enable row level security; ${LEAVE}`,
    );
    await Deno.writeTextFile(folders.releases, "{}");
    await project.change({});
    await test(project);
  });
}

/** The migration of FILES. The first test generates it. */
let functions: string | undefined;

/** Runs `test` with a project whose functions are released. */
export const withReleased = (test: (project: Project) => Promise<void>) =>
  withProject(async (project) => {
    functions ??= await Deno.readTextFile((await project.release("functions")).written!);
    await project.write("20270101000001_functions.sql", functions);
    await project.freeze();
    await test(project);
  });
