/** `traceparent` of a request goes with the deliveries of its events (contract §4). */

import assert from "node:assert/strict";
import { APPROVED_CARD, startService } from "../support/service/service.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  DELIVERIES,
  openRecorder,
  settle,
  TRIGGER,
} from "../support/webhook/recording_receiver.ts";

const service = await startService();
const hooks = openRecorder();
Deno.test.afterAll(async () => {
  await hooks.close();
  await service.close();
});
const { id: endpoint_id } = await addEndpoint(service, hooks.url("/"));
const { id: inbox_id } = await addInbox(service);

const [CREATE, REFUND, TRIGGERED] = ["a", "b", "c"].map((digit) =>
  `00-${digit.repeat(32)}-${digit.repeat(16)}-01`
);

/** Returns what has arrived since the last call: `type traceparent`. */
async function arrived(): Promise<string[]> {
  await settle(service);
  return hooks.arrivals.splice(0).map(({ event, headers }) =>
    `${event.type} ${headers.get("traceparent")}`
  );
}

/** Creates a payment by card with a header. */
async function pay(traceparent: string): Promise<string> {
  const made = await service.pay({ card: APPROVED_CARD }, { headers: { traceparent } });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
}

Deno.test("deliveries have the traceparent of the request that made their event", async () => {
  const id = await pay(CREATE!);
  assert.deepEqual(await arrived(), [`payment.created ${CREATE}`, `payment.completed ${CREATE}`]);

  const path = `/api-v1-payments/v1/payments/${id}/refund`;
  await service.call("POST", path, { body: {}, headers: { traceparent: REFUND! } });
  for (const line of await arrived()) assert.equal(line.split(" ")[1], REFUND);

  const { body } = await service.call("GET", `${DELIVERIES}?endpoint_id=${endpoint_id}&limit=1`);
  const again = `${DELIVERIES}/${body.data[0].id}/redeliver`;
  await service.call("POST", again, { body: {}, headers: { traceparent: CREATE! } });
  assert.equal((await arrived())[0]?.split(" ")[1], REFUND);
});

Deno.test("an inbox has the same header, and the payload does not contain it", async () => {
  const before = (await readInbox(service, inbox_id)).body.next_cursor;
  await pay(CREATE!);
  await settle(service);
  const { body } = await readInbox(service, inbox_id, `after=${before}`);
  assert.equal(body.data.length, 2);
  for (const delivery of body.data) {
    assert.equal(delivery.headers.traceparent, CREATE);
    assert.equal(delivery.body.includes(CREATE!), false);
  }
  await arrived();
});

Deno.test("a triggered delivery has the traceparent of its trigger", async () => {
  const payment_id = await pay(CREATE!);
  await arrived();
  const triggered = await service.call("POST", TRIGGER, {
    body: { endpoint_id, payment_id, event: "payment.failed" },
    headers: { traceparent: TRIGGERED! },
  });
  assert.equal(triggered.status, 200, triggered.text);
  assert.deepEqual(await arrived(), [`payment.failed ${TRIGGERED}`]);
});

for (const [what, sent] of [["wrong", "00-1-2-3"], ["overlong", `${CREATE}${"0".repeat(8_000)}`]]) {
  Deno.test(`a traceparent that is ${what} is ignored and not stored`, async () => {
    const id = await pay(sent!);
    assert.deepEqual(await arrived(), ["payment.created null", "payment.completed null"]);
    const stored = await service.sql`
      select traceparent from pay.events where subject_id = ${id} and traceparent is not null
      union all
      select traceparent from pay.provider_operations
      where subject_id = ${id} and traceparent is not null`;
    assert.deepEqual([...stored], []);
  });
}
