/**
 * Requests of seeded sandboxes: each gets a number, from which its ids and secrets follow, and a
 * line in the transcript (ADR 0052). Other requests pay a comparison of their key's prefix.
 */

import type { Context, MiddlewareHandler } from "hono";
import { SEEDED_KEY_PREFIX } from "../core/api_key.ts";
import { containsCardNumber } from "../core/card_number.ts";
import { idMint, type RandomSource } from "../core/ids.ts";
import { seededRandom, type Source } from "../core/seeded_random.ts";
import type { ApiKey } from "../schema/api_key.ts";
import { readSettings, timeIn } from "../store/known_settings.ts";
import type { Access } from "../store/outcome.ts";
import type { Env, NumberedRequest, RequestState } from "./request_state.ts";
import { accessOf } from "./present_settings.ts";
import { faultOf } from "./request_log.ts";

/** Ids of API keys and their texts. They do not follow from the seed. */
const KEY_IDS = /\bkey_[0-9a-z]{26}\b/g;
const KEY_TEXTS = /\b[a-z][a-z0-9]{0,15}_(test|live)_[0-9A-Za-z]{49}\b/g;
/** Headers of a delivery that contain the real time. */
const TIMED_HEADERS: ReadonlySet<string> = new Set([
  "Payment-Signature",
  "Webhook-Timestamp",
  "Webhook-Signature",
]);
/** The path of the functions on Supabase, which is the part of a path that a deployment decides. */
const MOUNT = /^\/functions\/v1(?=\/)/;

/**
 * Keeps the transcripts of seeded sandboxes. Stands before all other middleware, so that it sees the
 * answer of every error.
 */
export function keepTranscript(): MiddlewareHandler<Env> {
  return async function kept(c, next) {
    await next();
    const state = c.get("state");
    if (state.run === null) return;
    try {
      await c.get("deps").seeded_store.keep(
        presentAccess(c),
        state.run.n,
        await lineOf(c, state.run),
      );
    } catch (error) {
      // The request is done, so it is answered.
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
  const { run, at_ms } = state;
  if (run !== null) {
    return { random: seededRandom(run.root, `request ${run.n}`), order_ms: run.n };
  }
  return version === 0 ? { random } : { random, order_ms: at_ms };
}

function isSeeded({ key }: RequestState): boolean {
  return key !== null && !key.livemode && key.text.startsWith(`${SEEDED_KEY_PREFIX}_`);
}

async function begin(c: Context<Env>): Promise<void> {
  const state = c.get("state");
  const { known_settings, seeded_store } = c.get("deps");
  const { hash } = state.key!;
  const detail = await seeded_store.number(presentAccess(c));
  if (detail === null) return;
  known_settings.learn(hash, detail);
  const settings = readSettings(detail);
  const run = { n: settings.requests, root: settings.seed_root!, body: null };
  const random = seededRandom(run.root, `request_id ${run.n}`);
  state.run = run;
  state.request_id = idMint(timeIn(settings, state.at_ms), random, run.n)("req_");
}

/** The access of a request with a seeded key. */
function presentAccess(c: Context<Env>): Access {
  const { key } = c.get("state");
  return accessOf(c, null, c.get("deps").known_settings.of(key!.hash));
}

/**
 * Returns a request and its answer as one line of JSON, without API keys and without what differs
 * from one installation or run to the next: the service's addresses, and signatures.
 */
async function lineOf(c: Context<Env>, { n, body }: NumberedRequest): Promise<string> {
  const { method, url } = c.req.raw;
  const { pathname, search } = new URL(url);
  const { base_url, console_url } = c.get("deps");
  const text = withoutHosts(await c.res.clone().text(), [base_url, console_url]);
  const line = JSON.stringify({
    n,
    request: {
      method,
      path: maskCards(pathname.replace(MOUNT, "") + search),
      idempotency_key: maskCards(c.req.header("Idempotency-Key") ?? null),
      body: maskCards(body),
    },
    answer: {
      status: c.res.status,
      request_id: c.get("state").request_id,
      replayed: c.res.headers.has("Idempotent-Replayed"),
      body: bodyOf(text),
    },
  });
  return line.replace(KEY_IDS, "key_…").replace(KEY_TEXTS, "…");
}

/** Replaces security codes, and text with a card number, which the service never stores. */
function maskCards(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (name, part) => {
    const text = typeof part === "number" ? String(part) : part;
    const is_secret = name === "cvc" || typeof text === "string" && containsCardNumber(text);
    return is_secret ? "…" : part;
  });
}

/** Replaces the scheme, host and port of the service's addresses. */
function withoutHosts(text: string, urls: readonly (string | null)[]): string {
  return urls.reduce<string>(
    (rest, url) => url === null ? rest : rest.replaceAll(new URL(url).origin, "…"),
    text,
  );
}

function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text, (name, part) => {
      if (TIMED_HEADERS.has(name) && typeof part === "string") return "…";
      return isKey(part) ? shownKey(part) : part;
    });
  } catch {
    return text;
  }
}

function isKey(part: unknown): part is ApiKey {
  return typeof part === "object" && part !== null && "object" in part && part.object === "api_key";
}

/** Returns the members of a key that are the same in every run. */
function shownKey({ object, name, scopes, livemode }: ApiKey) {
  return { object, name, scopes, livemode };
}
