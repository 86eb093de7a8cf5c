/**
 * The product beside programs of others with the same kind of requests: stripe-mock, which stores
 * nothing, localstripe, which stores in memory, and Formance's ledger, which stores in PostgreSQL.
 * A program that is not installed is named and left out.
 */

import { freePort } from "../../tests/support/common/free_port.ts";
import { until } from "../../tests/support/common/until.ts";
import { has_localstripe, startLocalstripe } from "../../tests/support/stripe/localstripe.ts";
import { startStripeMock } from "../../tests/support/stripe/stripe_mock.ts";
import { DEMO_ENVIRONMENTS } from "../../apps/operator/demo_account.ts";
import { wireText } from "./api_request.ts";
import { NO_ROWS } from "./books.ts";
import {
  CONNECTIONS,
  CREATE_ROWS,
  createPlan,
  getPlan,
  listPlan,
  type RequestForge,
} from "./line.ts";
import { KEY_PLACE } from "./load_order.ts";
import { type AtEnd, type Bench, counts, measureServer, putLoad } from "./measure.ts";
import type { Measurement, Pair } from "./measurement.ts";

/** The requests that every peer has. */
const REQUESTS = ["create", "get", "list of 10"] as const;
/** The programs and where each stores a payment. */
const STORES = {
  "stripe-mock": "nowhere",
  localstripe: "in memory",
  Formance: "in PostgreSQL",
} as const;
/** The fields of our create that a peer has no place for. */
const METADATA = {
  email: "ada@example.com",
  name: "Ada Lovelace",
  description: "Order 1815-12-10",
  reference: "order-18151210",
  order: "18151210",
  channel: "web",
};
/** Payments of a list, and payments of ours that gets choose among. */
const LISTED = 10;
const GET_ITEMS = 1000;
/** The product in the tables of peers. */
export const OURS = { program: "this service", stores: "in PostgreSQL" };

type PeerName = keyof typeof STORES;
type RequestName = (typeof REQUESTS)[number];

/** A running peer. */
interface Peer {
  /** `POST` creates a payment, `GET` lists them, and `GET` with an id behind it gets one. */
  url: string;
  /** Type and text of the body of a create. */
  type: string;
  body: string;
  /** The query for a list of 10. */
  list: string;
  // deno-lint-ignore no-explicit-any -- each peer has its own shape
  idOf(created: any): string;
}

/** A line of the product beside a peer. */
interface PeerLine {
  request: RequestName;
  program: PeerName;
  stores: string;
  measurement: Measurement;
}

/** Starts the installed peers and prepares the pairs. */
export async function preparePeerPairs(forge: RequestForge, atEnd: AtEnd): Promise<Pair[]> {
  const { bench } = forge;
  const peers: Record<PeerName, Peer | null> = {
    "stripe-mock": await openStripeMock(atEnd),
    localstripe: await openLocalstripe(atEnd),
    Formance: await openFormance(bench, atEnd),
  };
  const plans = {
    create: createPlan(forge),
    get: getPlan(forge, await readIds(bench)),
    "list of 10": listPlan(forge),
  };
  return REQUESTS.flatMap((request) =>
    Object.entries(peers).flatMap(([program, peer]): Pair[] => {
      if (peer === null) return [];
      const name = nameOf(request, program as PeerName);
      const rows = request === "create" ? CREATE_ROWS : NO_ROWS;
      return [{
        name,
        connections: CONNECTIONS,
        measureBeside: () => measurePeer(bench, `${name}: ${program}`, peer, request),
        run: () => measureServer(bench, name, CONNECTIONS, plans[request], rows),
      }];
    })
  );
}

