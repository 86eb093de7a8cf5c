/**
 * `deno task bench --growth`: the cost of a request at more connections, tenants, endpoints, bytes of
 * a body, and payments. The steps of each line are measured in turns. A line has a figure for the
 * time and one for the CPU time: the largest rise of the cost for a unit of work from one step to a
 * later one. So one number shows growth that is faster than linear, and a cliff.
 */

import { makeSandbox } from "../../tests/chaos/sandbox.ts";
import { CREATE_A, toWire } from "./api_request.ts";
import { measureOnce, openSide } from "./filled.ts";
import { CONNECTIONS, CREATE_ROWS, createOf, createPlan, RequestForge } from "./line.ts";
import { ID_PLACE, KEY_PLACE } from "./load_order.ts";
import {
  type AtEnd,
  type Bench,
  type Load,
  type LoadPlan,
  measureServer,
  openBench,
  type Run,
  startServer,
} from "./measure.ts";
import {
  cpuPerResponse,
  type Figure,
  type Measured,
  type Measurement,
  median,
  runsOf,
} from "./measurement.ts";
import { createUntilArrived } from "./webhook_pairs.ts";

/** The steps of the lines. */
const SIZES = {
  standard: {
    connections: [1, 4, 16, 64, 256],
    tenants: [1, 10, 100, 1_000, 10_000],
    endpoints: [0, 1, 4, 16, 64],
    body_kb: [1, 4, 16, 64],
  },
  quick: {
    connections: [1, 64],
    tenants: [1, 100],
    endpoints: [0, 4],
    body_kb: [1, 16],
  },
};
/** Payments of the last step by default, and of the first. */
const PAYMENTS = { standard: 100_000, quick: 2_000 };
const FIRST_PAYMENTS = 1_000;
/** Lines that are measured on a database with many payments. */
const LINES_OF_PAYMENTS = ["create", "get", "list of 10"];
/** Tenants of the line of connections: one may have at most 256 requests under way. */
const TENANTS = 16;
/** Connections of the line of bodies: with more, a run would end before it has responses. */
const BODY_CONNECTIONS = 8;
/** Deliveries of a run with endpoints for each second; a create has two for each endpoint. */
const DELIVERIES_PER_SECOND = 4_000;
const EVENTS = 2;
/** Most characters of a value in `metadata` (contract §1). Each of ours takes three bytes. */
const VALUE_CHARACTERS = 500;
const CHARACTER_BYTES = 3;
/** Longer than a run with endpoints takes on any machine. */
const DEADLINE_MS = 600_000;

/** The options of a run. */
interface GrowthOptions {
  seconds: number;
  repetitions: number;
  quick: boolean;
  only: string;
  /** Payments of the last step; null for the default. */
  rows: number | null;
}

/** A line whose cost is measured at several sizes. */
interface Growth {
  /** The request and the unit of the sizes, such as "create, tenants". */
  name: string;
  sizes: readonly number[];
  /** The work of a request of this size, in any unit; by default, it is the same for all. */
  work?: (size: number) => number;
  /** Measures a request of this size. */
  run(size: number): Promise<Run | null>;
}

/** Measures every line whose name contains `only`. */
export async function measureGrowth(
  { seconds, repetitions, quick, only, rows }: GrowthOptions,
  load: Load,
  discarded: string[],
  atEnd: AtEnd,
): Promise<{ measured: Measured; benches: Bench[] }> {
  const size = quick ? "quick" : "standard";
  const benches: Bench[] = [];
  const open = async () => {
    const bench = await openBench({ load, seconds, discarded }, atEnd);
    benches.push(bench);
    return new RequestForge(bench);
  };
  const forge = await open();
  // V8 compiles the code, and the tables have statistics.
  await forge.makeIds(forge.creates, CREATE_ROWS);
  const sizes = SIZES[size];
  const most = Math.max(TENANTS, ...sizes.tenants);
  const keys = "tenants connections".includes(only) || "create".includes(only)
    ? await makeTenants(forge.bench, most)
    : [];
  await forge.bench.sql`analyze`;
  const growths = [
    growthOfConnections(forge, sizes.connections, keys.slice(0, TENANTS)),
    growthOfTenants(forge, sizes.tenants, keys),
    await growthOfEndpoints(forge, sizes.endpoints, atEnd),
    growthOfBodies(forge, sizes.body_kb),
  ];
  if ("payments".includes(only) || LINES_OF_PAYMENTS.some((name) => name.includes(only))) {
    growths.push(...await growthsOfPayments(open, rows ?? PAYMENTS[size]));
  }
  const chosen = growths.filter(({ name }) => name.includes(only)).map((growth) => ({
    growth,
    measurements: growth.sizes.map((size): Measurement => ({
      name: `${growth.name}: ${size}`,
      connections: null,
      repetitions: [],
    })),
  }));
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const { growth, measurements } of chosen) {
      console.error(
        `${(performance.now() / 1000).toFixed(0)} s  ${repetition + 1}: ${growth.name}`,
      );
      for (const [index, size] of growth.sizes.entries()) {
        const run = await growth.run(size);
        measurements[index]!.repetitions.push({ run, beside: null });
      }
    }
  }
  return {
    measured: {
      measurements: chosen.flatMap(({ measurements }) => measurements),
      figures: chosen.flatMap(({ growth, measurements }) => figuresOf(growth, measurements)),
    },
    benches,
  };
}

