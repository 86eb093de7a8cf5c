/**
 * docs/benchmarks.md, made whole from the kept results: how it was measured, targets, tables, and what
 * they say. Its texts stand here, for the next `--write` makes the file anew.
 */

import { PROJECT_DIR } from "./product.ts";
import { renderFigures, renderRatios, renderTargets } from "./report.ts";
import type { KeptResults, RunResults } from "./results.ts";

const PATH = `${PROJECT_DIR}docs/benchmarks.md`;

/** Writes the document. */
export async function writeDocument(results: KeptResults): Promise<void> {
  await Deno.writeTextFile(PATH, renderDocument(results));
  const format = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--quiet", PATH, PATH.replace(/md$/, "json")],
    cwd: PROJECT_DIR,
  });
  if (!(await format.output()).success) throw new Error(`${PATH} cannot be formatted`);
}

/** The document as Markdown. */
export function renderDocument({ standard, filled }: KeptResults): string {
  return [
    "# Benchmarks\n",
    METHOD,
    ...(standard === null ? [] : renderStandard(standard)),
    ...(filled === null ? [] : renderFilled(filled)),
    PROFILE,
    UPKEEP,
  ].join("\n");
}

function renderStandard(results: RunResults): string[] {
  return [
    "## Targets\n",
    `${renderCircumstances(results)}\n`,
    renderTargets(results),
    "## Lines\n",
    renderRatios(results),
    "## Figures\n",
    renderFigures(results),
  ];
}

function renderFilled(results: RunResults): string[] {
  return [
    `## ${results.rows} payments in one environment\n`,
    `${renderCircumstances(results)} Each line in turns with the same on a fresh database of a ` +
    "thousand payments; reads and replays choose among ten thousand payments spread over all, which " +
    "are read once before each run.\n",
    renderTargets(results),
    renderFigures(results),
    GROWTH,
  ];
}

function renderCircumstances({ circumstances }: RunResults): string {
  const { commit, cpus, deno, postgres, pgbench, seconds, repetitions } = circumstances;
  const settings = Object.entries(postgres).map(([name, value]) => `${name} ${value}`).join(", ");
  return `Commit ${commit}, ${cpus} CPUs, Deno ${deno}; PostgreSQL: ${settings}; ` +
    `${pgbench ?? "no pgbench"}. Median (least–greatest) of ${repetitions} repetitions of ` +
    `${seconds} s.`;
}

const METHOD = `
This page is for people who judge or change the speed of the service. It has the performance targets,
the measured lines, and the places where the time goes. \`deno task bench --write\` makes it. Rates
differ from machine to machine; ratios within one run are stable to about 10 %. Load, server and
PostgreSQL share one machine. The product is started as a user starts it, and its PostgreSQL writes as
in production: the settings below are read from the server.

- **In turns.** Each repetition measures a line and its peer directly one after the other. The floor of a
  line is pgbench with the statement that the product sends, recorded from it, with one change each
  (the product sends lists); the better of 8 and 16 clients counts. The floor of HTTP is \`Deno.serve\`
  with a constant answer.
- **Closed and open loop.** Rates come from a closed loop: each connection sends when it has its
  answer. Latency at half of the peak comes from an open loop: requests are due at a constant rate,
  and latency counts from the due time, also while no connection could send.
- **Seven round trips** is the same server with one difference: a create is a transaction of single
  statements (begin, key, idempotency key, payment, ledger, events, commit). **Uncoalesced** is the
  same server with one statement for each request.
- **Audited.** After every run the program counts the new rows and compares every payment of the run with
  its events and ledger entries. It compares deliveries with the requests that the receiver got, in order
  and once. At the end it checks all books. A run with one error or one wrong cent does not count.
- **Memory** is measured after a fresh start. \`deno task start\` makes V8 keep its young generation small
  (\`--max-semi-space-size=8\`): 185 MB resident instead of 236 at the same rate.
- **Starts** are measured without \`npx\`. The import is that of the minified bundle, without a code
  cache, on all threads, until the first answer (401).
- \`--rows N\` fills a database first, \`--profile\` shows where the time goes, \`--only TEXT\`
  measures some lines.
`;

