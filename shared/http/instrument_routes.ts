/** The operations of `api-v1-payments` on instruments. */

import { renderError } from "../domain/changes/error_body.ts";
import { ListInstrumentsQuery } from "../schema/list.ts";
import { notActive } from "../store/inactive_instrument.ts";
import { listRoute } from "./page.ts";
import { readOne } from "./read_one.ts";
import { type Route, route } from "./route.ts";

const instrument_paths = { group: "Instruments", response: "Instrument" } as const;

export const INSTRUMENT_ROUTES: readonly Route[] = [
  listRoute({
    ...instrument_paths,
    id: "listInstruments",
    summary: "List instruments",
    description: "The cards and SEPA mandates that payments have saved, newest first.",
    paths: ["/v1/instruments"],
    scope: "payments:read",
    query: ListInstrumentsQuery,
    kind: "instruments",
  }),
  readOne({
    ...instrument_paths,
    id: "getInstrument",
    summary: "Get an instrument",
    paths: ["/v1/instruments/:id"],
    kind: "instruments",
    scope: "payments:read",
  }),
  route({
    ...instrument_paths,
    id: "endInstrument",
    summary: "End an instrument",
    description:
      "No later payment can use it. A payment that was decided before stays as it is. Ending it " +
      "again returns the same.",
    method: "DELETE",
    paths: ["/v1/instruments/:id"],
    scope: "instruments:write",
    errors: ["invalid_state"],
    run({ deps, request: { access, context, idempotency }, id }) {
      const refusal = renderError(notActive("end", { status: "failed" }), context);
      return deps.store.endInstrument(access, idempotency, id, refusal);
    },
  }),
];
