/**
 * Pairs of the product and a server: the same one asked in another way, or one that does a thing in
 * another way (variant_server.ts). All on connections of the load generator, all audited.
 */

import { DEMO_ENVIRONMENTS } from "../scripts/operator/demo_account.ts";
import { ask, CREATE_A, CREATE_B, toWire } from "./api_request.ts";
import { NO_ROWS, type Rows } from "./books.ts";
import {
  CONNECTIONS,
  CREATE_ROWS,
  createOf,
  createPlan,
  getPlan,
  listPlan,
  type RequestForge,
} from "./line.ts";
import { KEY_PLACE } from "./load_order.ts";
import { type LoopbackServer, startLoopbackServer } from "./loopback_server.ts";
import { type Answerer, type Bench, type LoadPlan, measureServer } from "./measure.ts";
import type { Pair } from "./pair.ts";
import type { Variant } from "./variant_server.ts";

/** API keys: as many as connections, so that most concurrent requests have different ones. */
const MANY_KEYS = 64;
/** Gets choose among so many payments. */
const GET_ITEMS = 1000;
/** How deep a deep page is: this share of all payments is newer. */
const DEEP_SHARE = 0.8;
/** Payments of a page that asks for no number. */
const PAGE_PAYMENTS = 10;
/** Share of the closed loop's rate at which requests are due in the open loop. */
const OPEN_SHARE = 0.5;
/** Whose payments are listed: the environment of the product's test key. */
export const ENVIRONMENT_ID = DEMO_ENVIRONMENTS.test.id;

/**
 * The pairs.
 * @param atEnd takes the steps that end the servers
 */
export async function prepareServerPairs(
  forge: RequestForge,
  atEnd: (step: () => Promise<void>) => void,
): Promise<Pair[]> {
  const { bench } = forge;
  const start = async (...how: Parameters<typeof startLoopbackServer>) => {
    const server = await startLoopbackServer(...how);
    atEnd(() => server.stop());
    return server;
  };
  const constant = await start("constant_server.ts");
  const uncoalesced = await start(...variant(bench, "uncoalesced"));
  const seven = await start(...variant(bench, "seven"));
  const ids = await readIds(bench, GET_ITEMS);
  const sides = new Sides(bench);
  const creates = createPlan(forge);
  const gets = getPlan(forge, ids);
  return [
    {
      name: "constant bytes by Deno.serve",
      connections: CONNECTIONS,
      run: () => sides.run("constant bytes", constantPlan(forge), NO_ROWS, constant),
      measureBeside: null,
    },
    sides.beside("create beside seven round trips", creates, CREATE_ROWS, seven),
    sides.beside("create beside the same uncoalesced", creates, CREATE_ROWS, uncoalesced),
    sides.beside("get beside the same uncoalesced", gets, NO_ROWS, uncoalesced),
    sides.openLoop("create, open loop beside closed", creates, CREATE_ROWS),
    sides.openLoop("get, open loop beside closed", gets, NO_ROWS),
    deepPagePair(forge, sides),
    await keyPair(bench, sides),
  ];
}

/** What starts a variant over the product's database. */
export function variant(
  { product }: Bench,
  name: Variant,
): Parameters<typeof startLoopbackServer> {
  return ["variant_server.ts", {
    permissions: ["-A"],
    args: [name],
    env: { BENCH_DATABASE_URL: product.superuser_url, BENCH_BASE_URL: product.base_url },
  }];
}

/** The page at four fifths of all payments, beside the first page. */
export function deepPagePair(forge: RequestForge, sides: Sides): Pair {
  return {
    name: "deep page beside the first",
    connections: CONNECTIONS,
    measureBeside: async () => {
      // Of the same kind as the payments far back: other lines have left others.
      for (let i = 0; i < PAGE_PAYMENTS; i++) {
        await ask(forge.bench.product, createOf(CREATE_A, crypto.randomUUID()));
      }
      return await sides.rate("first page", listPlan(forge, null), NO_ROWS);
    },
    run: async () => {
      const [row] = await forge.bench.sql<{ id: string }[]>`
        select id from pay.payments where environment_id = ${ENVIRONMENT_ID} order by id desc
        offset (select floor(count(*) * ${DEEP_SHARE}::float8) from pay.payments
          where environment_id = ${ENVIRONMENT_ID})
        limit 1`;
      return await sides.run("deep page", listPlan(forge, row!.id), NO_ROWS);
    },
  };
}

/** Runs at CONNECTIONS of one bench. */
export class Sides {
  constructor(readonly bench: Bench) {}

  run(name: string, plan: LoadPlan, each: Rows, answerer?: Answerer) {
    return measureServer(this.bench, name, CONNECTIONS, plan, each, answerer);
  }

  async rate(...side: Parameters<Sides["run"]>): Promise<number | null> {
    return (await this.run(...side))?.per_second ?? null;
  }

  /** The product beside another server, with the same requests. */
  beside(name: string, plan: LoadPlan, each: Rows, other: LoopbackServer): Pair {
    return {
      name,
      connections: CONNECTIONS,
      run: () => this.run(name, plan, each),
      measureBeside: () => this.rate(`${name}: the other`, plan, each, other),
    };
  }

  /** Requests due at a constant rate: half of what the closed loop before it reached. */
  openLoop(name: string, plan: LoadPlan, each: Rows): Pair {
    let peak: number | null = null;
    return {
      name,
      connections: CONNECTIONS,
      measureBeside: async () => peak = await this.rate(`${name}: closed`, plan, each),
      run: async () =>
        peak === null
          ? null
          : await this.run(name, { ...plan, rate_per_s: peak * OPEN_SHARE }, each),
    };
  }
}

/** As many bytes there and back as a create has. */
function constantPlan(forge: RequestForge): LoadPlan {
  return { ...createPlan(forge), expected_status: 200 };
}

/** Creates with many keys of one environment, beside creates with one. */
async function keyPair(bench: Bench, sides: Sides): Promise<Pair> {
  const keys: string[] = [];
  for (let i = 0; i < MANY_KEYS; i++) {
    const idempotency_key = crypto.randomUUID();
    const body = { name: `benchmark ${i}` };
    const path = "/v1/api_keys";
    keys.push((await ask(bench.product, { method: "POST", path, body, idempotency_key })).secret);
  }
  const plan = (test_keys: readonly string[]): LoadPlan => ({
    requests: test_keys.flatMap((test_key) =>
      [CREATE_A, CREATE_B].map((body) =>
        toWire({ ...bench.product, test_key }, createOf(body, KEY_PLACE))
      )
    ),
    expected_status: 201,
  });
  const name = `create, ${MANY_KEYS} keys beside 1`;
  return {
    name,
    connections: CONNECTIONS,
    run: () => sides.run(name, plan(keys), CREATE_ROWS),
    measureBeside: () => sides.rate(`${name}: one`, plan([bench.product.test_key]), CREATE_ROWS),
  };
}

/** Ids spread evenly over the payments of the product's environment. */
export async function readIds({ sql }: Bench, count: number): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from (
      select id, row_number() over (order by id) as n, count(*) over () as all_rows
      from pay.payments where environment_id = ${ENVIRONMENT_ID}
    ) p
    where n % greatest(1, all_rows / ${count}) = 0`;
  return rows.map(({ id }) => id);
}
