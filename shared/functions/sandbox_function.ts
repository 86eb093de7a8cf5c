/**
 * The function `api-v1-sandbox` as a request handler.
 */

import { sandboxWorld } from "../sandbox/sandbox_world.ts";
import { serveChallenges } from "../sandbox/challenge_routes.ts";
import type { Dependencies } from "../http/dependencies.ts";
import { createFunctionApp } from "../http/function_app.ts";
import { SANDBOX_FUNCTION } from "../http/route.ts";
import { SANDBOX_ROUTES } from "../sandbox/sandbox_routes.ts";

/** Responds to requests to `/api-v1-sandbox/…`. */
export function createSandboxFunction(
  deps: Dependencies,
): (request: Request, info?: unknown) => Response | Promise<Response> {
  const app = createFunctionApp(SANDBOX_FUNCTION, SANDBOX_ROUTES, deps, {
    world: sandboxWorld(deps),
    serveKeyless: (app) => serveChallenges(app, deps),
  });
  return (request, info) => app.fetch(request, info as object);
}
