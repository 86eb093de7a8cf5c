/**
 * The lines of the benchmark: which requests each sends, what they leave in the books, and which
 * statements are its floor.
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

/** One line, ready to be measured in any order and often. */
export interface Line {
  name: string;
  each: Rows;
  /** The server's connections; each is measured by itself. */
  connections: readonly number[];
  /** For pgbench; null when a request is more than one statement. */
  statements: readonly RecordedStatement[] | null;
  /** Makes what one run needs, before its time begins. */
  plan(): Promise<LoadPlan>;
}

/** Rows of a completed create, with its two events and its ledger transaction. */
export const CREATE_ROWS: Rows = {
  ...NO_ROWS,
  payments: 1,
  events: 2,
  ledger_entries: 2,
  idempotency_keys: 1,
};
/** Rows of a create that stays pending. */
const PENDING_ROWS: Rows = { ...NO_ROWS, payments: 1, events: 1, idempotency_keys: 1 };
/** Payments that reads, replays and their floors take in turn. */
const READ_ITEMS = 8;
/** Connections of every line but create: what a busy server has. */
export const CONNECTIONS = 64;
const CREATE_CONNECTIONS = [1, 32, 64, 128];
const PAYMENTS = "/v1/payments";

/** Payments that are there: for reads their ids, for replays the keys that they were made with. */
export interface Pool {
  ids: string[];
  keys: string[];
}

/** All lines over a fresh product, with the statements for their floor. */
export async function prepareLines(forge: RequestForge, recorder: Recorder): Promise<Line[]> {
  const record = (request: ApiRequest) => recorder.record(toRequest(forge.bench.product, request));
  // Code is compiled and tables are large enough to have statistics before anything is measured.
  await forge.makeIds(forge.creates, CREATE_ROWS);
  const create = one(await record(createOf(CREATE_A, RECORDED_KEY)));
  const pool: Pool = { ids: [], keys: [] };
  const [gets, replays]: RecordedStatement[][] = [[], []];
  for (let i = 0; i < READ_ITEMS; i++) {
    const key = crypto.randomUUID();
    const id: string = JSON.parse((await record(createOf(CREATE_A, key))).body).id;
    const replay = await record(createOf(CREATE_A, key));
    if (!replay.replayed) throw new Error(`no replay but ${replay.status} ${replay.body}`);
    pool.ids.push(id);
    pool.keys.push(key);
    replays!.push(one(replay));
    gets!.push(one(await record({ method: "GET", path: `${PAYMENTS}/${id}` })));
  }
  const list = one(await record({ method: "GET", path: PAYMENTS }));
  return [
    createLine(forge, CREATE_CONNECTIONS, [create]),
    replayLine(forge, pool, replays!),
    getLine(forge, pool, gets!),
    listLine(forge, [list]),
    ...changeLines(forge),
  ];
}

/** The lines over a product that is filled already, each at one number of connections, no floors. */
export function prepareFilledLines(forge: RequestForge, pool: Pool): Line[] {
  return [
    createLine(forge, [CONNECTIONS], null),
    replayLine(forge, pool, null),
    getLine(forge, pool, null),
    listLine(forge, null),
    ...changeLines(forge),
  ];
}

/** Turns requests into bytes for the load, and into payments. */
export class RequestForge {
  readonly creates: string[];

  constructor(readonly bench: Bench) {
    this.creates = [CREATE_A, CREATE_B].map((body) => this.wire(createOf(body, KEY_PLACE)));
  }

  wire(request: ApiRequest): string {
    return toWire(this.bench.product, request);
  }

  /** Makes payments in a run of the server that is not measured, but audited. */
  async makeIds(requests: string[], each: Rows): Promise<string[]> {
    const plan = { requests, expected_status: 201, collect: true };
    const run = await measureServer(this.bench, "preparation", CONNECTIONS, plan, each);
    return run?.result.ids ?? [];
  }
}

/** The plan of creates. */
export function createPlan(forge: RequestForge): LoadPlan {
  return { requests: forge.creates, expected_status: 201 };
}

