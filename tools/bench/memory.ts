/**
 * The resident memory of the server during many creates. In the first part buffers fill and V8
 * compiles code, so the growth counts from the second part to the last.
 */

import { CONNECTIONS, CREATE_ROWS, createPlan, type RequestForge } from "./line.ts";
import { type Bench, measureServer } from "./measure.ts";
import { type Figure, median } from "./measurement.ts";

const SAMPLE_MS = 50;
/** Parts into which the samples are divided. */
const PARTS = 5;
/** Longer than the creates take on any machine. */
const DEADLINE_MS = 3_600_000;

/** Memory and growth during this many creates; no figures on systems without /proc. */
export async function measureMemory(forge: RequestForge, creates: number): Promise<Figure[]> {
  const { bench } = forge;
  if (residentMb(bench) === null) return [];
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(residentMb(bench) ?? NaN), SAMPLE_MS);
  const name = `${creates} creates`;
  const run = await measureServer(bench, name, CONNECTIONS, {
    ...createPlan(forge),
    requests_max: creates,
    duration_ms: DEADLINE_MS,
  }, CREATE_ROWS);
  clearInterval(timer);
  if (run === null || samples.length < PARTS) return [];
  const part = (n: number) =>
    median(samples.slice(samples.length * n / PARTS, samples.length * (n + 1) / PARTS));
  return [
    { name: `memory of the server, ${name}`, unit: "MB", values: [part(PARTS - 1)] },
    {
      name: `memory after a fifth ÷ after ${name}`,
      unit: "×",
      values: [part(1) / part(PARTS - 1)],
    },
  ];
}

/** Resident memory of the server now; null on systems without /proc, and after its end. */
function residentMb({ product: { pid } }: Bench): number | null {
  try {
    const status = Deno.readTextFileSync(`/proc/${pid}/status`);
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? NaN) * 1024 / 1e6;
  } catch {
    return null;
  }
}
