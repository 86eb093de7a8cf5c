/**
 * The list of deliveries (contract §5) shows those of one change by event, the newest first, and
 * those of one event by endpoint.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";
import { addEndpoint, DELIVERIES } from "../support/webhook/recording_receiver.ts";

/** More endpoints than a live environment has, and than one character of an id tells apart. */
const ENDPOINTS = 33;
/** By chance, random ids of two events would be in order in half of all changes. */
const PAYMENTS = 10;

/** Deliveries of a payment as `type endpoint`, in the order of the list. */
async function listed(service: TestService, payment_id: string): Promise<string[]> {
  const path = `${DELIVERIES}?limit=100&payment_id=${payment_id}`;
  const { body } = await service.call("GET", path);
  return body.data.map(({ event_type, endpoint_id }: Record<string, string>) =>
    `${event_type} ${endpoint_id}`
  );
}

serviceCase(
  "GET /v1/webhook_deliveries lists one change by event and endpoint",
  async (t, service) => {
    const endpoints: string[] = [];
    for (let i = 0; i < ENDPOINTS; i++) {
      const url = `https://hooks.example.com/${i}`;
      endpoints.push((await addEndpoint(service, url)).id);
    }
    for (const clock of ["real", "moved"]) {
      await t.step(`with a ${clock} clock`, async () => {
        if (clock === "moved") {
          const body = { advance: 60, mode: "frozen" };
          assert.equal((await service.call("POST", `${SANDBOX}/clock`, { body })).status, 200);
        }
        for (let i = 0; i < PAYMENTS; i++) {
          const { body } = await service.make({ outcome: "success" });
          const rows = await listed(service, body.id);
          const types = rows.map((row) => row.split(" ")[0]!);
          const events = [...new Set(types)];
          assert.deepEqual(events, ["payment.completed", "payment.created"]);
          // Each event has all of its deliveries together, the newest event first.
          assert.deepEqual(types, events.flatMap((type) => Array(ENDPOINTS).fill(type)));
          const orders = events.map((type) =>
            rows.filter((row) => row.startsWith(`${type} `)).map((row) => row.split(" ")[1])
          );
          for (const order of orders) {
            assert.deepEqual(order, orders[0]);
            assert.deepEqual(order.toSorted(), endpoints.toSorted());
            // The endpoints of the first 32 slots are in the order of their slots.
            assert.deepEqual(
              order.filter((id) => id !== endpoints[32]),
              endpoints.slice(0, 32).reverse(),
            );
          }
        }
      });
    }
  },
);
