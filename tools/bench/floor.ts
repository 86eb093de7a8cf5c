/** pgbench as a program of the benchmark: it issues the statements that the service sends. */

import { type ApiRequest, CREATE_A, createOf, PAYMENTS, toRequest } from "./api_request.ts";
import { readCpuSeconds } from "./cpu_time.ts";
import { RECORDED_KEY, runPgbench } from "./pgbench.ts";
import { type AtEnd, connectionsOf, type LineName, type Program } from "./program.ts";
import { openRecorder, type RecordedStatement } from "./recorded_statement.ts";
import type { Service } from "./service.ts";

/** Payments that reads and replays use in turn. */
const ITEMS = 8;
/** Clients in place of many connections: more were slower. */
const CLIENTS = 16;

/** Records the statements of the lines. */
export async function openFloor({ product, sql }: Service, atEnd: AtEnd): Promise<Program> {
  const recorder = openRecorder(product.superuser_url, product.base_url);
  atEnd(() => recorder.close());
  const record = async (request: ApiRequest): Promise<[RecordedStatement, string]> => {
    const { statements, body } = await recorder.record(toRequest(product, request));
    if (statements.length !== 1) throw new Error(`${statements.length} statements, expected one`);
    return [statements[0]!, body];
  };
  // The first request of a key has one statement more, which checks it.
  await recorder.record(toRequest(product, { method: "GET", path: PAYMENTS }));
  const [recorded] = await record(createOf(CREATE_A, RECORDED_KEY));
  // The service sends a request again after this time for a lock. pgbench would end.
  const create = { ...recorded, parameters: recorded.parameters.with(1, null) };
  const statements: Partial<Record<LineName, RecordedStatement[]>> = {
    create: [create],
    "create, 1 connection": [create],
    replay: [],
    get: [],
    "list of 10": [(await record({ method: "GET", path: PAYMENTS }))[0]],
  };
  for (let i = 0; i < ITEMS; i++) {
    const request = createOf(CREATE_A, crypto.randomUUID());
    const { id } = JSON.parse((await record(request))[1]);
    statements.replay!.push((await record(request))[0]);
    statements.get!.push((await record({ method: "GET", path: `${PAYMENTS}/${id}` }))[0]);
  }
  const countPayments = async () => {
    const [row] = await sql<[{ n: number }]>`select count(*)::float as n from pay.payments`;
    return row.n;
  };
  return {
    name: "pgbench",
    stores: "in PostgreSQL",
    has: (line) => statements[line] !== undefined,
    async measure(line, seconds) {
      const clients = Math.min(CLIENTS, connectionsOf(line));
      const read = () => readCpuSeconds([[product.postgres_pid]]);
      const payments = await countPayments();
      const [before] = await read();
      const { superuser_url: url, socket_folder } = product;
      const order = { url, socket_folder, clients, seconds, statements: statements[line]! };
      const { transactions, per_second, error } = await runPgbench(order);
      if (error !== null || !(per_second > 0)) throw new Error(error ?? "no rate");
      const cpu_us = ((await read())[0]! - before!) / transactions * 1e6;
      const made = await countPayments() - payments;
      if (made !== (line.startsWith("create") ? transactions : 0)) {
        throw new Error(`${made} payments after ${transactions} transactions`);
      }
      return { per_second, p99_ms: NaN, cpu_us, postgres_us: cpu_us };
    },
  };
}
