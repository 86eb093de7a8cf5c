/**
 * A receiver of webhooks. It verifies each delivery as a merchant would, records it on disk before
 * it returns 2xx, and fails a share of the first attempts in several ways. As a program it is the
 * receiver of the main run.
 *
 * It does not fail later attempts: a sandbox's delivery has four attempts, so a receiver that fails
 * 30 % of all attempts would lose 0.8 % of the deliveries by the contract.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { verifyWebhook } from "../../../packages/client/webhook_signature.ts";
import type { Stage } from "./stage.ts";
import { launch, onLines, settingsOf, tell } from "../../support/common/process.ts";
import { randomOf } from "../../support/core/random.ts";
import { pause } from "../../support/common/until.ts";

/** The ways in which the receiver fails a delivery on purpose. */
export const WAYS_TO_FAIL = ["500", "503", "302", "silent"] as const;
type WayToFail = typeof WAYS_TO_FAIL[number];

export interface Arrival {
  path: string;
  event_id: string;
  type: string;
  subject_id: string;
  sequence: number;
  /** The idempotency key of the request that caused the event. */
  key: string | null;
  attempt: number;
  body_hash: string;
  /** Age of the signature (its `t`) on arrival in milliseconds. Up to 1 000 come from rounding. */
  age_ms: number;
  /** `Webhook-Timestamp` minus `t` in seconds; they must be equal. */
  timestamps_apart_s: number;
  is_genuine: boolean;
  /** Whether the receiver returned 2xx. */
  is_taken: boolean;
  failed_by: WayToFail | null;
}

/** A received request. `at_ms` is its time of arrival by the clock of the receiver. */
interface ReceivedRequest {
  path: string;
  headers: Headers;
  bytes: Uint8Array;
  at_ms: number;
}

interface ReceiverSettings {
  port: number;
  seed: number;
  /** The share of first attempts that fails. */
  fail: number;
  secrets: Record<string, string>;
  /** Milliseconds that its clock is ahead, like the clocks of the servers. */
  ahead_ms?: number;
}

const SILENT_MS = 30_000;

/**
 * Verifies a delivery and makes its record. `is_taken` is true if the delivery is genuine.
 * @param secret signing secret of the endpoint
 */
export async function readArrival(
  { path, headers, bytes, at_ms }: ReceivedRequest,
  secret: string,
): Promise<Arrival> {
  const signature = headers.get("Payment-Signature");
  const is_genuine = await verifyWebhook(bytes, signature, secret, { now_ms: at_ms })
    .then(() => true, () => false);
  const signed_at_s = Number(/(?:^|,)t=(\d+)/.exec(signature ?? "")?.[1] ?? NaN);
  const event = JSON.parse(new TextDecoder().decode(bytes));
  return {
    path,
    event_id: event.id,
    type: event.type,
    subject_id: subjectOf(event),
    sequence: event.sequence,
    key: event.request.idempotency_key,
    attempt: Number(headers.get("Webhook-Attempt")),
    body_hash: createHash("sha256").update(bytes).digest("hex"),
    age_ms: at_ms - signed_at_s * 1_000,
    timestamps_apart_s: Number(headers.get("Webhook-Timestamp")) - signed_at_s,
    is_genuine,
    is_taken: is_genuine,
    failed_by: null,
  };
}

/** Starts a receiver that returns 200 after `take`. Returns its URL, which ends with a slash. */
export function serveHooks(
  stage: Pick<Stage, "atEnd">,
  take: (request: Request) => Promise<unknown>,
): string {
  const abort = new AbortController();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, signal: abort.signal, onListen: () => {} },
    async (request) => {
      await take(request);
      return new Response();
    },
  );
  stage.atEnd(() => {
    abort.abort();
    return server.finished;
  });
  return `http://127.0.0.1:${server.addr.port}/`;
}

/** Starts a receiver as a process. */
export async function startReceiver(stage: Stage, settings: ReceiverSettings) {
  const journal = join(stage.folder, `receiver ${settings.port}`);
  const open = () => launch(import.meta.url, { ...settings, journal });
  let receiver = await open();
  stage.atEnd(() => receiver.kill());
  return {
    /** Kills it and starts a new one. */
    async restart() {
      await receiver.kill();
      receiver = await open();
    },
    /**
     * The requests that it received. A line cut by a kill was never acknowledged, and is left out.
     */
    async read(): Promise<Arrival[]> {
      const text = await Deno.readTextFile(journal).catch(() => "");
      return text.split("\n").slice(0, -1).flatMap((line) => {
        try {
          return [JSON.parse(line) as Arrival];
        } catch {
          return [];
        }
      });
    },
  };
}

function receive(settings: ReceiverSettings & { journal: string }) {
  const { port, seed, journal, fail, secrets, ahead_ms = 0 } = settings;
  Deno.serve({ hostname: "127.0.0.1", port, onListen: () => {} }, async (request) => {
    const at_ms = Date.now() + ahead_ms;
    const { pathname: path } = new URL(request.url);
    const bytes = await request.arrayBuffer().then((buffer) => new Uint8Array(buffer), () => null);
    // The sender was killed before the end of the body.
    if (bytes === null) return new Response(null, { status: 400 });
    const received = { path, headers: request.headers, bytes, at_ms };
    const arrival = await readArrival(received, secrets[path] ?? "");
    // The key comes from the seed; ids are random.
    const name = `${arrival.key} ${arrival.type} ${arrival.sequence} ${path}`;
    const random = randomOf(seed, "receiver", name);
    const is_failed = arrival.attempt === 1 && random.chance(fail);
    const way = is_failed ? random.pick(WAYS_TO_FAIL) : null;
    arrival.failed_by = way;
    arrival.is_taken &&= way === null;
    // Written before the response, so it survives a kill of this process.
    Deno.writeTextFileSync(journal, `${JSON.stringify(arrival)}\n`, { append: true });
    return arrival.is_genuine ? await respond(way) : new Response(null, { status: 400 });
  });
}

async function respond(way: WayToFail | null): Promise<Response> {
  if (way === "500") return new Response("no", { status: 500 });
  if (way === "503") return new Response("later", { status: 503, headers: { "Retry-After": "6" } });
  if (way === "302") return new Response(null, { status: 302, headers: { Location: "/" } });
  if (way === "silent") await pause(SILENT_MS);
  return new Response(null, { status: 204 });
}

if (import.meta.main) {
  receive(settingsOf());
  tell({});
  onLines(() => {});
}

/** The id of the resource whose events are numbered together. */
// deno-lint-ignore no-explicit-any
function subjectOf({ type, data: { object: { id, payment_id } } }: any): string {
  return type.startsWith("instrument.") ? id : payment_id ?? id;
}
