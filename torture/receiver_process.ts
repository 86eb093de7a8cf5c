/**
 * The receiver of the run: verifies each delivery as a merchant would, has it on disk before it
 * answers 2xx, and fails a share of the first attempts in every way that a receiver can fail.
 *
 * Later attempts of a delivery are not failed on purpose: a test delivery is tried four times, so a
 * receiver that fails 30 % of all attempts would lose 0.8 % of them by the contract.
 */

import { verifyWebhook } from "../client/webhook_signature.ts";
import { Journal } from "./journal.ts";
import { onLines, settingsOf, tell } from "./process.ts";
import { randomOf } from "./random.ts";

/** What the receiver is launched with. */
export interface ReceiverSettings {
  port: number;
  seed: number;
  journal: string;
  /** Share of first attempts that fail, 0 to 1. */
  fail: number;
  /** Signing secret by path. */
  secrets: Record<string, string>;
  /** How far its clock runs ahead, as the servers' does. */
  ahead_ms?: number;
}

/** What it keeps of an arrival. */
export interface Arrival {
  at_ms: number;
  path: string;
  event_id: string;
  type: string;
  subject_id: string;
  sequence: number;
  attempt: number;
  /** Age of the signature when it arrived, in milliseconds; -1 to 1 000 is its rounding. */
  age_ms: number;
  is_genuine: boolean;
  /** Answered 2xx. */
  is_taken: boolean;
}

const WAYS_TO_FAIL = ["500", "503", "302", "silent"] as const;
const SILENT_MS = 30_000;

const settings = settingsOf<ReceiverSettings>();
const journal = new Journal(settings.journal);
const server = Deno.serve(
  { hostname: "127.0.0.1", port: settings.port, onListen: () => {} },
  async (request) => {
    const at_ms = Date.now() + (settings.ahead_ms ?? 0);
    const { pathname } = new URL(request.url);
    const bytes = await request.arrayBuffer().then((buffer) => new Uint8Array(buffer), () => null);
    // The sender was killed in the middle of it.
    if (bytes === null) return new Response(null, { status: 400 });
    const header = request.headers.get("Payment-Signature");
    const is_genuine = await verifyWebhook(bytes, header, settings.secrets[pathname] ?? "", {
      now_ms: at_ms,
    }).then(() => true, () => false);
    const event = JSON.parse(new TextDecoder().decode(bytes));
    const attempt = Number(request.headers.get("Webhook-Attempt"));
    // By what the seed decides, not by ids, which are random.
    const name = `${event.request.idempotency_key} ${event.type} ${event.sequence} ${pathname}`;
    const random = randomOf(settings.seed, "receiver", name);
    const way = attempt === 1 && random.chance(settings.fail) ? random.pick(WAYS_TO_FAIL) : null;
    const arrival: Arrival = {
      at_ms,
      path: pathname,
      event_id: event.id,
      type: event.type,
      subject_id: event.data.object.payment_id ?? event.data.object.id,
      sequence: event.sequence,
      attempt,
      age_ms: at_ms - Number(request.headers.get("Webhook-Timestamp")) * 1_000,
      is_genuine,
      is_taken: way === null && is_genuine,
    };
    await journal.write(arrival);
    return is_genuine ? await answer(way) : new Response(null, { status: 400 });
  },
);
tell({ port: server.addr.port });
onLines(() => {});

async function answer(way: typeof WAYS_TO_FAIL[number] | null): Promise<Response> {
  if (way === null) return new Response(null, { status: 204 });
  if (way === "500") return new Response("no", { status: 500 });
  if (way === "503") return new Response("later", { status: 503, headers: { "Retry-After": "6" } });
  if (way === "302") return new Response(null, { status: 302, headers: { Location: "/" } });
  await new Promise((resolve) => setTimeout(resolve, SILENT_MS));
  return new Response(null, { status: 204 });
}
