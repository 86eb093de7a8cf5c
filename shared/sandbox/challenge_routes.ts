/**
 * The routes of the page where the payer of a sandbox payment completes 3-D Secure. They take no
 * API key, because a payer's browser has none: the token in the path opens the one payment.
 */

import type { SandboxDependencies } from "./sandbox.ts";
import type { Hono } from "hono";
import type { Challenge } from "../schema/challenge.ts";
import { AuthenticatePaymentBody } from "../schema/payment_body.ts";
import { fromPage } from "../http/checkout_page_routes.ts";
import { keylessLimit } from "../http/keyless_limit.ts";
import { SANDBOX_FUNCTION } from "../http/route.ts";
import { parseBody } from "../http/parse_input.ts";
import { parseBytes, readRaw } from "../http/request_body.ts";
import { SMALL_BODY_BYTES } from "../schema/limits.ts";
import type { Env } from "../http/request_state.ts";

/** Adds `GET` and `POST /challenges/{token}`. */
export function serveChallenges(app: Hono<Env>, deps: SandboxDependencies): void {
  const { challenges } = deps.sandbox;
  const limited = keylessLimit(deps);
  const path = `/${SANDBOX_FUNCTION}/challenges/:token`;
  app.use(path, fromPage(deps));
  app.get(path, (c) => {
    c.get("state").route_template = path;
    return limited(c, async () => {
      return c.json(await challenges.read(c.req.param("token") ?? "") satisfies Challenge);
    });
  });
  app.post(path, (c) => {
    c.get("state").route_template = path;
    return limited(c, async () => {
      const token = c.req.param("token") ?? "";
      // First, so that nobody sends a body to an unknown link.
      await challenges.read(token);
      const bytes = await readRaw(c.req.raw, SMALL_BODY_BYTES);
      const body = parseBytes(bytes, c.req.raw.headers, AuthenticatePaymentBody);
      const { result } = parseBody(AuthenticatePaymentBody, body);
      const completed = await challenges.complete(token, result);
      return c.json(completed satisfies Challenge);
    });
  });
}