/**
 * The largest rise of the cost for a unit of work: from the cheapest step to a later one. It is 1 if
 * the cost never rises, and if each step costs as much more as it has more work.
 */
function riseOf(costs: readonly number[], work: readonly number[]): number {
  const each = costs.map((cost, i) => cost / work[i]!);
  return Math.max(...each.map((cost, i) => cost / Math.min(...each.slice(0, i + 1))));
}

function figuresOf(
  { name, sizes, work = () => 1 }: Growth,
  measurements: readonly Measurement[],
): Figure[] {
  const runs = measurements.map(runsOf);
  const figure = (of: string, cost: (run: Run) => number): Figure => ({
    name: `${name} ${sizes[0]} to ${sizes.at(-1)}: rise of the ${of}`,
    unit: "×",
    values: [riseOf(runs.map((step) => median(step.map(cost))), sizes.map(work))],
  });
  return [
    figure("time", ({ per_second }) => 1 / per_second),
    figure("CPU time", (run) => {
      const cpu = cpuPerResponse(run);
      return cpu === null ? NaN : cpu.server + cpu.postgres;
    }),
  ];
}

async function makeTenants({ sql }: Bench, count: number): Promise<string[]> {
  const tenants = Array.from(
    { length: count },
    (_, i) => makeSandbox(sql, "Tenant", `tenant ${i}`),
  );
  return (await Promise.all(tenants)).map(({ text }) => text);
}

/** Creates by several keys in turn. */
function planOfKeys({ bench }: RequestForge, keys: string[]): LoadPlan {
  // The load generator writes each key where a request usually has an id.
  const test_key = ID_PLACE.padEnd(keys[0]!.length, ID_PLACE);
  const request = createOf(CREATE_A, KEY_PLACE);
  return {
    requests: [toWire({ ...bench.product, test_key }, request)],
    ids: keys,
    expected_status: 201,
  };
}

function growthOfConnections(
  forge: RequestForge,
  sizes: readonly number[],
  keys: string[],
): Growth {
  const name = "create, connections";
  const run = (size: number) =>
    measureServer(forge.bench, name, size, planOfKeys(forge, keys), CREATE_ROWS);
  return { name, sizes, run };
}

function growthOfTenants(forge: RequestForge, sizes: readonly number[], keys: string[]): Growth {
  const name = "create, tenants";
  const run = (size: number) => {
    const plan = planOfKeys(forge, keys.slice(0, size));
    return measureServer(forge.bench, `${name}: ${size}`, CONNECTIONS, plan, CREATE_ROWS);
  };
  return { name, sizes, run };
}

/** Creates until every endpoint has every event. The work is the create and its deliveries. */
async function growthOfEndpoints(
  forge: RequestForge,
  sizes: readonly number[],
  atEnd: AtEnd,
): Promise<Growth> {
  const { bench } = forge;
  const receiver = await startServer("webhook_receiver.ts", null, atEnd);
  const run = (size: number) => {
    const deliveries = bench.seconds * DELIVERIES_PER_SECOND;
    return createUntilArrived(bench, receiver, {
      ...createPlan(forge),
      ...{ warmup_ms: 0, duration_ms: DEADLINE_MS },
      requests_max: Math.ceil(deliveries / (EVENTS * Math.max(1, size))),
    }, size);
  };
  return {
    ...{ name: "create until every event has arrived, endpoints", sizes, run },
    work: (size) => 1 + EVENTS * size,
  };
}

function growthOfBodies(forge: RequestForge, sizes: readonly number[]): Growth {
  const name = "create, kB of the body";
  const run = (size: number) => {
    const request = createOf({ ...CREATE_A, metadata: metadataOf(size * 1000) }, KEY_PLACE);
    const plan = { requests: [forge.wire(request)], expected_status: 201 };
    return measureServer(forge.bench, `${name}: ${size}`, BODY_CONNECTIONS, plan, CREATE_ROWS);
  };
  return { name, sizes, run, work: (size) => size };
}

/** Metadata that makes the body of a create this long. PostgreSQL cannot compress it. */
function metadataOf(bytes: number): Record<string, string> {
  const metadata: Record<string, string> = {};
  let left = bytes - JSON.stringify({ ...CREATE_A, metadata }).length;
  let random = 1;
  for (let field = 10; left > 0; field++) {
    const characters = Math.min(VALUE_CHARACTERS, Math.ceil(left / CHARACTER_BYTES));
    metadata[`field${field}`] = Array.from({ length: characters }, () => {
      random = random * 16_807 % 2_147_483_647;
      return String.fromCodePoint(0x4e00 + random % 20_000);
    }).join("");
    left -= characters * CHARACTER_BYTES + `"field${field}":"",`.length;
  }
  return metadata;
}

/** Lines on one database for each size, from the first to `most` by tens. */
async function growthsOfPayments(
  open: () => Promise<RequestForge>,
  most: number,
): Promise<Growth[]> {
  const sizes: number[] = [];
  for (let size = FIRST_PAYMENTS; size < most; size *= 10) sizes.push(size);
  sizes.push(most);
  const sides = new Map<number, Awaited<ReturnType<typeof openSide>>>();
  for (const size of sizes) sides.set(size, await openSide(await open(), size));
  return LINES_OF_PAYMENTS.map((request) => ({
    name: `${request}, payments`,
    sizes,
    run: (size) => {
      const side = sides.get(size)!;
      return measureOnce(side, side.lines.find(({ name }) => name === request)!);
    },
  }));
}
