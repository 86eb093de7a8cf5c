/**
 * Keys and secrets end by the clock of the sandbox or by the real one, whichever comes first. So a
 * clock that stands keeps no ended secret alive, and one that is ahead ends it at its own time.
 */

import assert from "node:assert/strict";
import { APPROVED_CARD, type TestService } from "../support/service/service.ts";
import { assertRefused, PAYMENTS, SANDBOX } from "../support/service/service_case.ts";
import { addInbox, readInbox } from "../support/webhook/inbox_reader.ts";
import {
  addEndpoint,
  ENDPOINTS,
  type RecordingReceiver,
  settle,
  TRIGGER,
  verifiedBy,
} from "../support/webhook/recording_receiver.ts";
import { webhookCase } from "../support/webhook/webhook_case.ts";
import { verifyWebhook } from "../../packages/client/webhook_signature.ts";

const KEYS = "/api-v1-payments/v1/api_keys";
const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;

/** The real time, which the tests move. */
class RealTime {
  #at_ms = Date.now();

  constructor(readonly service: TestService) {}

  async pass(seconds: number) {
    this.#at_ms += seconds * 1000;
    await this.service.setClock(this.#at_ms);
  }
}

/** A key or secret with an end an hour away, and a question whether it still works. */
interface Ending {
  name: string;
  begin(service: TestService, receiver: RecordingReceiver): Promise<() => Promise<boolean>>;
}

const works = async (service: TestService, key: string) =>
  (await service.call("GET", PAYMENTS, { key })).status === 200;

const ENDINGS: Ending[] = [
  {
    name: "a key with an expiry",
    async begin(service) {
      const { now } = await service.get(`${SANDBOX}/clock`);
      const expires_at = new Date(Date.parse(now) + HOUR_S * 1000).toISOString();
      const { secret } = await service.post(KEYS, { name: "ends", expires_at });
      return () => works(service, secret);
    },
  },
  {
    name: "the older secret of a rotated key",
    async begin(service) {
      const { id, secret } = await service.post(KEYS, { name: "rotated" });
      await service.post(`${KEYS}/${id}/rotate`, { expires_in: HOUR_S });
      return () => works(service, secret);
    },
  },
  {
    name: "the older secret of an endpoint",
    async begin(service, receiver) {
      const { id, secret } = await addEndpoint(service, receiver.url("/rotated"));
      await service.post(`${ENDPOINTS}/${id}/rotate_secret`, { expires_in: HOUR_S });
      return async () => {
        receiver.arrivals.length = 0;
        await service.pay({ card: APPROVED_CARD });
        await settle(service);
        return (await verifiedBy(receiver.arrivals[0]!, [secret]))[0]!;
      };
    },
  },
  {
    name: "the older secret of an endpoint, at a trigger",
    async begin(service, receiver) {
      const { id, secret } = await addEndpoint(service, receiver.url("/triggered"));
      await service.post(`${ENDPOINTS}/${id}/rotate_secret`, { expires_in: HOUR_S });
      return async () => {
        const { body: { id: payment_id } } = await service.pay({ card: APPROVED_CARD });
        await settle(service);
        receiver.arrivals.length = 0;
        await service.post(TRIGGER, { endpoint_id: id, event: "payment.completed", payment_id });
        return (await verifiedBy(receiver.arrivals[0]!, [secret]))[0]!;
      };
    },
  },
  {
    name: "the older secret of an inbox",
    async begin(service) {
      const { id, secret } = await addInbox(service);
      await service.post(`${ENDPOINTS}/${id}/rotate_secret`, { expires_in: HOUR_S });
      return async () => {
        await service.pay({ card: APPROVED_CARD });
        const { headers, body } = (await readInbox(service, id)).body.data.at(-1);
        const now_ms = Number(headers["Webhook-Timestamp"]) * 1000;
        return await verifyWebhook(body, headers["Payment-Signature"], secret, { now_ms })
          .then(() => true, () => false);
      };
    },
  },
];

/** The state of the clock at which each of them begins. */
const CLOCKS: [name: string, commands: unknown[]][] = [
  ["the real clock that is frozen later", []],
  ["a frozen clock", [{ mode: "frozen" }]],
  ["a clock that stands ahead", [{ advance: 300 * DAY_S, mode: "frozen" }]],
  ["a clock that runs ahead", [{ advance: 300 * DAY_S, mode: "real" }]],
];

const set = (service: TestService, body: unknown) => service.post(`${SANDBOX}/clock`, body);

for (const ending of ENDINGS) {
  webhookCase(`${ending.name} ends by the clock that comes first`, async (t, service, receiver) => {
    const real = new RealTime(service);
    await real.pass(0);
    /** Makes one under a clock, and deletes the endpoints of the cases before. */
    const begin = async (commands: unknown[]) => {
      await service.call("POST", `${SANDBOX}/reset`, { body: { webhook_endpoints: true } });
      for (const command of commands) await set(service, command);
      return await ending.begin(service, receiver);
    };
    for (const [name, commands] of CLOCKS) {
      await t.step(`${name}: the real time ends it`, async () => {
        const isAlive = await begin(commands);
        await set(service, { mode: "frozen" });
        await real.pass(HOUR_S - 60);
        assert.equal(await isAlive(), true, "a minute before its end");
        await real.pass(61);
        assert.equal(await isAlive(), false, "a second after its end");
      });
      await t.step(`${name}: the time of the sandbox ends it`, async () => {
        const isAlive = await begin(commands);
        await set(service, { advance: HOUR_S - 60, mode: "frozen" });
        assert.equal(await isAlive(), true, "a minute before its end");
        await set(service, { advance: 61 });
        assert.equal(await isAlive(), false, "a second after its end");
      });
    }
    await t.step("a clock that stands behind the real time does not end it at once", async () => {
      await service.call("POST", `${SANDBOX}/reset`, { body: { webhook_endpoints: true } });
      await set(service, { mode: "frozen" });
      await real.pass(40 * DAY_S);
      const isAlive = await ending.begin(service, receiver);
      assert.equal(await isAlive(), true);
      await real.pass(HOUR_S);
      assert.equal(await isAlive(), false);
    });
  });
}

webhookCase("a key that has ended in real time", async (t, service) => {
  const real = new RealTime(service);
  await real.pass(0);
  const { now } = await set(service, { mode: "frozen" });
  const expires_at = new Date(Date.parse(now) + HOUR_S * 1000).toISOString();
  const { id } = await service.post(KEYS, { name: "ends", expires_at });
  const ending = await service.post(KEYS, { name: "caller", expires_at });

  await t.step("shows how far its end is, by the clock of the sandbox", async () => {
    await real.pass(60);
    const body = await service.get(`${KEYS}/${id}`);
    assert.equal(Date.parse(body.expires_at) - Date.parse(now), (HOUR_S - 60) * 1000);
  });
  await t.step("makes no key that outlives it", async () => {
    const made = await service.post(KEYS, { name: "x" }, { key: ending.secret });
    await real.pass(HOUR_S);
    assert.equal(await works(service, made.secret), false);
  });
  await t.step("cannot be rotated", async () => {
    const rotated = await service.call("POST", `${KEYS}/${id}/rotate`, { body: {} });
    assertRefused(rotated, "invalid_state");
  });
  await t.step("does not count against the limit of active keys", async () => {
    await service.sql`
      insert into pay.api_keys (id, environment_id, livemode, name, expires_at, ends_at)
      select 'key_' || lpad(n::text, 26, '0'), environment_id, false, 'ended', expires_at, ends_at
      from pay.api_keys, generate_series(1, 120) n where id = ${id}`;
    await service.post(KEYS, { name: "one more" });
  });
});
