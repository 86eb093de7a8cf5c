/**
 * Operations of the sandbox function that `api-v1-payments` serves too, at paths for the console.
 */

import type { Route } from "../http/route.ts";
import { advancePayment } from "../sandbox/advance_route.ts";

/** Aliases of operations of the sandbox function. */
export const CONSOLE_ROUTES: readonly Route[] = [
  {
    ...advancePayment,
    id: "advanceSandboxPayment",
    own_path: `/${advancePayment.home}${advancePayment.paths[0]}`,
    paths: ["/v1/sandbox/:id/advance"],
  },
];
