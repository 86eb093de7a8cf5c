/**
 * The receiver of the run. It verifies each delivery as a merchant would, records it on disk before it
 * returns 2xx, and fails a share of the first attempts in several ways.
 *
 * It does not fail later attempts: a sandbox's delivery has four attempts, so a receiver that fails
 * 30 % of all attempts would lose 0.8 % of the deliveries by the contract.
 */

import { readArrival, WAYS_TO_FAIL, type WayToFail } from "./arrival.ts";
import { Journal } from "./journal.ts";
import { onLines, settingsOf, tell } from "./process.ts";
import { randomOf } from "./random.ts";

/** The settings of the process. */
export interface ReceiverSettings {
  port: number;
  seed: number;
  journal: string;
  /** Share of first attempts that fail, 0 to 1. */
  fail: number;
  /** Signing secret by path. */
  secrets: Record<string, string>;
  /** Milliseconds that its clock is ahead, like the clocks of the servers. */
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
    // The sender was killed before the end of the body.
    if (bytes === null) return new Response(null, { status: 400 });
    const received = { path: pathname, headers: request.headers, bytes, at_ms };
    const arrival = await readArrival(received, settings.secrets[pathname] ?? "");
    // The key comes from the seed; ids are random.
    const name = `${arrival.key} ${arrival.type} ${arrival.sequence} ${pathname}`;
    const random = randomOf(settings.seed, "receiver", name);
    const is_failed = arrival.attempt === 1 && random.chance(settings.fail);
    const way = is_failed ? random.pick(WAYS_TO_FAIL) : null;
    arrival.failed_by = way;
    arrival.is_taken &&= way === null;
    await journal.write(arrival);
    return arrival.is_genuine ? await respond(way) : new Response(null, { status: 400 });
  },
);
tell({ port: server.addr.port });
onLines(() => {});

async function respond(way: WayToFail | null): Promise<Response> {
  if (way === null) return new Response(null, { status: 204 });
  if (way === "500") return new Response("no", { status: 500 });
  if (way === "503") return new Response("later", { status: 503, headers: { "Retry-After": "6" } });
  if (way === "302") return new Response(null, { status: 302, headers: { Location: "/" } });
  await new Promise((resolve) => setTimeout(resolve, SILENT_MS));
  return new Response(null, { status: 204 });
}
