/**
 * The lines that compare the product with pgbench: their requests, the rows that each request adds,
 * and the statements for pgbench.
 */

import { type ApiRequest, CREATE_A, CREATE_B, toRequest, toWire } from "./api_request.ts";
import { NO_ROWS, type Rows } from "./books.ts";
import { ID_PLACE, KEY_PLACE } from "./load_order.ts";
import { type Bench, type LoadPlan, measureServer } from "./measure.ts";
import { RECORDED_KEY } from "./pgbench.ts";
import type { RecordedStatement, Recorder, Recording } from "./recorded_statement.ts";

/** A line that can be measured repeatedly, in any order. */
export interface Line {
  name: string;
  each: Rows;
  /** Each number of connections is measured separately. */
  connections: readonly number[];
  /** For pgbench. */
  statements: readonly RecordedStatement[];
  plan: LoadPlan;
}

/** Rows of a completed create. */
export const CREATE_ROWS: Rows = {
  ...NO_ROWS,
  payments: 1,
  events: 2,
  ledger_movements: 1,
  idempotency_keys: 1,
};
/** Payments that reads and replays, and their floors, use in turn. */
const READ_ITEMS = 8;
/** Connections of every line except create: a busy server. */
export const CONNECTIONS = 64;
/** Those of create. */
export const CREATE_CONNECTIONS = [1, CONNECTIONS, 128];
const PAYMENTS = "/v1/payments";

/** Existing payments: their ids for reads, and their idempotency keys for replays. */
interface Pool {
  ids: string[];
  keys: string[];
}

/** The lines on a fresh product, with the statements for pgbench. */
export async function prepareLines(forge: RequestForge, recorder: Recorder): Promise<Line[]> {
  const record = (request: ApiRequest) => recorder.record(toRequest(forge.bench.product, request));
  // This warms up the server and fills the tables, so that statistics exist.
  await forge.warmUp();
  // The first request of a key has one statement more, which checks it.
  await record({ method: "GET", path: PAYMENTS });
  const create = one(await record(createOf(CREATE_A, RECORDED_KEY)));
  const pool: Pool = { ids: [], keys: [] };
  const gets: RecordedStatement[] = [];
  const replays: RecordedStatement[] = [];
  for (let i = 0; i < READ_ITEMS; i++) {
    const key = crypto.randomUUID();
    const id: string = JSON.parse((await record(createOf(CREATE_A, key))).body).id;
    const replay = await record(createOf(CREATE_A, key));
    if (!replay.replayed) throw new Error(`not a replay: ${replay.status} ${replay.body}`);
    pool.ids.push(id);
    pool.keys.push(key);
    replays.push(one(replay));
    gets.push(one(await record({ method: "GET", path: `${PAYMENTS}/${id}` })));
  }
  const list = one(await record({ method: "GET", path: PAYMENTS }));
  return linesOf(forge, pool, { create: [create], replays, gets, list: [list] });
}

/** Makes the load's requests, and payments for the lines that need some. */
export class RequestForge {
  readonly creates: string[];

  constructor(readonly bench: Bench) {
    this.creates = [CREATE_A, CREATE_B].map((body) => this.wire(createOf(body, KEY_PLACE)));
  }

  wire(request: ApiRequest): string {
    return toWire(this.bench.product, request);
  }

  /** Makes payments in a run that is audited and not measured. */
  async warmUp(): Promise<void> {
    await measureServer(this.bench, "preparation", CONNECTIONS, createPlan(this), CREATE_ROWS);
  }
}

/** Creates with unique keys, in both variants of the request. */
export function createPlan(forge: RequestForge): LoadPlan {
  return { requests: forge.creates, expected_status: 201 };
}

/** Gets of these payments in turn. */
export function getPlan(forge: RequestForge, ids: string[]): LoadPlan {
  return {
    requests: [forge.wire({ method: "GET", path: `${PAYMENTS}/${ID_PLACE}` })],
    ids,
    expected_status: 200,
  };
}

/** Lists of the first page. */
export function listPlan(forge: RequestForge): LoadPlan {
  return { requests: [forge.wire({ method: "GET", path: PAYMENTS })], expected_status: 200 };
}

/** A create with an idempotency key. */
export function createOf(body: Record<string, unknown>, idempotency_key: string): ApiRequest {
  return { method: "POST", path: PAYMENTS, body, idempotency_key };
}

type Statements = Record<"create" | "replays" | "gets" | "list", RecordedStatement[]>;

function linesOf(forge: RequestForge, { ids, keys }: Pool, statements: Statements): Line[] {
  const replay: LoadPlan = {
    requests: [forge.wire(createOf(CREATE_A, KEY_PLACE))],
    keys,
    expected_status: 201,
    expected_head: "idempotent-replayed: true",
  };
  const read = { each: NO_ROWS, connections: [CONNECTIONS] };
  return [
    {
      ...{ name: "create", each: CREATE_ROWS, connections: CREATE_CONNECTIONS },
      ...{ statements: statements.create, plan: createPlan(forge) },
    },
    { name: "replay", ...read, statements: statements.replays, plan: replay },
    { name: "get", ...read, statements: statements.gets, plan: getPlan(forge, ids) },
    { name: "list of 10", ...read, statements: statements.list, plan: listPlan(forge) },
  ];
}

function one({ statements }: Recording): RecordedStatement {
  if (statements.length !== 1) throw new Error(`${statements.length} statements, expected one`);
  return statements[0]!;
}
