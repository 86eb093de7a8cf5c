/**
 * The lines that compare the product with pgbench: their requests, the rows that each request adds,
 * and the statements for pgbench.
 */

import {
  type ApiRequest,
  CREATE_A,
  CREATE_B,
  CREATE_PENDING,
  toRequest,
  toWire,
} from "./api_request.ts";
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
  /** For pgbench; null if a request is more than one statement. */
  statements: readonly RecordedStatement[] | null;
  /** Prepares one run, before its measured time. */
  plan(): Promise<LoadPlan>;
}

/** Rows of a completed create. */
export const CREATE_ROWS: Rows = {
  ...NO_ROWS,
  payments: 1,
  events: 2,
  ledger_movements: 1,
  idempotency_keys: 1,
};
/** Rows of a create that stays pending. */
const PENDING_ROWS: Rows = { ...NO_ROWS, payments: 1, events: 1, idempotency_keys: 1 };
/** Payments that reads and replays, and their floors, use in turn. */
const READ_ITEMS = 8;
/** Connections of every line except create: a busy server. */
export const CONNECTIONS = 64;
const CREATE_CONNECTIONS = [1, 64, 128];
const PAYMENTS = "/v1/payments";

/** Existing payments: their ids for reads, and their idempotency keys for replays. */
export interface Pool {
  ids: string[];
  keys: string[];
}

/** The lines on a fresh product, with the statements for pgbench. */
export async function prepareLines(forge: RequestForge, recorder: Recorder): Promise<Line[]> {
  const record = (request: ApiRequest) => recorder.record(toRequest(forge.bench.product, request));
  // This warms up the server and fills the tables, so that statistics exist.
  await forge.makeIds(forge.creates, CREATE_ROWS);
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
  return linesOf(forge, pool, CREATE_CONNECTIONS, {
    create: [create],
    replays,
    gets,
    list: [list],
  });
}

/** The lines on a filled product, without statements for pgbench. */
export function prepareFilledLines(forge: RequestForge, pool: Pool): Line[] {
  return linesOf(forge, pool, [CONNECTIONS], {});
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
  async makeIds(requests: string[], each: Rows): Promise<string[]> {
    const plan = { requests, expected_status: 201, collect: true };
    const run = await measureServer(this.bench, "preparation", CONNECTIONS, plan, each);
    return run?.result.ids ?? [];
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

/** Lists: the first page, or the page after an id. */
export function listPlan(forge: RequestForge, starting_after: string | null): LoadPlan {
  const query = starting_after === null ? "" : `?starting_after=${starting_after}`;
  return {
    requests: [forge.wire({ method: "GET", path: PAYMENTS + query })],
    expected_status: 200,
  };
}

/** A create with an idempotency key. */
export function createOf(body: Record<string, unknown>, idempotency_key: string): ApiRequest {
  return { method: "POST", path: PAYMENTS, body, idempotency_key };
}

type Statements = Partial<Record<"create" | "replays" | "gets" | "list", RecordedStatement[]>>;

function linesOf(
  forge: RequestForge,
  { ids, keys }: Pool,
  create_connections: readonly number[],
  statements: Statements,
): Line[] {
  const line = (
    name: string,
    each: Rows,
    plan: LoadPlan,
    recorded?: RecordedStatement[],
    connections: readonly number[] = [CONNECTIONS],
  ): Line => {
    return {
      ...{ name, each, connections },
      statements: recorded ?? null,
      plan: () => Promise.resolve(plan),
    };
  };
  const replay: LoadPlan = {
    requests: [forge.wire(createOf(CREATE_A, KEY_PLACE))],
    keys,
    expected_status: 201,
    expected_head: "idempotent-replayed: true",
  };
  return [
    line("create", CREATE_ROWS, createPlan(forge), statements.create, create_connections),
    line("replay", NO_ROWS, replay, statements.replays),
    line("get", NO_ROWS, getPlan(forge, ids), statements.gets),
    line("list of 10", NO_ROWS, listPlan(forge, null), statements.list),
    ...changeLines(forge),
  ];
}

/** Lines that change payments. They send two statements, so there is no floor of one statement. */
function changeLines(forge: RequestForge): Line[] {
  const makeCompleted = () => forge.makeIds(forge.creates, CREATE_ROWS);
  const makePending = () =>
    forge.makeIds([forge.wire(createOf(CREATE_PENDING, KEY_PLACE))], PENDING_ROWS);
  /** Each request changes another one of the payments that `makeIds` makes. */
  const line = (
    name: string,
    rows: Partial<Rows>,
    [path, body, expected_status]: [string, ApiRequest["body"], number],
    makeIds: () => Promise<string[]>,
  ): Line => {
    const request = { method: "POST", path, body, idempotency_key: KEY_PLACE } as ApiRequest;
    return {
      name,
      each: { ...NO_ROWS, idempotency_keys: 1, ...rows },
      connections: [CONNECTIONS],
      statements: null,
      plan: async () => ({
        requests: [forge.wire(request)],
        expected_status,
        ids_once: true,
        ids: await makeIds(),
      }),
    };
  };
  return [
    line(
      "refund of a part",
      { refunds: 1, events: 3, ledger_movements: 1 },
      [`${PAYMENTS}/${ID_PLACE}/refund`, { amount: 50 }, 201],
      makeCompleted,
    ),
    line("cancel", { events: 1 }, [`${PAYMENTS}/${ID_PLACE}/cancel`, {}, 200], makePending),
    line(
      "advance",
      { events: 1, ledger_movements: 1 },
      [`/v1/sandbox/${ID_PLACE}/advance`, { to: "completed" }, 200],
      makePending,
    ),
  ];
}

function one({ statements }: Recording): RecordedStatement {
  if (statements.length !== 1) throw new Error(`${statements.length} statements, expected one`);
  return statements[0]!;
}
