/**
 * Requests of seeded sandboxes: each gets a number, from which its ids and secrets follow, and a
 * line in the transcript (ADR 0023). Other requests pay a comparison of their key's prefix.
 */

import { sandboxOf } from "./sandbox.ts";
import type { Context, MiddlewareHandler } from "hono";
import { hasSeededPrefix } from "../core/api_key.ts";
import { idGenerator, type RandomSource } from "../core/ids.ts";
import { seededRandom, type Source } from "./seeded_random.ts";
import { readSettings, timeIn } from "./known_settings.ts";
import type { Access } from "../store/outcome.ts";
import { accessOf } from "./present_settings.ts";
import type { Env, RequestState } from "../http/request_state.ts";
import { faultOf } from "../http/log_line.ts";
import { transcriptLine } from "./transcript_line.ts";

/** A request of a seeded sandbox. */
interface NumberedRequest {
  /** Its place in the run, from 1. */
  n: number;
  /** Hex text that is derived from the seed. */
  root: string;
}

const runs = new WeakMap<RequestState, NumberedRequest>();

/** Returns the number of a request in the run of its seeded sandbox; null: it has no seed. */
export function runOf(state: RequestState): NumberedRequest | null {
  return runs.get(state) ?? null;
}

/**
 * Stores the transcripts of seeded sandboxes. Stands before all other middleware, so that it sees
 * the response of every error.
 */
export function storeTranscript(): MiddlewareHandler<Env> {
  return async function kept(c, next) {
    await next();
    const state = c.get("state");
    const run = runOf(state);
    if (run === null) return;
    try {
      await sandboxOf(c.get("deps")).seeded_store.keep(
        presentAccess(c),
        run.n,
        await transcriptLine(c, run.n),
      );
    } catch (error) {
      // The request is done, so it gets its response.
      state.fault = faultOf(error);
    }
  };
}

/**
 * Numbers the requests of seeded sandboxes.
 * @param is_unnumbered whether a path belongs to no run: that of the transcript itself
 */
export function numberRequests(is_unnumbered: (path: string) => boolean): MiddlewareHandler<Env> {
  return async function numbered(c, next) {
    if (isSeeded(c.get("state")) && !is_unnumbered(c.req.path)) await begin(c);
    await next();
  };
}

/**
 * Returns the source of a request: that of its sandbox's seed and its number, or else `random`.
 * @param version the version of the sandbox's settings; 0: it has none
 */
export function sourceOf(state: RequestState, version: number, random: RandomSource): Source {
  const { at_ms } = state;
  const run = runOf(state);
  if (run !== null) {
    return { random: seededRandom(run.root, `request ${run.n}`), order_ms: run.n };
  }
  return version === 0 ? { random } : { random, order_ms: at_ms };
}

function isSeeded({ key }: RequestState): boolean {
  return key !== null && !key.livemode && hasSeededPrefix(key.text);
}

async function begin(c: Context<Env>): Promise<void> {
  const state = c.get("state");
  const { known_settings, seeded_store } = sandboxOf(c.get("deps"));
  const { hash } = state.key!;
  const detail = await seeded_store.number(presentAccess(c));
  if (detail === null) return;
  known_settings.learn(hash, detail);
  const settings = readSettings(detail);
  const run = { n: settings.requests, root: settings.seed_root! };
  const random = seededRandom(run.root, `request_id ${run.n}`);
  runs.set(state, run);
  state.request_id = idGenerator(timeIn(settings, state.at_ms), random, run.n)("req_");
}

/** The access of a request with a seeded key. */
function presentAccess(c: Context<Env>): Access {
  const { key } = c.get("state");
  return accessOf(c, null, sandboxOf(c.get("deps")).known_settings.of(key!.hash));
}