/** Ids spread evenly over the payments of the product's environment. */
async function readIds({ sql }: Bench): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from (
      select id, row_number() over (order by id) as n, count(*) over () as all_rows
      from pay.payments where environment_id = ${DEMO_ENVIRONMENTS.test.id}
    ) p
    where n % greatest(1, all_rows / ${GET_ITEMS}) = 0`;
  return rows.map(({ id }) => id);
}

/** The lines with peers among the measurements, by request. */
export function peerLines(measurements: readonly Measurement[]): PeerLine[] {
  return REQUESTS.flatMap((request) =>
    (Object.keys(STORES) as PeerName[]).flatMap((program) => {
      const measurement = measurements.find(({ name }) => name === nameOf(request, program));
      return measurement ? [{ request, program, stores: STORES[program], measurement }] : [];
    })
  );
}

function nameOf(request: RequestName, program: PeerName): string {
  return `${request} beside ${program}`;
}

/** The rate of a peer. Null if the run does not count. */
async function measurePeer(
  bench: Bench,
  name: string,
  peer: Peer,
  request: RequestName,
): Promise<number | null> {
  const plan = { requests: [await wireOf(peer, request)], expected_status: 200 };
  const port = Number(new URL(peer.url).port);
  const { errors, measured, elapsed_ms } = await putLoad(bench, port, CONNECTIONS, plan);
  if (measured === 0) errors.push("no response in the measured time");
  return counts(bench, name, errors) ? measured / elapsed_ms * 1000 : null;
}

/** The request as text. Makes the payments that a read needs. */
async function wireOf(
  { url, type, body, list, idOf }: Peer,
  request: RequestName,
): Promise<string> {
  const headers = { Authorization: "Bearer sk_test_benchmark", "Content-Type": type };
  if (request === "create") {
    return wireText("POST", url, { ...headers, "Idempotency-Key": KEY_PLACE }, body);
  }
  let created;
  for (let i = 0; i < LISTED; i++) {
    created = await (await fetch(url, { method: "POST", headers, body })).json();
  }
  return wireText("GET", request === "get" ? `${url}/${idOf(created)}` : url + list, headers);
}

function reportMissing(program: PeerName, remedy: string): null {
  console.error(`PEER MISSING: ${program} (${remedy})`);
  return null;
}

async function openStripeMock(atEnd: AtEnd): Promise<Peer | null> {
  const mock = await startStripeMock();
  if (mock === null) return reportMissing("stripe-mock", "STRIPE_MOCK names no program");
  atEnd(() => mock.close());
  return stripePeer(Number(new URL(mock.base_url).port));
}

async function openLocalstripe(atEnd: AtEnd): Promise<Peer | null> {
  if (!has_localstripe) {
    return reportMissing("localstripe", "LOCALSTRIPE_PYTHON names no Python with it");
  }
  const port = freePort();
  const child = await startLocalstripe(port);
  atEnd(() => end(child));
  return stripePeer(port);
}

/** Either program takes Stripe's requests. The form is as long as the body of our create. */
function stripePeer(port: number): Peer {
  return {
    url: `http://127.0.0.1:${port}/v1/payment_intents`,
    type: "application/x-www-form-urlencoded",
    body: new URLSearchParams({
      ...{ amount: "1050", currency: "eur", capture_method: "automatic", confirm: "true" },
      payment_method: "pm_card_visa",
      ...Object.fromEntries(
        Object.entries(METADATA).map(([name, value]) => [`metadata[${name}]`, value]),
      ),
    }).toString(),
    list: "?limit=10",
    idOf: ({ id }) => id,
  };
}

/**
 * Starts Formance's ledger with a database of its own in the product's PostgreSQL. The ledger has
 * every optional feature off: no history of movements or metadata, and no hashes.
 */
async function openFormance(bench: Bench, atEnd: AtEnd): Promise<Peer | null> {
  const program = Deno.env.get("FORMANCE");
  if (!program) return reportMissing("Formance", "FORMANCE names no program");
  await bench.sql`create database formance`;
  const database = new URL(bench.product.superuser_url);
  database.pathname = "/formance";
  database.searchParams.set("sslmode", "disable");
  const port = freePort();
  const child = new Deno.Command(program, {
    args: ["serve", "--auto-upgrade", "--bind", `127.0.0.1:${port}`, "--experimental-features"],
    env: { POSTGRES_URI: database.href },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  atEnd(() => end(child));
  const ledger = `http://127.0.0.1:${port}/v2/bench`;
  const features = {
    MOVES_HISTORY: "OFF",
    MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES: "DISABLED",
    HASH_LOGS: "DISABLED",
    ACCOUNT_METADATA_HISTORY: "DISABLED",
    TRANSACTION_METADATA_HISTORY: "DISABLED",
  };
  await until("Formance's ledger responds", async () => {
    const body = JSON.stringify({ features });
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(ledger, { method: "POST", headers, body }).catch(() => null);
    await response?.body?.cancel();
    return response?.ok === true;
  });
  return {
    url: `${ledger}/transactions`,
    type: "application/json",
    body: JSON.stringify({
      postings: [{ source: "world", destination: "merchants:1", asset: "EUR/2", amount: 1050 }],
      metadata: METADATA,
    }),
    list: "?pageSize=10",
    idOf: ({ data }) => data.id,
  };
}

async function end(child: Deno.ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await child.status;
}
