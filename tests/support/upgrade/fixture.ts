/**
 * The fixture of a release, in tests/upgrade. `<release>.sql` has the rows of a database that the
 * service of that release has filled, and `<release>.json` has the responses of that service.
 * `deno task release` makes both, and the upgrade test reads them from then on.
 */

import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { openRecorder } from "../webhook/recording_receiver.ts";
import { dumpRows } from "./data_file.ts";
import { fill, type Filled } from "./fill.ts";
import { type FixtureService, openFixtureService } from "./fixture_service.ts";

const FOLDER = fileURLToPath(new URL("../../upgrade/", import.meta.url));

/** A filled database, and the responses of its service. */
export interface Fixture extends Filled {
  /** Statements that insert the rows. */
  rows: string;
  gets: RecordedGet[];
}

/** A response to a GET: its bytes as text. */
interface RecordedGet {
  key: keyof Filled["keys"];
  path: string;
  response: string;
}

/** Lists whose items each have a path. */
const LISTS = [
  "payments",
  "refunds",
  "disputes",
  "transfers",
  "events",
  "webhook_endpoints",
  "webhook_deliveries",
  "api_keys",
];
const API = "/api-v1-payments/v1";

/**
 * Fills a migrated, empty database with the service of this tree. Records its rows and responses.
 * @param end_ms the clock of the service at the end
 */
export async function makeFixture(url: string, end_ms: number = Date.now()): Promise<Fixture> {
  const service = await openFixtureService({ url, functions_url: url }, end_ms);
  const receiver = openRecorder();
  try {
    const filled = await fill(service, receiver, end_ms);
    const gets = await readAll(service, filled.keys);
    return { ...filled, gets, rows: await dumpRows(service.sql) };
  } finally {
    await service.close();
    await receiver.close();
  }
}

/** Reads everything that the keys can see. */
async function readAll(service: FixtureService, keys: Filled["keys"]): Promise<RecordedGet[]> {
  const gets: RecordedGet[] = [];
  for (const key of Object.keys(keys) as (keyof Filled["keys"])[]) {
    const get = async (path: string) => {
      const { text } = await service.call("GET", path, { key: keys[key] });
      gets.push({ key, path, response: text });
      return JSON.parse(text);
    };
    for (const list of LISTS) {
      const { data } = await get(`${API}/${list}?limit=100`);
      for (const { id } of data) await get(`${API}/${list}/${id}`);
    }
    await get(`${API}/ledger_entries?limit=100`);
    await get(`${API}/balance`);
    await get(`${API}/payments?status=completed&limit=3`);
  }
  return gets;
}

/** Writes both files and returns their paths. */
export async function writeFixture(release: string, fixture: Fixture): Promise<string[]> {
  const { rows, ...recorded } = fixture;
  const [sql, json] = pathsOf(release);
  await Deno.writeTextFile(
    sql!,
    `-- The rows of a database that release ${release} has filled, for the upgrade test. Written by\n` +
      `-- "deno task release ${release}": do not edit.\n\n${rows}`,
  );
  await Deno.writeTextFile(json!, JSON.stringify(recorded, null, 2) + "\n");
  return [sql!, json!];
}

/** Reads the fixture of a release. */
export async function readFixture(release: string): Promise<Fixture> {
  const [sql, json] = pathsOf(release);
  return {
    ...JSON.parse(await Deno.readTextFile(json!)) as Omit<Fixture, "rows">,
    rows: await Deno.readTextFile(sql!),
  };
}

function pathsOf(release: string): string[] {
  return ["sql", "json"].map((extension) => join(FOLDER, `${release}.${extension}`));
}
