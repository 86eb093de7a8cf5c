/**
 * The server's memory over many creates: what is resident, looked at while it works. The first part
 * fills buffers and compiles code; growth is counted between the parts after it.
 */

import type { Bench } from "./measure.ts";
import { measureServer } from "./measure.ts";
import { CONNECTIONS, CREATE_ROWS, createPlan, type RequestForge } from "./line.ts";
import { type Figure, median } from "./measurement.ts";

const SAMPLE_MS = 50;
/** A fifth of the creates at either end: the first of them warms up. */
const PARTS = 5;
/** Longer than so many creates can take. */
const DEADLINE_MS = 3_600_000;

/** Resident memory during and growth over so many creates; none where the system does not tell. */
export async function measureMemory(forge: RequestForge, creates: number): Promise<Figure[]> {
  const { bench } = forge;
  if (residentMb(bench) === null) return [];
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(residentMb(bench)!), SAMPLE_MS);
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
    { name: `growth of its memory, ${name}`, unit: "MB", values: [part(PARTS - 1) - part(1)] },
  ];
}

/** What the server has in memory now; null where the system does not tell. */
export function residentMb({ product: { pid } }: Bench): number | null {
  if (Deno.build.os !== "linux") return null;
  const status = Deno.readTextFileSync(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? NaN) * 1024 / 1e6;
}
