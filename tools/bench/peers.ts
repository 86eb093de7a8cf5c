/**
 * Programs of others with the same kind of requests: stripe-mock, which stores nothing,
 * localstripe, which stores in memory, and Formance's ledger, which stores in PostgreSQL. A program
 * that is not installed is named and left out.
 */

import { freePort } from "../../tests/support/common/free_port.ts";
import { until } from "../../tests/support/common/until.ts";
import { has_localstripe, startLocalstripe } from "../../tests/support/stripe/localstripe.ts";
import { startStripeMock } from "../../tests/support/stripe/stripe_mock.ts";
import { wireText } from "./api_request.ts";
import { cpuOfEach, readCpuSeconds } from "./cpu_time.ts";
import { type AtEnd, CONNECTIONS, type LineName, type Program } from "./program.ts";
import type { Service } from "./service.ts";
import { KEY_PLACE, runWrk } from "./wrk.ts";

/** The requests that every peer has. */
const LINES: readonly LineName[] = ["create", "get", "list of 10"];
/** The fields of our create that a peer has no place for. */
const METADATA = {
  email: "ada@example.com",
  name: "Ada Lovelace",
  description: "Order 1815-12-10",
  reference: "order-18151210",
  order: "18151210",
  channel: "web",
};
const LISTED = 10;

/** A running peer. */
interface Peer {
  name: string;
  stores: string;
  /** Its process, and the postmaster of its database. */
  pid: number;
  postgres_pid?: number;
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

/** Starts the installed peers. */
export async function openPeers(service: Service, atEnd: AtEnd): Promise<Program[]> {
  const peers = [
    await openStripeMock(atEnd),
    await openLocalstripe(atEnd),
    await openFormance(service, atEnd),
  ];
  return peers.flatMap((peer) => peer === null ? [] : [programOf(peer)]);
}

function programOf(peer: Peer): Program {
  const { name, stores, pid, postgres_pid, url } = peer;
  const groups = [[pid], postgres_pid === undefined ? [] : [postgres_pid]];
  return {
    name,
    stores,
    has: (line) => LINES.includes(line),
    async measure(line, seconds) {
      const requests = [await wireOf(peer, line)];
      const before = await readCpuSeconds(groups);
      const port = Number(new URL(url).port);
      const result = await runWrk({ port, connections: CONNECTIONS, seconds, requests });
      const cpu = cpuOfEach(before, await readCpuSeconds(groups), result.responses);
      if (postgres_pid === undefined) cpu.postgres_us = NaN;
      return { per_second: result.per_second, p99_ms: result.p99_ms, ...cpu };
    },
  };
}

/** The request as text. Makes the payments that a read needs. */
async function wireOf(
  { url, type, body, list, idOf }: Peer,
  line: LineName,
): Promise<string> {
  const headers = { Authorization: "Bearer sk_test_benchmark", "Content-Type": type };
  if (line === "create") {
    return wireText("POST", url, { ...headers, "Idempotency-Key": KEY_PLACE }, body);
  }
  let created;
  for (let i = 0; i < LISTED; i++) {
    created = await (await fetch(url, { method: "POST", headers, body })).json();
  }
  return wireText("GET", line === "get" ? `${url}/${idOf(created)}` : url + list, headers);
}

function reportMissing(program: string, remedy: string): null {
  console.error(`PEER MISSING: ${program} (${remedy})`);
  return null;
}

async function openStripeMock(atEnd: AtEnd): Promise<Peer | null> {
  const mock = await startStripeMock();
  if (mock === null) return reportMissing("stripe-mock", "STRIPE_MOCK names no program");
  atEnd(() => mock.close());
  return stripePeer("stripe-mock", "nowhere", mock.pid, Number(new URL(mock.base_url).port));
}

async function openLocalstripe(atEnd: AtEnd): Promise<Peer | null> {
  if (!has_localstripe) {
    return reportMissing("localstripe", "LOCALSTRIPE_PYTHON names no Python with it");
  }
  const port = freePort();
  const { pid, close } = await startLocalstripe(port);
  atEnd(close);
  return stripePeer("localstripe", "in memory", pid, port);
}

/** Either program takes Stripe's requests. The form is as long as the body of our create. */
function stripePeer(name: string, stores: string, pid: number, port: number): Peer {
  return {
    ...{ name, stores, pid },
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
async function openFormance({ product, sql }: Service, atEnd: AtEnd): Promise<Peer | null> {
  const program = Deno.env.get("FORMANCE");
  if (!program) return reportMissing("Formance", "FORMANCE names no program");
  await sql`create database formance`;
  const database = new URL(product.superuser_url);
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
    ...{ name: "Formance", stores: "in PostgreSQL", pid: child.pid },
    postgres_pid: product.postgres_pid,
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
