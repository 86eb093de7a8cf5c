/**
 * Reads the caller's key and checks its form and checksum. The database decides whether the key is
 * valid: for one that this isolate knows in the round trip that does the work.
 */

import type { Context, MiddlewareHandler } from "hono";
import { parseApiKey, PUBLISHED_TEST_KEY } from "../core/api_key.ts";
import { ApiError } from "../core/errors.ts";
import { RecentMap } from "../core/recent_map.ts";
import { span } from "../core/tracing.ts";
import { type Access, rateLimited } from "../store/outcome.ts";
import { AddressLimit, type Verdict } from "./address_limit.ts";
import { networkOf } from "./address_network.ts";
import type { Dependencies } from "./dependencies.ts";
import type { Env, PresentedKey, RequestEnvironment } from "./request_state.ts";
import { LIVE_ENVIRONMENT } from "./request_environment.ts";

/** Most headers whose keys are known without being hashed again. */
const KEYS_MAX = 1_000;

/**
 * Finds out who sends a request before anything is done for it. A malformed key never reaches the
 * database. The database checks a key that this isolate does not know before the body is read.
 * Then the request takes a place of its account. Networks with too many failures get 429 until the
 * window ends, except for keys that this isolate knows.
 */
export function apiKeyHeader(
  deps: Dependencies,
  sandbox: RequestEnvironment,
): MiddlewareHandler<Env> {
  const { places, rate_limits, store } = deps;
  const { tenants } = store;
  const limit = rate_limits === null ? null : new AddressLimit();
  const is_local = deps.base_url.startsWith("http://");
  const presented = new RecentMap<string, PresentedKey>(KEYS_MAX);
  const accountsOf = ({ livemode }: PresentedKey) => livemode ? places.live : places.sandboxes;
  /**
   * The checks under way. Further requests with the same key wait in places that all unknown
   * keys share, because nobody knows yet whether they have accounts.
   */
  const checks = new Map<string, Promise<void>>();
  const check = (c: Context<Env>, network: string, key: PresentedKey): Promise<void> => {
    const under_way = checks.get(key.hash);
    // Not in places of live keys: nobody knows yet whether it is one.
    if (under_way) return places.sandboxes.run([tenants.nameOf(key.hash)], () => under_way);
    const one = checkOne(c, network).finally(() => checks.delete(key.hash));
    checks.set(key.hash, one);
    return one;
  };
  /** Throws `unauthorized`, `rate_limited` and `service_unavailable`. */
  const checkOne = async (c: Context<Env>, network: string) => {
    const settle = limit?.admit(network, c.get("state").at_ms);
    if (settle === null) throw rateLimited();
    let verdict: Verdict = "unknown";
    try {
      // Neither counts the request nor reports the key as admitted: the request itself will.
      const asStranger = (access: Access) =>
        store.authenticate({ ...access, rate_limits: null, observe: () => {} });
      await places.key_checks.run(
        [network],
        () => c.get("state").environment.admit(c, null, asStranger),
      );
      verdict = "admitted";
    } catch (error) {
      if (!(error instanceof ApiError && error.code === "unauthorized")) throw error;
      verdict = "refused";
      throw invalidKey();
    } finally {
      settle?.(verdict);
    }
  };
  /** Throws the errors of `check`, and `origin_not_allowed`. */
  const authenticate = (c: Context<Env>): PresentedKey | Promise<PresentedKey> => {
    const state = c.get("state");
    const header = c.req.header("Authorization") ?? "";
    const known = presented.get(header);
    const key = known ?? readKey(header, is_local);
    if (key instanceof ApiError) {
      const network = networkOfRequest(c);
      if (limit?.isOver(network, state.at_ms)) throw rateLimited();
      limit?.fail(network, state.at_ms);
      throw key;
    }
    state.key = key;
    state.environment = key.livemode ? LIVE_ENVIRONMENT : sandbox;
    if (key.livemode && c.req.header("Origin") !== undefined) {
      throw new ApiError(
        "origin_not_allowed",
        "Live keys are not accepted from browsers: keep them on your server",
      );
    }
    if (tenants.of(key.hash) !== undefined) {
      // Only its usual form, so that a key has one entry.
      if (!known && header === `Bearer ${key.text}`) presented.set(header, key);
      return key;
    }
    return check(c, networkOfRequest(c), key).then(() => key);
  };
  return async function readApiKey(c, next) {
    const state = c.get("state");
    const key = await span("authenticate", () => authenticate(c));
    await accountsOf(key).run([tenants.nameOf(key.hash)], () => {
      const begun = state.environment.begin?.(c);
      return begun ? begun.then(next) : next();
    });
    // Hono has turned errors of handlers into responses, so the database's decision is known.
    if (state.code === "unauthorized") {
      tenants.forget(key.hash);
      presented.delete(`Bearer ${key.text}`);
      limit?.refuse(networkOfRequest(c), state.at_ms);
    }
  };
}

/** Returns the key of a request, or a 401 that names the fault of the header. */
function readKey(authorization: string, local: boolean): PresentedKey | ApiError {
  const header = authorization.trim();
  if (header === "") {
    return unauthorized(`The Authorization header is missing: send "${HEADER_FORM}"`);
  }
  const [scheme] = header.split(/\s/, 1);
  if (scheme!.toLowerCase() !== "bearer") {
    return unauthorized(
      `The Authorization header must begin with the word Bearer: send "${HEADER_FORM}"`,
    );
  }
  const text = header.slice(scheme!.length).trim();
  const key = parseApiKey(text);
  if (key === null) {
    return unauthorized(
      'The text after "Bearer" is not an API key of this service: copy the whole key, which ' +
        'begins like "sk_test_" or "sk_live_", without quotes',
    );
  }
  if (text === PUBLISHED_TEST_KEY && !local) return invalidKey();
  return { hash: key.hash, livemode: key.mode === "live", text };
}

const HEADER_FORM = "Authorization: Bearer <API_KEY>";

/**
 * Makes the 401 for unknown, revoked and expired keys, which get the same response (contract §6).
 */
export function invalidKey(): ApiError {
  return unauthorized(
    "This API key is not valid here: it is unknown, revoked or expired. Use another key",
  );
}

function unauthorized(message: string): ApiError {
  return new ApiError("unauthorized", message, {}, { "WWW-Authenticate": "Bearer" });
}

/** Returns the network of the client: that of the nearest proxy's header, or of the connection. */
export function networkOfRequest(c: Context<Env>): string {
  const forwarded = c.req.header("X-Forwarded-For") ?? "";
  const last = forwarded.slice(forwarded.lastIndexOf(",") + 1).trim();
  const { remoteAddr } = (c.env ?? {}) as { remoteAddr?: { hostname?: string } };
  return networkOf(last || remoteAddr?.hostname || "unknown");
}