const PROFILE = `## Where the time of a create went

\`deno task bench --profile\` prints CPU by process, V8's profile of the server and
pg_stat_statements, with the statements inside of functions. Before the changes below a create at 64
connections took 1 180 µs of CPU, two thirds of it in PostgreSQL.

| cost | what was done |
| ---- | ------------- |
| a statement and a commit for each create | requests that wait leave together, one statement under way ([0023](decisions/0023-coalesced-statements.md)) |
| the deferred ledger trigger, called for each row at commit: a fifth of a list's price | there is no trigger: a movement is one row with one amount for both sides ([0038](decisions/0038-one-row-per-movement.md)) |
| in \`pay.commit\`, a \`like\` over the whole list's text for each of its rows: quadratic | evaluated once |
| a statement for each get: server 124 µs, PostgreSQL 88 µs | gets that wait leave together: server 55 µs, PostgreSQL 20 µs |
| the default list planned anew with each call: PostgreSQL 360 µs | a static statement whose plan is kept, also after a cursor: 110 to 140 µs ([0024](decisions/0024-pages-planned-once.md)) |

Now a create takes 179 µs in the server while the profiler runs there (15 % of it garbage collection,
7 % making the statement's parameters, 6 % writing them to the socket) and 118 µs in PostgreSQL (66
inserts, 25 the claim of idempotency keys, 6 the check of the ledger): no single
cost stands out. The lines "beside the same uncoalesced" measure the first and the fourth row of the
table in every run.
`;

const GROWTH = `
Tables and their indexes grow by the bytes above. Every index is a B-tree; its depth grows by one level
when the rows grow a hundredfold. Ids begin with their time, so inserts go to the right edge of primary
keys, and these pages stay in memory. Idempotency keys are random, so each create touches another page of
their index. This index is the first that no longer fits into memory.

Five million payments take 33 GB, more than the 24 GiB of memory of the measured machine. The ten
thousand payments of reads and replays are read once before each run, so the lines compare the work. The
difference between the first and the second get of a payment, above, is the cost of reading it from disk.

Because of the index of idempotency keys \`wal_compression\` is off, as by default. After each checkpoint
the first change of a page writes the whole page to the WAL. With many pages, every create does so for a
page that no other create has changed. The local PostgreSQL can compress it only with pglz, which cost 55
of the 210 µs that a create takes in PostgreSQL. At 1 000 000 payments, right after a checkpoint, creates
ran at 0.81 (0.77–0.86) of a fresh database's rate with compression and at 1.09 (0.98–1.17) without. If
creates are slow just after checkpoints, look for this setting in \`pg_settings\`. Without compression the
WAL grows by at most 8 kB more for each such page, so checkpoints come sooner. lz4 was not measured.

What stays flat: a create, a get, a replay and a page are a fixed number of index probes; a page
begins at its cursor's place in the primary key, so the millionth row costs what the first does; a
balance reads the totals, not the history.
`;

const UPKEEP = `## Vacuum and fillfactor

| table | setting | why |
| ----- | ------- | --- |
| payments | fillfactor 90 | a payment changes a few times after its create, mostly in columns without an index, so the new version stays on its page |
| webhook_deliveries | fillfactor 50 | a claim writes a new version of many neighbouring rows; with half of the page free they stay on it, and no index changes |
| webhook_deliveries | autovacuum at 2 % and 10 000 dead rows | each delivery leaves a dead entry at the beginning of the indexes of pending deliveries, and each turn of the relay reads these entries until a vacuum: 20 000 of them cost 2 878 pages at the first read and 19 at each later one; a vacuumed index costs 1. The default, a fifth of a table of 30 days, would be millions |
| rate_counters | fillfactor 50, unlogged | at most 64 rows a key; each is updated many times on its page and pruned there without a vacuum |
| idempotency_keys | a B-tree of their time, defaults | retention searches for old keys every minute: 0.1 ms among 5 000 000. With a million deleted keys that wait for a vacuum it reads 2 742 pages in 4 ms (870 ms for the first search, which marks them). A BRIN index, and the table with it, would be read as a whole once vacuumed space is used again or a summary was interrupted: 302 504 pages, 15 s. Inserts cost the same with both |
| ledger_totals | fillfactor 50 | at most 64 rows for two accounts; each is updated many times on its page and pruned there without a vacuum |

The others are append-only. Autovacuum's defaults for inserts freeze them and set their visibility
maps after a fifth more rows.
`;
