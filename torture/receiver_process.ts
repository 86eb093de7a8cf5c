/**
 * The receiver of the run: verifies each delivery as a merchant would, has it on disk before it
 * answers 2xx, and fails a share of the first attempts in every way that a receiver can fail.
 *
 * Later attempts of a delivery are not failed on purpose: a test delivery is tried four times, so a
 * receiver that fails 30 % of all attempts would lose 0.8 % of them by the contract.
 */

import { readArrival, WAYS_TO_FAIL, type WayToFail } from "./arrival.ts";
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
    const received = { path: pathname, headers: request.headers, bytes, at_ms };
    const arrival = await readArrival(received, settings.secrets[pathname] ?? "");
    // By what the seed decides, not by ids, which are random.
    const name = `${arrival.key} ${arrival.type} ${arrival.sequence} ${pathname}`;
    const random = randomOf(settings.seed, "receiver", name);
    const is_failed = arrival.attempt === 1 && random.chance(settings.fail);
    const way = is_failed ? random.pick(WAYS_TO_FAIL) : null;
    arrival.failed_by = way;
    arrival.is_taken &&= way === null;
    await journal.write(arrival);
    return arrival.is_genuine ? await answer(way) : new Response(null, { status: 400 });
  },
);
tell({ port: server.addr.port });
onLines(() => {});

async function answer(way: WayToFail | null): Promise<Response> {
  if (way === null) return new Response(null, { status: 204 });
  if (way === "500") return new Response("no", { status: 500 });
  if (way === "503") return new Response("later", { status: 503, headers: { "Retry-After": "6" } });
  if (way === "302") return new Response(null, { status: 302, headers: { Location: "/" } });
  await new Promise((resolve) => setTimeout(resolve, SILENT_MS));
  return new Response(null, { status: 204 });
}
