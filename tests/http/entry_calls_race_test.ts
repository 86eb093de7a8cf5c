/**
 * Slow calls of one tenant leave connections for the others, however many there are. A call that
 * waits for a lock holds a connection for seconds.
 */

import assert from "node:assert/strict";
import { PAYMENTS, REFUNDS, serviceCase } from "../support/service/service_case.ts";

const UNKNOWN_REFUND = `${REFUNDS}/re_01arz3ndektsv4rrffq69g5fav`;

serviceCase("slow calls of one tenant do not delay another tenant", async (_t, service) => {
  const other = { key: service.other.text };
  const { body } = await service.pay({}, other);
  const holder = await service.sql.reserve();
  try {
    await holder`begin`;
    await holder`lock table pay.refunds in access exclusive mode`;
    // The pool has fewer connections than this.
    let returned = 0;
    const busy = Array.from({ length: 12 }, async () => {
      const { status } = await service.call("GET", UNKNOWN_REFUND);
      returned++;
      return status;
    });
    assert.equal((await service.call("GET", "/api-v1-payments/v1/balance", other)).status, 200);
    assert.equal((await service.call("GET", "/api-v1-payments/v1/nothing", other)).status, 404);
    assert.equal((await service.call("GET", `${PAYMENTS}/${body.id}`, other)).status, 200);
    assert.equal((await service.pay({}, other)).status, 201);
    assert.equal((await service.pay()).status, 201);
    assert.equal(returned, 0);
    await holder`rollback`;
    assert.deepEqual(new Set(await Promise.all(busy)), new Set([404]));
  } finally {
    holder.release();
  }
});
