/** A long transcript of a seeded sandbox: each part is read when it is taken. */

import assert from "node:assert/strict";
import { Retries } from "../../shared/jobs/retries.ts";
import { parseApiKey } from "../../shared/core/api_key.ts";
import { bodyInParts } from "../../shared/http/body_in_parts.ts";
import { PLACE_BOUNDS } from "../../shared/jobs/places.ts";
import { SANDBOX, serviceCase } from "../support/service/service_case.ts";

const LINES = 3_000;

serviceCase("a transcript is read part by part, of one run", async (t, service) => {
  const { sql, deps } = service;
  const made = await service.call("POST", `${SANDBOX}/sandboxes`, { body: { seed: "long" } });
  await sql`
    insert into pay.transcript_lines (environment_id, n, line)
    select w.environment_id, n, repeat('x', 1000)
    from pay.sandbox_settings w cross join generate_series(1, ${LINES}::int) n
    where w.seed = 'long'`;
  const [settings] = await sql`
    select version::int from pay.sandbox_settings where seed = 'long'`;
  const access = {
    key_hash: parseApiKey(made.body.test_key)!.hash,
    scope: null,
    version: settings!.version,
    at_ms: Date.now(),
    request_id: "req_1",
    rate_limits: null,
    storage: null,
    retries: new Retries(),
    observe() {},
  };
  const read = () => deps.sandbox.seeded_store.transcript(access);
  await t.step("nothing is read before it is taken", async () => {
    service.forgetStatements();
    const { begin, rest } = await read();
    service.assertStatements(1);
    assert.ok(begin.length < 300_000, `${begin.length} characters`);
    let [characters, parts] = [begin.length, 1];
    for await (const part of rest) {
      characters += part.length;
      parts++;
      assert.ok(part.length < 300_000, `${part.length} characters`);
    }
    assert.deepEqual([characters, parts], [LINES * 1001, 12]);
    service.assertStatements(11);
  });
  const { of_owner } = PLACE_BOUNDS.long_waits;
  await t.step("one whose response a fault hides leaves its place", async () => {
    const hidden = { key: made.body.test_key, headers: { "Sandbox-Fault": "server_error_after" } };
    for (let i = 0; i < of_owner; i++) {
      const { status } = await service.call("GET", `${SANDBOX}/transcript`, hidden);
      assert.equal(status, 500);
    }
    await (await read()).rest.return(undefined);
  });
  await t.step("the transcripts that are sent to an account are limited", async () => {
    const sent = await Promise.all(Array.from({ length: of_owner }, read));
    await assert.rejects(read(), { code: "rate_limited" });
    const [first, ...others] = sent;
    // The time for the sending is over, or the client has left, or the end is reached.
    const lost = bodyInParts(first!.begin, first!.rest, 1).getReader();
    await assert.rejects(lost.closed, /not read the response in time/);
    const left = await read();
    await bodyInParts(left.begin, left.rest).cancel();
    const whole = await read();
    const text = await new Response(bodyInParts(whole.begin, whole.rest)).text();
    assert.equal(text.length, LINES * 1001);
    await (await read()).rest.return(undefined);
    await Promise.all(others.map(({ rest }) => rest.return(undefined)));
  });
  await t.step("a change of the settings does not end it", async () => {
    const { rest } = await read();
    const frozen = { key: made.body.test_key, body: { mode: "frozen" } };
    assert.equal((await service.call("POST", `${SANDBOX}/clock`, frozen)).status, 200);
    assert.equal((await Array.fromAsync(rest)).length, 11);
    const [changed] = await sql`
      select version::int from pay.sandbox_settings where seed = 'long'`;
    assert.notEqual(changed!.version, access.version);
    access.version = changed!.version;
  });
  await t.step("a reset ends it with an error", async () => {
    const { rest } = await read();
    const reset = { key: made.body.test_key, body: {} };
    assert.equal((await service.call("POST", `${SANDBOX}/reset`, reset)).status, 200);
    await assert.rejects(async () => {
      for await (const _ of rest);
    }, /was reset/);
  });
});
