/**
 * Operations of the sandbox that `api-v1-payments` serves too, at the console's address of them.
 */

import type { Operation } from "./operation.ts";
import { advancePayment } from "./sandbox_operations.ts";

/** Aliases: each is the same operation as in the sandbox. */
export const CONSOLE_OPERATIONS: readonly Operation[] = [
  {
    ...advancePayment,
    id: "advanceSandboxPayment",
    own_path: `/${advancePayment.home}${advancePayment.paths[0]}`,
    paths: ["/v1/sandbox/:id/advance"],
  },
];
