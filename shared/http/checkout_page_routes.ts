/**
 * The routes of the payer's page of a checkout (contract §2). They take no API key: the token in a
 * header opens one checkout, of a sandbox or live. Whoever has none gets one and the same 404
 * before the body is read.
 */

import type { Context, Hono, MiddlewareHandler } from "hono";
import * as z from "zod";
import { fingerprint } from "../core/canonical_json.ts";
import { ApiError } from "../core/errors.ts";
import { isId } from "../core/ids.ts";
import { REPLAYED_HEADER } from "../core/vocabulary.ts";
import type { RequestContext } from "../domain/changes/event.ts";
import type { OwnCheckout } from "../domain/checkouts/checkout_page.ts";
import { isCheckoutToken, tokenHash } from "../domain/checkouts/checkout_url.ts";
import { refuseRealCard } from "../domain/providers/instrument.ts";
import { PAYER } from "../schema/checkout_body.ts";
import {
  ATTEMPT_HEADER,
  type CheckoutPage,
  type PayPageBody,
  TOKEN_HEADER,
} from "../schema/checkout_page.ts";
import type { Access } from "../store/outcome.ts";
import type { SandboxSettings } from "../store/sandbox_settings.ts";
import type { PayerRequest } from "./checkouts.ts";
import { crossOrigin } from "./cross_origin.ts";
import type { Dependencies } from "./dependencies.ts";
import { readIdempotencyKey } from "./idempotency_header.ts";
import { keylessLimit } from "./keyless_limit.ts";
import { asSent, parseBody } from "./parse_input.ts";
import { parseBytes, type ReadBody, readRaw } from "./request_body.ts";
import type { Env, RequestEnvironment } from "./request_state.ts";
import { PAYMENTS_FUNCTION } from "./route.ts";

const PATH = `/${PAYMENTS_FUNCTION}/checkout`;
const ATTEMPTS_PATH = `${PATH}/payments`;
/** Most bytes of the body of an attempt. The service chose the number. */
const MAX_ATTEMPT_BYTES = 8_192;
/** The body of an attempt. Here, because the OpenAPI document has all schemas of shared/schema. */
const ATTEMPT_BODY: z.ZodType<PayPageBody> = z.object(PAYER);

/** Adds `GET /checkout` and `POST /checkout/payments`. */
export function serveCheckoutPage(
  app: Hono<Env>,
  deps: Dependencies,
  environment: RequestEnvironment,
): void {
  for (const path of [PATH, ATTEMPTS_PATH]) app.use(path, fromPage(deps));
  const read_limit = keylessLimit(deps);
  app.get(PATH, (c) => {
    c.get("state").route_template = PATH;
    return read_limit(c, async () => c.json((await readPage(c, environment)).page));
  });
  const attempt_limit = keylessLimit(deps, { counts_responses: true });
  app.post(ATTEMPTS_PATH, (c) => {
    c.get("state").route_template = ATTEMPTS_PATH;
    return attempt_limit(c, () => makeAttempt(c, environment));
  });
}

/** Refuses browsers on other pages than that for payers. */
export function fromPage({ checkout_url }: Dependencies): MiddlewareHandler<Env> {
  return crossOrigin({
    allowed: checkout_url === null ? [] : [new URL(checkout_url).origin],
    headers: [TOKEN_HEADER, ATTEMPT_HEADER],
    remedy: "set CHECKOUT_URL to it",
  });
}

/** Reads the page of the token. Throws `not_found` for any other text. */
async function readPage(
  c: Context<Env>,
  environment: RequestEnvironment,
  attempt_id = c.req.header(ATTEMPT_HEADER) ?? "",
): Promise<{ stored: OwnCheckout; page: CheckoutPage }> {
  const state = c.get("state");
  const token = c.req.header(TOKEN_HEADER) ?? "";
  if (!isCheckoutToken(token)) throw unknownLink();
  state.key = { hash: tokenHash(token), livemode: false, text: "" };
  // Of a payer only the network is limited.
  state.is_counted = true;
  const id = isId("pay_", attempt_id) ? attempt_id : "";
  try {
    return await environment.admit(c, null, async (access) => {
      const payer: Access = { ...access, is_payer: true };
      const loaded = await c.get("deps").store.load(payer, "own_checkout", id);
      if (loaded.outcome === "replay") throw new Error("a load without a key has no replay");
      const { readCheckout } = await import("./checkouts.ts");
      const { pageOf } = await import("../domain/checkouts/checkout_page.ts");
      const stored = readCheckout(loaded) as OwnCheckout;
      return { stored, page: pageOf(stored, access.at_ms) };
    });
  } catch (error) {
    throw error instanceof ApiError && error.code === "unauthorized" ? unknownLink() : error;
  }
}

function unknownLink(): ApiError {
  return new ApiError("not_found", "This link leads to no checkout");
}

async function makeAttempt(c: Context<Env>, environment: RequestEnvironment): Promise<Response> {
  const state = c.get("state");
  const { headers } = c.req.raw;
  // First, so that nobody sends a body to an unknown link.
  const { livemode } = (await readPage(c, environment)).page;
  const bytes = await readRaw(c.req.raw, MAX_ATTEMPT_BYTES);
  const sent = parseBytes(bytes, headers, ATTEMPT_BODY);
  state.idempotency_key = readIdempotencyKey(headers);
  const body = parseBody(ATTEMPT_BODY, sent);
  refuseRealCard(body, livemode);
  const { payCheckout } = await import("./checkouts.ts");
  try {
    const { response, replayed } = await environment.admit(
      c,
      null,
      (access, settings) =>
        payCheckout(c.get("deps"), requestOf(c, { access, settings, livemode, sent }), null, body),
    );
    if (replayed) c.header(REPLAYED_HEADER, "true");
    c.get("state").is_replay = replayed;
    const answer = JSON.parse(response.body);
    if (response.status < 400) return c.json((await readPage(c, environment, answer.id)).page);
    state.code = answer.error.code;
    return c.body(response.body, response.status as 409, { "Content-Type": "application/json" });
  } catch (error) {
    throw asSent(error, sent);
  }
}

/** Makes the request of an attempt. In a seeded sandbox its ids follow from the checkout. */
function requestOf(
  c: Context<Env>,
  { access, settings, livemode, sent }: {
    access: Access;
    settings: SandboxSettings | null;
    livemode: boolean;
    sent: ReadBody;
  },
): PayerRequest {
  const { request_id, idempotency_key, traceparent } = c.get("state");
  const { origins } = c.get("deps");
  const contextOf = (label: string, { requests }: { requests: number }): RequestContext => {
    const { at_ms } = access;
    const known = livemode ? null : settings && { ...settings, requests };
    const origin = origins.of({ settings: known, livemode, at_ms, label: () => label });
    return {
      ...origin,
      request_id: known?.seed_root ? origin.newId("req_") : request_id,
      ...{ idempotency_key, traceparent, run_number: null },
    };
  };
  return {
    access: {
      ...access,
      is_payer: true,
      storage: livemode ? null : access.storage && { ...access.storage, adds: true },
    },
    context: contextOf("", { requests: 0 }),
    contextOf,
    idempotency: idempotency_key === null ? null : {
      key: idempotency_key,
      fingerprint: fingerprint("POST", ATTEMPTS_PATH, sent.value as never),
      request_line: `POST ${ATTEMPTS_PATH}`,
    },
    settings: livemode ? null : settings,
  };
}
