/**
 * The service of a checkout as a program of the benchmark. After each run it compares the new rows
 * with the responses, and its invariants at the end.
 */

import postgres, { type Sql } from "postgres";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { DEMO_ENVIRONMENTS } from "../../apps/operator/demo_account.ts";
import {
  type ApiRequest,
  ask,
  CREATE_A,
  CREATE_B,
  createOf,
  PAYMENTS,
  toWire,
} from "./api_request.ts";
import { cpuOfEach, readMostMemory } from "./cpu_time.ts";
import { type Product, readProductCpu, startProduct } from "./product.ts";
import {
  type AtEnd,
  CONNECTIONS,
  connectionsOf,
  type Figure,
  type LineName,
  type Program,
  type Run,
} from "./program.ts";
import { measureWebhooks } from "./webhooks.ts";
import { ID_PLACE, KEY_PLACE, type Load, type LoadResult, runWrk } from "./wrk.ts";

/** A running service. */
export interface Service extends Program {
  product: Product;
  sql: Sql;
  /** Makes payments and returns its sizes then. */
  measureSizes(creates: number): Promise<Figure[]>;
  /** The broken invariants. */
  audit(): Promise<string[]>;
}

/** The rows that a response of a line adds: a table and the prefix of its ids. */
const ADDED: Partial<Record<LineName, [table: string, prefix: string]>> = {
  create: ["payments", "pay_"],
  "create, 1 connection": ["payments", "pay_"],
  refund: ["refunds", "re_"],
};
/** Payments that gets and replays use in turn. */
const GET_ITEMS = 1000;
const REPLAYS = 8;
/** More refunds than a machine makes in a second. */
const REFUNDS_PER_SECOND = 8000;
/** Longer than a step of the clock, which has whole milliseconds. */
const NEXT_MOMENT_MS = 2;
/** V8 compiles the code of a line that has run for so long, and its times no longer fall. */
const WARMUP_S = 8;
/** Payments before the statistics of the tables. */
const FIRST_S = 2;

/** The requests of a line, as a load has them. */
type Plan = Pick<Load, "requests" | "ids" | "keys">;

/** Starts the service of a checkout. */
export async function openService(
  name: string,
  project: string,
  instances: number,
  atEnd: AtEnd,
): Promise<Service> {
  const product = await startProduct(project, instances, atEnd);
  const sql = postgres(product.superuser_url, { max: 1, onnotice: () => {} });
  atEnd(() => sql.end());
  const keys = Array.from({ length: REPLAYS }, () => crypto.randomUUID());
  const wire = (request: ApiRequest) => toWire(product, request);
  const creates = [CREATE_A, CREATE_B].map((body) => wire(createOf(body, KEY_PLACE)));
  const plans: Record<Exclude<LineName, "webhooks">, (seconds: number) => Promise<Plan>> = {
    create: () => Promise.resolve({ requests: creates }),
    "create, 1 connection": () => Promise.resolve({ requests: creates }),
    replay: () => Promise.resolve({ requests: [wire(createOf(CREATE_A, KEY_PLACE))], keys }),
    get: async () => ({
      requests: [wire({ method: "GET", path: `${PAYMENTS}/${ID_PLACE}` })],
      ids: await readIds(sql, GET_ITEMS),
    }),
    "list of 10": () => Promise.resolve({ requests: [wire({ method: "GET", path: PAYMENTS })] }),
    refund: async (seconds) => {
      // Payments for as many refunds.
      await service.measure("create", seconds);
      return {
        requests: [wire({
          method: "POST",
          path: `${PAYMENTS}/${ID_PLACE}/refund`,
          body: {},
          idempotency_key: KEY_PLACE,
        })],
        ids: await readIds(sql, seconds * REFUNDS_PER_SECOND),
      };
    },
  };
  const service: Service = {
    ...{ name, product, sql, stores: "in PostgreSQL", warmup_s: WARMUP_S },
    has: () => true,
    async measure(line, seconds) {
      if (line === "webhooks") return await measureWebhooks(product, sql, seconds);
      const plan = await plans[line](seconds);
      const load = { ...plan, port: product.port, connections: connectionsOf(line), seconds };
      return await measureAudited(service, load, ADDED[line]);
    },
    measureSizes: (creates) => measureSizes(service, plans.create, creates),
    async audit() {
      const broken = (await checkBooks(sql)).filter(({ breaches }) => breaches > 0);
      return broken.map(({ invariant, breaches, examples }) =>
        `${name}: ${invariant}: ${breaches} breaches, such as ${examples[0]}`
      );
    },
  };
  for (const key of keys) await ask(product, createOf(CREATE_A, key));
  await service.measure("create", FIRST_S);
  await sql`analyze`;
  return service;
}

