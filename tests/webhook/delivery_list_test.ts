/**
 * The list of deliveries (contract §5) shows those of one change by event, the newest first, and
 * those of one event by endpoint. It has filters, and shows a delivery as a read of it does.
 */

import assert from "node:assert/strict";
import type { TestService } from "../support/service/service.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";
import {
  addEndpoint,
  DELIVERIES,
  deliveriesOf,
  settle,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";

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

webhookCase("GET /v1/webhook_deliveries filters", async (t, service, hooks) => {
  const good = await addEndpoint(service, hooks.url("/good"));
  const bad = await addEndpoint(service, hooks.url("/bad"), { events: ["payment.created"] });
  await addEndpoint(service, hooks.url("/x"), {}, { key: service.other.text });
  await service.make({ outcome: "success" }, { key: service.other.text });
  hooks.judge = ({ path }) => path === "/bad" ? 500 : 200;
  const { body: first } = await service.make({ outcome: "success" });
  const { body: second } = await service.make({ outcome: "pending" });
  await settle(service);
  const all = await deliveriesOf(service);
  const created = hooks.at("/good").find(({ event }) => event.data.object.id === second.id)!.event;
  const cases: [query: string, expected: number, (row: Record<string, unknown>) => boolean][] = [
    ["", 5, () => true],
    [`&endpoint_id=${good.id}`, 3, ({ endpoint_id }) => endpoint_id === good.id],
    [`&endpoint_id=${bad.id}`, 2, ({ endpoint_id }) => endpoint_id === bad.id],
    [`&payment_id=${first.id}`, 3, ({ payment_id }) => payment_id === first.id],
    [`&event_id=${created.id}`, 2, ({ event_id }) => event_id === created.id],
    ["&status=pending", 2, ({ status }) => status === "pending"],
    ["&status=delivered", 3, ({ status }) => status === "delivered"],
    ["&status=failed", 0, () => false],
    [
      `&status=pending&payment_id=${second.id}`,
      1,
      ({ payment_id, status }) => payment_id === second.id && status === "pending",
    ],
    [`&endpoint_id=${bad.id}&status=delivered`, 0, () => false],
  ];
  for (const [query, expected, wants] of cases) {
    await t.step(query.replace(/_[0-9a-z]{26}/g, "_…") || "none", async () => {
      const rows = await deliveriesOf(service, query);
      assert.equal(rows.length, expected);
      assert.deepEqual(rows, all.filter(wants));
    });
  }
  await t.step("a single delivery looks as in the list, beside its `exchanges`", async () => {
    const read = await service.call("GET", `${DELIVERIES}/${all[0].id}`);
    const { exchanges: _, ...shown } = read.body;
    assert.deepEqual(shown, all[0]);
  });
});
