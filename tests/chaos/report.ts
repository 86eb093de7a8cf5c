/** The report of a chaos run: as lines of text, and as the page last_runs.md. */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Verdict } from "./harness/audit.ts";

/** The program that repeats the run, and its circumstances. */
interface Circumstances {
  /** The command line after `deno task chaos`. */
  args: string;
  commit: string;
  /** UTC. */
  started_at: Date;
  seconds: number;
}

/** The verdicts of a run. */
export interface Judged {
  run: string;
  seconds: number;
  verdicts: Verdict[];
}

const PAGE = fileURLToPath(import.meta.resolve("./last_runs.md"));
/** The project. */
export const ROOT = fileURLToPath(import.meta.resolve("../../"));
const BREACHES_SHOWN = 10;

/** The verdicts of a run as lines of text. */
export function renderRun({ run, seconds, verdicts }: Judged): string {
  const lines = verdicts.flatMap(({ promise, says, breaches }) => {
    const more = breaches.length - BREACHES_SHOWN;
    return [
      `${breaches.length === 0 ? "ok    " : "BROKEN"} ${promise.padEnd(4)} ${says}`,
      ...breaches.slice(0, BREACHES_SHOWN).map((breach) => `       ${breach}`),
      ...(more > 0 ? [`       and ${more} more`] : []),
    ];
  });
  return [...lines, `       ${run}: ${seconds.toFixed(1)} s`].join("\n");
}

/** Writes the page about a run. It replaces the page about the last one. */
export async function writePage(
  judged: readonly Judged[],
  circumstances: Circumstances,
): Promise<void> {
  await Deno.writeTextFile(PAGE, renderPage(judged, circumstances));
  const format = new Deno.Command(Deno.execPath(), { args: ["fmt", "--quiet", PAGE], cwd: ROOT });
  if (!(await format.output()).success) throw new Error(`${PAGE} cannot be formatted`);
}

/** The page about a run in Markdown. */
function renderPage(
  judged: readonly Judged[],
  { args, commit, started_at, seconds }: Circumstances,
): string {
  const verdicts = judged.flatMap(({ run, verdicts }) =>
    verdicts.map((verdict) => ({ run, ...verdict }))
  );
  const broken = verdicts.filter(({ breaches }) => breaches.length > 0);
  const rows = verdicts.map(({ run, promise, says, breaches }) =>
    `| ${run} | ${promise} | ${breaches.length === 0 ? "yes" : "**no**"} | ${says} |`
  );
  return [
    "# The last run of the chaos test\n",
    "`deno task chaos --full --write` writes this page. [Reliability](../../docs/reliability.md) " +
    "explains the promises and the runs.\n",
    `\`deno task chaos ${args}\`, commit ${commit}, ${started_at.toISOString().slice(0, 10)}, ` +
    `${availableParallelism()} CPUs, ${Math.round(seconds)} s. ` +
    (broken.length === 0 ? "Every promise held.\n" : `${broken.length} promises were broken.\n`),
    "| Run | Promise | Held | Figures |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}
