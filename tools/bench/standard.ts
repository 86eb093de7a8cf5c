/** A run of the benchmark on a fresh database: starts, bundles, memory, lines and pairs. */

import { measureFootprint } from "./footprint.ts";
import { prepareHostileReaderPair } from "./hostile_reader.ts";
import { type Line, prepareLines, RequestForge } from "./line.ts";
import {
  type AtEnd,
  type Bench,
  type Load,
  measureFloor,
  measureServer,
  openBench,
} from "./measure.ts";
import { type Figure, type Measured, type Measurement, measurePair } from "./measurement.ts";
import { prepareLivePairs } from "./live_pairs.ts";
import { measureMemory } from "./memory.ts";
import { preparePeerPairs } from "./peers.ts";
import { measureReadyTimes } from "./ready_times.ts";
import { openRecorder } from "./recorded_statement.ts";
import { prepareResetPair } from "./reset_pair.ts";
import { prepareServerPairs } from "./server_pairs.ts";
import { measureSpace } from "./space.ts";
import { prepareWebhookPairs } from "./webhook_pairs.ts";

/** The options of a run on a fresh database. */
interface StandardOptions {
  seconds: number;
  repetitions: number;
  quick: boolean;
  only: string;
  has_pgbench: boolean;
}

/** Clients of pgbench; the better rate is the floor of lines with many connections. */
const FLOOR_CLIENTS = [8, 16];
/** Payments of the sandbox that is reset (performance targets). */
const RESET_PAYMENTS = { standard: 100_000, quick: 1_000 };
/** Payments of the hostile reader's sandbox: more than one page reads (ADR 0004). */
const HOSTILE_PAYMENTS = { standard: 200_000, quick: 5_000 };
/** Live creates that wait for the provider at once (performance targets). */
const LIVE_CREATES = { standard: 300, quick: 20 };
/** Creates of the memory line. */
const MEMORY_CREATES = { standard: 1_000_000, quick: 2_000 };
/** Payments whose space is measured; with webhooks, fewer than a sandbox may have pending. */
const SPACE_PAYMENTS = { standard: 20_000, quick: 1_000 };

/** Measures every line whose name contains `only`. */
export async function measureStandard(
  { seconds, repetitions, quick, only, has_pgbench }: StandardOptions,
  load: Load,
  discarded: string[],
  atEnd: AtEnd,
): Promise<{ measured: Measured; benches: Bench[] }> {
  const size = quick ? "quick" : "standard";
  // Starts and bundles come first, while nothing else runs.
  const figures: Figure[] = [];
  if ("ready".includes(only)) figures.push(...await measureReadyTimes(repetitions, atEnd));
  if ("bundle".includes(only)) {
    const footprint = await measureFootprint(repetitions);
    figures.push(...footprint.figures);
    for (const problem of footprint.problems) console.error(`NOT MEASURED: ${problem}`);
  }
  const benches: Bench[] = [];
  const open = async () => {
    const bench = await openBench({ load, seconds, discarded }, atEnd);
    benches.push(bench);
    return new RequestForge(bench);
  };
  if ("memory".includes(only)) {
    figures.push(...await measureMemory(await open(), MEMORY_CREATES[size]));
  }
  const forge = await open();
  if ("space".includes(only)) {
    figures.push(...await measureSpace(forge, SPACE_PAYMENTS[size], atEnd));
  }
  const { product, sql } = forge.bench;
  const recorder = openRecorder(product.superuser_url, product.base_url);
  atEnd(() => recorder.close());
  const chosen = ({ name }: { name: string }) => name.includes(only);
  const lines = (await prepareLines(forge, recorder)).filter(chosen);
  const reset = prepareResetPair(forge, RESET_PAYMENTS[size]);
  const live = prepareLivePairs(forge, LIVE_CREATES[size], atEnd);
  const pairs = [
    ...await preparePeerPairs(forge, atEnd),
    ...await prepareServerPairs(forge, atEnd),
    ...await prepareWebhookPairs(forge, atEnd),
    reset.pair,
    prepareHostileReaderPair(forge, HOSTILE_PAYMENTS[size]),
    ...live.pairs,
  ].filter(chosen);
  // Otherwise autovacuum would analyze the tables during a run.
  await sql`analyze`;
  const of_lines: Measurement[][] = lines.map(({ name, connections }) =>
    connections.map((connections) => ({ name, connections, repetitions: [] }))
  );
  const of_pairs: Measurement[] = pairs.map(({ name, connections }) => ({
    ...{ name, connections },
    repetitions: [],
  }));
  const clients = !has_pgbench ? [] : quick ? FLOOR_CLIENTS.slice(0, 1) : FLOOR_CLIENTS;
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const [index, line] of lines.entries()) {
      reportProgress(repetition, line.name);
      await measureLine(forge.bench, line, of_lines[index]!, clients);
    }
    for (const [index, pair] of pairs.entries()) {
      reportProgress(repetition, pair.name);
      of_pairs[index]!.repetitions.push(await measurePair(pair));
    }
  }
  figures.push(...[reset.figure, live.figure].filter(({ values }) => values.length > 0));
  return { measured: { measurements: [...of_lines.flat(), ...of_pairs], figures }, benches };
}

function reportProgress(repetition: number, name: string): void {
  const passed = (performance.now() / 1000).toFixed(0).padStart(4);
  console.error(`${passed} s  ${repetition + 1}: ${name}`);
}

/** Measures one repetition of a line. */
async function measureLine(
  bench: Bench,
  line: Line,
  measurements: readonly Measurement[],
  floor_clients: readonly number[],
): Promise<void> {
  const floors = new Map<number, number>();
  const measure = async (clients: number) => {
    if (line.statements === null) return;
    const rate = await measureFloor(bench, line.name, clients, line.statements, line.each);
    if (rate !== null) floors.set(clients, rate);
  };
  // In turns: pgbench with 1 client, the server at 1, pgbench with 8, the server at 64, and so on.
  const waiting = [...floor_clients];
  const runs = [];
  for (const connections of line.connections) {
    const next = connections === 1 && floor_clients.length > 0 ? 1 : waiting.shift();
    if (next !== undefined) await measure(next);
    runs.push(await measureServer(bench, line.name, connections, await line.plan(), line.each));
  }
  for (const clients of waiting) await measure(clients);
  const of_many = [...floors].filter(([clients]) => clients > 1).map(([, floor]) => floor);
  const best = of_many.length === 0 ? null : Math.max(...of_many);
  for (const [index, { connections, repetitions }] of measurements.entries()) {
    const beside = connections === 1 ? floors.get(1) ?? null : best;
    repetitions.push({ run: runs[index]!, beside });
  }
}
