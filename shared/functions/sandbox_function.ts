/** The function `api-v1-sandbox` as a request handler. */

import { sandboxEnvironment } from "../sandbox/sandbox_environment.ts";
import { serveChallenges } from "../sandbox/challenge_routes.ts";
import type { SandboxDependencies } from "../sandbox/sandbox.ts";
import { createFunctionApp } from "../http/function_app.ts";
import { SANDBOX_FUNCTION } from "../http/route.ts";
import { SANDBOX_ROUTES } from "../sandbox/sandbox_routes.ts";

/** Responds to requests to `/api-v1-sandbox/…`. */
export function createSandboxFunction(
  deps: SandboxDependencies,
): (request: Request, info?: unknown) => Response | Promise<Response> {
  const app = createFunctionApp(SANDBOX_FUNCTION, SANDBOX_ROUTES, deps, {
    sandbox: sandboxEnvironment(deps),
    servePage: (app) => serveChallenges(app, deps),
  });
  return (request, info) => app.fetch(request, info as object);
}
