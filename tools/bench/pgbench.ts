/**
 * The floor: pgbench, PostgreSQL's load generator in C, issues the statements of the service to the
 * same server. Each issue replaces the recorded ids and idempotency key by fresh values, and the
 * recorded time by the time of the run. Fresh ids rise with time, like the product's.
 */

import { formatTime } from "../../shared/core/clock.ts";
import { idFloor } from "../../shared/core/ids.ts";
import { RECORDED_RANDOM, type RecordedStatement } from "./recorded_statement.ts";

const PROGRAM = "pgbench";
/** In the first second the connections plan their statements. Its rate is not measured. */
const WARMUP_S = 1;
/** Placeholders for the time and randomness of an id, and for the random part of a key. */
const [ID_MARK, KEY_MARK] = ["~", "^"];
/** The key of a recorded request. Each issue by pgbench replaces its end. */
export const RECORDED_KEY = `00000000-0000-4000-8000${"k".repeat(13)}`;
const RECORDED_KEY_END = "k".repeat(13);

/** The result of a run. */
interface PgbenchResult {
  /** All committed transactions. The books must show them. */
  transactions: number;
  per_second: number;
  /** The end of its error output; null if it succeeded. */
  error: string | null;
}

/** One run. */
interface PgbenchOrder {
  url: string;
  /** By which the service reaches its server too; empty: by TCP. */
  socket_folder: string;
  clients: number;
  /** Measured time after the warm-up; whole seconds. */
  seconds: number;
  /** One script for each; pgbench chooses among them at random. */
  statements: readonly RecordedStatement[];
}

/** The output of `pgbench --version`; null if it is not installed. */
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
        ...["-h", order.socket_folder || hostname, "-p", port, "-U", username],
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
    const cause = /ERROR: .*/.exec(progress)?.[0] ?? progress.slice(-500);
    const error = success ? failed ?? null : cause;
    return { transactions, per_second: rateOf(progress), error };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** The script of a statement. Adds the parameters to `variables`. */
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
    // 16 digits for the 16 random characters, unique by client and time.
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
