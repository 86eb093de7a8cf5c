/** The operations of `api-v1-sandbox` on declared faults (contract §7). */

import { CreateFaultBody, ListFaultsQuery } from "../schema/fault.ts";
import { readOne } from "../http/read_one.ts";
import { type Route, SANDBOX_FUNCTION } from "../http/route.ts";
import { listRoute } from "../http/page.ts";
import { sandboxRoute } from "./sandbox.ts";

const shared = {
  home: SANDBOX_FUNCTION,
  group: "Sandbox",
  scope: "sandbox:write",
  test_only: true,
  // Otherwise a fault on every request would also concern its own deletion.
  without_faults: true,
  response: "Fault",
} as const;

export const FAULT_ROUTES: readonly Route[] = [
  sandboxRoute({
    ...shared,
    id: "createFault",
    summary: "Declare a fault",
    description:
      "The next matching requests, deliveries or calls to the simulated provider fail in this " +
      "way, exactly `times` times. Each response that a fault decides has the header " +
      "`Sandbox-Fault`. A sandbox has at most 100 faults that have not happened yet; one more is " +
      "400.",
    method: "POST",
    paths: ["/faults", "/v1/faults"],
    body: CreateFaultBody,
    status: 201,
    run({ deps, request, body }) {
      const { access, context, idempotency } = request;
      const { on, fault, times, where = {}, delay_ms = null } = body;
      const row = { id: context.newId("flt_"), kind: on, fault, times, filter: where, delay_ms };
      return deps.sandbox.faults.create(access, row, idempotency);
    },
  }),
  listRoute({
    ...shared,
    id: "listFaults",
    summary: "List declared faults",
    paths: ["/faults", "/v1/faults"],
    query: ListFaultsQuery,
    kind: "faults",
  }),
  readOne({
    ...shared,
    id: "getFault",
    summary: "Get a declared fault",
    description: "`left` tells how often the fault will still happen.",
    paths: ["/faults/:id", "/v1/faults/:id"],
    kind: "faults",
  }),
  sandboxRoute({
    ...shared,
    id: "deleteFault",
    summary: "Delete a declared fault",
    description: "The fault does not happen any more.",
    method: "DELETE",
    paths: ["/faults/:id", "/v1/faults/:id"],
    response: "DeletedFault",
    run: ({ deps, request, id }) =>
      deps.sandbox.faults.delete(request.access, id, request.idempotency),
  }),
];
