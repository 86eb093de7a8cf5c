/**
 * The function `api-v1-sandbox` as a request handler.
 */

import { serveChallenges } from "./challenge_routes.ts";
import type { Dependencies } from "./dependencies.ts";
import { createFunctionApp } from "./function_app.ts";
import { SANDBOX_FUNCTION } from "./operation.ts";
import { SANDBOX_OPERATIONS } from "./sandbox_operations.ts";

/** Answers requests to `/api-v1-sandbox/…`. */
export function createSandboxFunction(
  deps: Dependencies,
): (request: Request, info?: unknown) => Response | Promise<Response> {
  const app = createFunctionApp(SANDBOX_FUNCTION, SANDBOX_OPERATIONS, deps, {
    serveKeyless: (app) => serveChallenges(app, deps),
  });
  return (request, info) => app.fetch(request, info as object);
}
