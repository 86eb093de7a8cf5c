/** The operations of `api-v1-payments` on instruments. */

import { EmptyBody, EmptyQuery } from "../schema/empty.ts";
import { Instrument } from "../schema/instrument.ts";
import { ListInstrumentsQuery, listOf } from "../schema/list.ts";
import { responsePage } from "./page.ts";
import { readOne } from "./read_one.ts";
import { PAYMENTS_FUNCTION, type Route, route } from "./route.ts";

const instrument_paths = {
  home: PAYMENTS_FUNCTION,
  group: "Instruments",
  test_only: false,
  body: EmptyBody,
  query: EmptyQuery,
  response: Instrument,
  status: 200,
} as const;

/** The operations on instruments. */
export const INSTRUMENT_ROUTES: readonly Route[] = [
  route({
    ...instrument_paths,
    id: "listInstruments",
    summary: "List instruments",
    description: "The cards and SEPA mandates that payments have saved, newest first.",
    method: "GET",
    paths: ["/v1/instruments"],
    scope: "payments:read",
    query: ListInstrumentsQuery,
    response: listOf(Instrument),
    run(call) {
      const { customer_id, status, method_kind } = call.query;
      return responsePage(call, "/v1/instruments", {
        kind: "instruments",
        filters: { customer_id, status, method_kind },
      });
    },
  }),
  readOne({
    id: "getInstrument",
    group: "Instruments",
    summary: "Get an instrument",
    path: "/v1/instruments/:id",
    kind: "instruments",
    scope: "payments:read",
    response: Instrument,
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
    run: ({ deps, request: { access, idempotency }, id }) =>
      deps.store.endInstrument(access, idempotency, id),
  }),
];