async function measureAudited(
  service: Service,
  load: Load,
  added?: [table: string, prefix: string],
): Promise<Run> {
  const since = await markBooks();
  const before = await readProductCpu(service.product);
  const result = await runWrk(load);
  const cpu = cpuOfEach(before, await readProductCpu(service.product), result.responses);
  await expectRows(service.sql, since, result, load.connections, added);
  const { per_second, p99_ms } = result;
  return { per_second, p99_ms, ...cpu };
}

/** A time after every earlier response. */
async function markBooks(): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, NEXT_MOMENT_MS));
  return new Date().toISOString();
}

/**
 * Compares the new rows with the responses. When wrk ends, each connection has a request under way.
 * @throws {Error} if they differ
 */
async function expectRows(
  sql: Sql,
  since: string,
  { responses }: LoadResult,
  connections: number,
  added?: [table: string, prefix: string],
): Promise<void> {
  const [table, prefix] = added ?? ["payments", "pay_"];
  const count = async () => {
    const [row] = await sql<[{ n: number }]>`
      select count(*)::int as n from pay.${sql(table)}
      where environment_id = ${DEMO_ENVIRONMENTS.test.id}
        and id >= pay_internal.id_floor(${prefix}, ${since}::text::timestamptz)`;
    return row.n;
  };
  const rows = await count();
  const least = added === undefined ? 0 : responses;
  const most = added === undefined ? 0 : responses + connections;
  if (rows >= least && rows <= most) return;
  throw new Error(`${rows} new rows in ${table} after ${responses} responses`);
}

/** The newest completed payments without a refund. */
async function readIds(sql: Sql, count: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select p.id from pay.payments p where p.environment_id = ${DEMO_ENVIRONMENTS.test.id}
      and not exists (select from pay.refunds r
        where r.environment_id = p.environment_id and r.payment_id = p.id)
    order by p.id desc limit ${count}`;
  return rows.map(({ id }) => id);
}

/** Creates payments until there are so many more, and measures memory, tables and WAL. */
async function measureSizes(
  service: Service,
  plan: (seconds: number) => Promise<Plan>,
  creates: number,
): Promise<Figure[]> {
  const { product, sql, name } = service;
  const read = async () => {
    const [row] = await sql<[{ bytes: number; wal: number; payments: number }]>`
      select (select sum(pg_total_relation_size(c.oid)) from pg_class c
          where c.relkind = 'r' and c.relnamespace = 'pay'::regnamespace)::float as bytes,
        pg_current_wal_insert_lsn() - '0/0'::pg_lsn as wal,
        (select count(*) from pay.payments)::float as payments`;
    return { ...row, wal: Number(row.wal) };
  };
  const before = await read();
  let after = before;
  for (let seconds = 2; after.payments - before.payments < creates;) {
    const load = { ...await plan(seconds), port: product.port, connections: CONNECTIONS, seconds };
    const { per_second } = await runWrk(load);
    after = await read();
    const missing = before.payments + creates - after.payments;
    seconds = Math.min(60, Math.max(1, Math.ceil(missing / per_second)));
  }
  const made = after.payments - before.payments;
  const each = (member: "bytes" | "wal") => (after[member] - before[member]) / made / 1000;
  const memory = await readMostMemory(product.pid, product.postgres_pid);
  return [
    { name: `${name}: memory of a process after ${creates} creates`, unit: "MB", value: memory },
    { name: `${name}: space of a payment with indexes`, unit: "kB", value: each("bytes") },
    { name: `${name}: WAL of a create`, unit: "kB", value: each("wal") },
  ];
}
