/**
 * Pairs on the connections of the load generator: the product beside a variant of itself
 * (variant_server.ts), or beside itself with other requests.
 */

import { DEMO_ENVIRONMENTS } from "../../apps/operator/demo_account.ts";
import { ask, CREATE_A } from "./api_request.ts";
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
import {
  type AtEnd,
  type Bench,
  type LoadPlan,
  measureServer,
  type Responder,
  startServer,
} from "./measure.ts";
import type { Pair } from "./measurement.ts";
import type { Variant, VariantSettings } from "./variant_server.ts";

/** Gets choose among this many payments. */
const GET_ITEMS = 1000;
/** The deep page begins after this share of all payments. */
const DEEP_SHARE = 0.8;
/** Payments on a page by default. */
const PAGE_PAYMENTS = 10;
/** Rate of the open loop, as a share of the rate of the closed loop. */
const OPEN_SHARE = 0.5;
/** The environment of the product's test key. */
export const ENVIRONMENT_ID = DEMO_ENVIRONMENTS.test.id;

/** Starts the variants and prepares the pairs. */
export async function prepareServerPairs(forge: RequestForge, atEnd: AtEnd): Promise<Pair[]> {
  const { product } = forge.bench;
  const startVariant = (variant: Variant) => {
    const settings: VariantSettings = {
      variant,
      database_url: product.superuser_url,
      base_url: product.base_url,
      log: `${product.data_dir}/${variant}.log`,
    };
    return startServer("variant_server.ts", settings, atEnd);
  };
  const [uncoalesced, seven] = [await startVariant("uncoalesced"), await startVariant("seven")];
  const creates = createPlan(forge);
  const gets = getPlan(forge, await readIds(forge.bench, GET_ITEMS));
  const beside = (name: string, plan: LoadPlan, each: Rows, other: Responder): Pair => ({
    name,
    connections: CONNECTIONS,
    run: () => runAt64(forge.bench, name, plan, each),
    measureBeside: () => rateAt64(forge.bench, `${name}: the other`, plan, each, other),
  });
  return [
    beside("create beside seven round trips", creates, CREATE_ROWS, seven),
    beside("create beside the same uncoalesced", creates, CREATE_ROWS, uncoalesced),
    beside("get beside the same uncoalesced", gets, NO_ROWS, uncoalesced),
    openLoopPair(forge),
    deepPagePair(forge),
  ];
}

/** The page after four fifths of all payments, beside the first page. */
export function deepPagePair(forge: RequestForge): Pair {
  const { bench } = forge;
  return {
    name: "deep page beside the first",
    connections: CONNECTIONS,
    measureBeside: async () => {
      // Other lines leave other payments on the first page. These are like those of the deep page.
      for (let i = 0; i < PAGE_PAYMENTS; i++) {
        await ask(bench.product, createOf(CREATE_A, crypto.randomUUID()));
      }
      return await rateAt64(bench, "first page", listPlan(forge, null), NO_ROWS);
    },
    run: async () => {
      const [row] = await bench.sql<{ id: string }[]>`
        select id from pay.payments where environment_id = ${ENVIRONMENT_ID} order by id desc
        offset (select floor(count(*) * ${DEEP_SHARE}::float8) from pay.payments
          where environment_id = ${ENVIRONMENT_ID})
        limit 1`;
      return await runAt64(bench, "deep page", listPlan(forge, row!.id), NO_ROWS);
    },
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

/** Creates at a constant rate: half of the rate that the closed loop before them reached. */
function openLoopPair(forge: RequestForge): Pair {
  const name = "create, open loop beside closed";
  const plan = createPlan(forge);
  let peak: number | null = null;
  return {
    name,
    connections: CONNECTIONS,
    measureBeside: async () =>
      peak = await rateAt64(forge.bench, `${name}: closed`, plan, CREATE_ROWS),
    run: async () => {
      if (peak === null) return null;
      const open = { ...plan, rate_per_s: peak * OPEN_SHARE };
      return await runAt64(forge.bench, name, open, CREATE_ROWS);
    },
  };
}

function runAt64(bench: Bench, name: string, plan: LoadPlan, each: Rows, responder?: Responder) {
  return measureServer(bench, name, CONNECTIONS, plan, each, responder);
}

async function rateAt64(...side: Parameters<typeof runAt64>): Promise<number | null> {
  return (await runAt64(...side))?.per_second ?? null;
}
