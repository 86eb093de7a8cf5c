/**
 * Requests of seeded sandboxes: each gets a number, from which its ids and secrets follow, and a
 * line in the transcript (ADR 0023). Other requests pay a comparison of their key's prefix.
 */

import type { Sandbox } from "./sandbox.ts";
import type { Context } from "hono";
import { hasSeededPrefix } from "../core/api_key.ts";
import { isFromPage } from "../http/cross_origin.ts";
import { idGenerator, type RandomSource } from "../core/ids.ts";
import { seededRandom } from "./seeded_random.ts";
import { timeIn } from "./known_settings.ts";
import type { SandboxSettings } from "../store/sandbox_settings.ts";
import type { Env, EnvironmentValues, RequestState } from "../http/request_state.ts";
import { faultOf } from "../http/log_line.ts";
import { transcriptLine } from "./transcript_line.ts";

interface NumberedRequest {
  /** Its place in the run, from 1. */
  n: number;
  /** Hex text that is derived from the seed. */
  root: string;
}

const runs = new WeakMap<RequestState, NumberedRequest>();

export async function storeTranscript(
  c: Context<Env>,
  { known_settings, seeded_store }: Sandbox,
): Promise<void> {
  const state = c.get("state");
  const run = runs.get(state);
  if (run === undefined) return;
  try {
    const line = await transcriptLine(c, run.n);
    await seeded_store.keep(known_settings.accessOf(c, null), run.n, line);
  } catch (error) {
    // The request is done, so it gets its response.
    state.fault = faultOf(error);
  }
}

/** The paths of reads that are no part of a run, and so cannot change it. */
const LOOKS = /\/(?:transcript|changes)$/;

/**
 * Reports whether a request is a part of the run. A read for a web page is none: the run is the
 * same whether somebody looks at it or not.
 */
function isOfRun({ method, path, raw: { headers } }: Context<Env>["req"]): boolean {
  return !LOOKS.test(path) && !(method === "GET" && isFromPage(headers));
}

/** Numbers a request of a seeded sandbox, and sets its id. */
export function numberRequest(c: Context<Env>, sandbox: Sandbox): Promise<void> | undefined {
  if (hasSeededPrefix(c.get("state").key!.text) && isOfRun(c.req)) return number(c, sandbox);
}

async function number(
  c: Context<Env>,
  { known_settings, seeded_store }: Sandbox,
): Promise<void> {
  const state = c.get("state");
  const { hash } = state.key!;
  const settings = await seeded_store.number(known_settings.accessOf(c, null));
  if (settings === null) return;
  known_settings.learn(hash, settings);
  const run = { n: settings.requests, root: settings.seed_root! };
  const random = seededRandom(run.root, `request_id ${run.n}`);
  runs.set(state, run);
  state.request_id = idGenerator(timeIn(settings, state.at_ms), random, run.n)("req_");
}

/** Returns the values of a request: those of its sandbox's seed and its number, or `random`. */
export function valuesOf(
  state: RequestState,
  settings: SandboxSettings,
  random: RandomSource,
): EnvironmentValues {
  const run = runs.get(state);
  if (run === undefined) {
    const order_ms = settings.version === 0 ? undefined : state.at_ms;
    return { random, order_ms, run_number: null, settings };
  }
  const { n, root } = run;
  return { random: seededRandom(root, `request ${n}`), order_ms: n, run_number: n, settings };
}
