/**
 * The floor: recorded statements issued by pgbench, PostgreSQL's own load generator in C, against
 * the same server. Parameters travel as parameters, as they do from the product; where they hold
 * the ids or the idempotency key of the recording the server puts a fresh value in their place, ids
 * that rise with time as the product's do; the time of the recording becomes that of the run.
 */

import { formatTime } from "../shared/core/clock.ts";
import { idFloor } from "../shared/core/ids.ts";
import { RECORDED_RANDOM, type RecordedStatement } from "./recorded_statement.ts";

const PROGRAM = "pgbench";
/** The first second, in which its connections plan their statements, is not measured. */
const WARMUP_S = 1;
/** Stands for the time and randomness of an id, and for the random part of a key. */
const [ID_MARK, KEY_MARK] = ["~", "^"];
/** What a recorded request must send as its key for each issue to have a new one. */
export const RECORDED_KEY = `00000000-0000-4000-8000${"k".repeat(13)}`;
const RECORDED_KEY_END = "k".repeat(13);

/** What came of a run. */
export interface PgbenchResult {
  /** All that were committed: what the books must show. */
  transactions: number;
  per_second: number;
  /** Its last words when it failed; null when all is well. */
  error: string | null;
}

/** One run. */
export interface PgbenchOrder {
  url: string;
  clients: number;
  /** Measured time, after a second of warming up; whole seconds. */
  seconds: number;
  /** Each a script of its own, chosen at random. */
  statements: readonly RecordedStatement[];
}

/** What `pgbench --version` says, or null where it is not installed. */
export async function findPgbench(): Promise<string | null> {
  try {
    const { stdout } = await new Deno.Command(PROGRAM, { args: ["--version"] }).output();
    return new TextDecoder().decode(stdout).trim();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** Issues the statements in a closed loop. */
export async function runPgbench(order: PgbenchOrder): Promise<PgbenchResult> {
  const folder = await Deno.makeTempDir({ prefix: "payments-pgbench-" });
  try {
    const { hostname, port, username, password, pathname } = new URL(order.url);
    const time = idFloor("pay_", Date.now()).slice(4, 13);
    const variables = [`time=${time}`, "n=0", `base=${Date.now() * 1000}`];
    const files: string[] = [];
    for (const [index, statement] of order.statements.entries()) {
      const file = `${folder}/${index}.sql`;
      await Deno.writeTextFile(file, pgbenchScript(statement, `s${index}_`, variables));
      files.push("-f", file);
    }
    const { success, stdout, stderr } = await new Deno.Command(PROGRAM, {
      args: [
        ...["-n", "-M", "prepared", "-P", "1", "-j", "1"],
        ...["-c", String(order.clients), "-T", String(order.seconds + WARMUP_S)],
        ...["-h", hostname, "-p", port, "-U", username],
        ...variables.flatMap((variable) => ["-D", variable]),
        ...files,
        pathname.slice(1),
      ],
      env: { PGPASSWORD: decodeURIComponent(password) },
    }).output();
    const report = new TextDecoder().decode(stdout);
    const progress = new TextDecoder().decode(stderr);
    const transactions = Number(/actually processed: (\d+)/.exec(report)?.[1] ?? 0);
    const failed = /failed transactions: [1-9].*/.exec(report)?.[0];
    const error = success ? failed ?? null : progress.slice(-500);
    return { transactions, per_second: rateOf(progress), error };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A statement as a script; its parameters are added to the variables. */
function pgbenchScript(
  { text, parameters, at }: RecordedStatement,
  prefix: string,
  variables: string[],
): string {
  const id = new RegExp(`[0-9a-hjkmnp-tv-z]{9}${RECORDED_RANDOM}`, "g");
  const now = formatTime(Date.now());
  const statement = text.replaceAll(/\$(\d+)/g, (_, number) => {
    const value = parameters[Number(number) - 1] ?? null;
    if (value === null) return "null";
    const marked = String(value).replaceAll(id, ID_MARK).replaceAll(RECORDED_KEY_END, KEY_MARK)
      .replaceAll(at, now);
    const name = `${prefix}p${number}`;
    variables.push(`${name}=${marked}`);
    let place = `:${name}`;
    if (marked.includes(ID_MARK)) {
      place = `replace(${place}::text, '${ID_MARK}', :time::text || :id::text)`;
    }
    if (marked.includes(KEY_MARK)) {
      place = `replace(${place}::text, '${KEY_MARK}', :key::text)`;
    }
    return place;
  });
  return [
    String.raw`\set n :n + 1`,
    // 16 digits, as many as the random characters that they stand for; unique by client and time.
    String.raw`\set id :base + :n * 64 + :client_id`,
    String.raw`\set key random(1000000000000, 9999999999999)`,
    statement.replaceAll(/\s+/g, " ") + ";",
  ].join("\n");
}

/** Mean of the progress lines after the warm-up: "progress: 2.0 s, 4100.5 tps, …". */
function rateOf(progress: string): number {
  const rates = [...progress.matchAll(/^progress: [\d.]+ s, ([\d.]+) tps/gm)].map(([, rate]) =>
    Number(rate)
  );
  const measured = rates.slice(WARMUP_S);
  return measured.reduce((sum, rate) => sum + rate, 0) / measured.length;
}
