/** A run of the benchmark: sizes, memory, lines beside pgbench, and pairs. */

import { measureFootprint } from "./footprint.ts";
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
import { measureMemory } from "./memory.ts";
import { preparePeerPairs } from "./peers.ts";
import { openRecorder } from "./recorded_statement.ts";
import { prepareWebhookPairs } from "./webhook_pairs.ts";

/** The options of a run. */
interface StandardOptions {
  seconds: number;
  repetitions: number;
  quick: boolean;
  only: string;
  has_pgbench: boolean;
}

/** Clients of pgbench; the better rate is the floor of lines with many connections. */
const FLOOR_CLIENTS = [8, 16];
/** Creates of the memory line. */
const MEMORY_CREATES = { standard: 1_000_000, quick: 2_000 };

/** Measures every line whose name contains `only`. */
export async function measureStandard(
  { seconds, repetitions, quick, only, has_pgbench }: StandardOptions,
  load: Load,
  discarded: string[],
  atEnd: AtEnd,
): Promise<{ measured: Measured; benches: Bench[] }> {
  const figures: Figure[] = "start".includes(only) ? await measureFootprint() : [];
  const benches: Bench[] = [];
  const open = async () => {
    const bench = await openBench({ load, seconds, discarded }, atEnd);
    benches.push(bench);
    return new RequestForge(bench);
  };
  if ("memory".includes(only)) {
    const creates = MEMORY_CREATES[quick ? "quick" : "standard"];
    figures.push(...await measureMemory(await open(), creates));
  }
  const forge = await open();
  const { product, sql } = forge.bench;
  const recorder = openRecorder(product.superuser_url, product.base_url);
  atEnd(() => recorder.close());
  const chosen = ({ name }: { name: string }) => name.includes(only);
  const lines = (await prepareLines(forge, recorder)).filter(chosen);
  const pairs = [
    ...await preparePeerPairs(forge, atEnd),
    ...await prepareWebhookPairs(forge, atEnd),
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
    const rate = await measureFloor(bench, line.name, clients, line.statements, line.each);
    if (rate !== null) floors.set(clients, rate);
  };
  // In turns: pgbench with 1 client, the server at 1, pgbench with 8, the server at 64, and so on.
  const waiting = [...floor_clients];
  const runs = [];
  for (const connections of line.connections) {
    const next = connections === 1 && floor_clients.length > 0 ? 1 : waiting.shift();
    if (next !== undefined) await measure(next);
    runs.push(await measureServer(bench, line.name, connections, line.plan, line.each));
  }
  for (const clients of waiting) await measure(clients);
  const of_many = [...floors].filter(([clients]) => clients > 1).map(([, floor]) => floor);
  const best = of_many.length === 0 ? null : Math.max(...of_many);
  for (const [index, { connections, repetitions }] of measurements.entries()) {
    const beside = connections === 1 ? floors.get(1) ?? null : best;
    repetitions.push({ run: runs[index]!, beside });
  }
}