/** The plan of gets. */
export function getPlan(forge: RequestForge, ids: string[]): LoadPlan {
  return {
    requests: [forge.wire({ method: "GET", path: `${PAYMENTS}/${ID_PLACE}` })],
    ids,
    expected_status: 200,
  };
}

/** The plan of lists: the first page, or the one after an id. */
export function listPlan(forge: RequestForge, starting_after: string | null): LoadPlan {
  const query = starting_after === null ? "" : `?starting_after=${starting_after}`;
  return {
    requests: [forge.wire({ method: "GET", path: PAYMENTS + query })],
    expected_status: 200,
  };
}

type Statements = Line["statements"];

function createLine(
  forge: RequestForge,
  connections: readonly number[],
  statements: Statements,
): Line {
  const plan = () => Promise.resolve(createPlan(forge));
  return { name: "create", each: CREATE_ROWS, connections, statements, plan };
}

function readLine(name: string, statements: Statements, plan: LoadPlan): Line {
  const connections = [CONNECTIONS];
  return { name, each: NO_ROWS, connections, statements, plan: () => Promise.resolve(plan) };
}

function replayLine(forge: RequestForge, { keys }: Pool, statements: Statements): Line {
  return readLine("replay", statements, {
    requests: [forge.wire(createOf(CREATE_A, KEY_PLACE))],
    keys,
    expected_status: 201,
    expected_head: "idempotent-replayed: true",
  });
}

function getLine(forge: RequestForge, { ids }: Pool, statements: Statements): Line {
  return readLine("get", statements, getPlan(forge, ids));
}

function listLine(forge: RequestForge, statements: Statements): Line {
  return readLine("list of 10", statements, listPlan(forge, null));
}

/** Lines that change payments: load, decide, commit; two statements, so no floor of one. */
function changeLines(forge: RequestForge): Line[] {
  const makePending = () =>
    forge.makeIds([forge.wire(createOf(CREATE_PENDING, KEY_PLACE))], PENDING_ROWS);
  return [
    changeLine(forge, {
      name: "refund of a part",
      each: { ...NO_ROWS, refunds: 1, events: 2, ledger_entries: 2, idempotency_keys: 1 },
      request: { method: "POST", path: `${PAYMENTS}/${ID_PLACE}/refund`, body: { amount: 50 } },
      expected_status: 201,
      makeIds: () => forge.makeIds(forge.creates, CREATE_ROWS),
    }),
    changeLine(forge, {
      name: "cancel",
      each: { ...NO_ROWS, events: 1, idempotency_keys: 1 },
      request: { method: "POST", path: `${PAYMENTS}/${ID_PLACE}/cancel`, body: {} },
      expected_status: 200,
      makeIds: makePending,
    }),
    changeLine(forge, {
      name: "advance",
      each: { ...NO_ROWS, events: 1, ledger_entries: 2, idempotency_keys: 1 },
      request: {
        method: "POST",
        path: `/v1/sandbox/${ID_PLACE}/advance`,
        body: { to: "completed" },
      },
      expected_status: 200,
      makeIds: makePending,
    }),
  ];
}

/** A line that changes each of the payments that are made for it, once. */
function changeLine(
  forge: RequestForge,
  { name, each, request, expected_status, makeIds }: Pick<Line, "name" | "each"> & {
    request: ApiRequest;
    expected_status: number;
    makeIds: () => Promise<string[]>;
  },
): Line {
  return {
    name,
    each,
    connections: [CONNECTIONS],
    statements: null,
    plan: async () => ({
      requests: [forge.wire({ ...request, idempotency_key: KEY_PLACE })],
      expected_status,
      ids_once: true,
      ids: await makeIds(),
    }),
  };
}

/** A create with an idempotency key. */
export function createOf(body: Record<string, unknown>, idempotency_key: string): ApiRequest {
  return { method: "POST", path: PAYMENTS, body, idempotency_key };
}

function one({ statements }: Recording): RecordedStatement {
  if (statements.length !== 1) throw new Error(`${statements.length} statements, not one`);
  return statements[0]!;
}
