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
const PAYMENTS = "/v1/payments";

/** All lines over a fresh product. */
export async function prepareLines(bench: Bench, recorder: Recorder): Promise<Line[]> {
  const forge = new RequestForge(bench, recorder);
  // Code is compiled and tables are large enough to have statistics before anything is measured.
  await forge.makeIds(forge.creates, CREATE_ROWS);
  return [
    await createLine(forge),
    ...await readLines(forge),
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
      makeIds: () => forge.makeIds([forge.wire(createOf(CREATE_PENDING, KEY_PLACE))], PENDING_ROWS),
    }),
  ];
}

/** Turns requests into bytes for the load, into statements for the floor, into payments. */
class RequestForge {
  readonly creates: string[];

  constructor(readonly bench: Bench, readonly recorder: Recorder) {
    this.creates = [CREATE_A, CREATE_B].map((body) => this.wire(createOf(body, KEY_PLACE)));
  }

  wire(request: ApiRequest): string {
    return toWire(this.bench.product, request);
  }

  record(request: ApiRequest): Promise<Recording> {
    return this.recorder.record(toRequest(this.bench.product, request));
  }

  /** The one statement of a request that reads. */
  async statement(path: string): Promise<RecordedStatement> {
    return one(await this.record({ method: "GET", path }));
  }

  /** Makes payments in a run of the server that is not measured, but audited. */
  async makeIds(requests: string[], each: Rows): Promise<string[]> {
    const plan = { requests, expected_status: 201, collect: true };
    const run = await measureServer(this.bench, "preparation", 32, plan, each);
    return run?.result.ids ?? [];
  }
}

async function createLine(forge: RequestForge): Promise<Line> {
  return {
    name: "create",
    each: CREATE_ROWS,
    connections: [1, 32, 64],
    statements: [one(await forge.record(createOf(CREATE_A, RECORDED_KEY)))],
    plan: () => Promise.resolve({ requests: forge.creates, expected_status: 201 }),
  };
}

/** Lines that write nothing: replay, get, list. */
async function readLines(forge: RequestForge): Promise<Line[]> {
  const kept: { id: string; key: string; replay: RecordedStatement }[] = [];
  for (let i = 0; i < READ_ITEMS; i++) {
    const key = crypto.randomUUID();
    const first = await forge.record(createOf(CREATE_A, key));
    const replay = await forge.record(createOf(CREATE_A, key));
    if (!replay.replayed) throw new Error(`no replay but ${replay.status} ${replay.body}`);
    kept.push({ id: JSON.parse(first.body).id, key, replay: one(replay) });
  }
  const ids = kept.map(({ id }) => id);
  const gets: RecordedStatement[] = [];
  for (const id of ids) gets.push(await forge.statement(`${PAYMENTS}/${id}`));
  const line = (name: string, statements: RecordedStatement[], plan: LoadPlan): Line => ({
    name,
    each: NO_ROWS,
    connections: [32],
    statements,
    plan: () => Promise.resolve(plan),
  });
  return [
    line("replay", kept.map(({ replay }) => replay), {
      requests: [forge.wire(createOf(CREATE_A, KEY_PLACE))],
      keys: kept.map(({ key }) => key),
      expected_status: 201,
      expected_head: "idempotent-replayed: true",
    }),
    line("get", gets, {
      requests: [forge.wire({ method: "GET", path: `${PAYMENTS}/${ID_PLACE}` })],
      ids,
      expected_status: 200,
    }),
    line("list of 10", [await forge.statement(PAYMENTS)], {
      requests: [forge.wire({ method: "GET", path: PAYMENTS })],
      expected_status: 200,
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
    connections: [32],
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
