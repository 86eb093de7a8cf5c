/**
 * Errors of the database and of the schemas: their codes and messages, without any detail of an
 * internal failure. tests/openapi/examples_test.ts provokes every code.
 */

import assert from "node:assert/strict";
import * as z from "zod";
import { serviceUnavailable } from "../../shared/core/errors.ts";
import { issueMessage } from "../../shared/http/issue_message.ts";
import { faultOf } from "../../shared/http/log_line.ts";
import { mustBe } from "../../shared/schema/requirement.ts";
import { toApiError } from "../../shared/store/database.ts";
import { assertRefused, serviceCase } from "../support/service/service_case.ts";

/** SQLSTATEs and codes of the driver. */
const UNAVAILABLE = [
  ...["40001", "40P01", "53300", "55P03", "57P01", "57014", "08006", "08P01", "25006", "3D000"],
  ...["CONNECT_TIMEOUT", "CONNECTION_CLOSED", "CONNECTION_DESTROYED"],
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE"],
];
const INTERNAL = [
  ...["23505", "23514", "42501", "22P02", "PAY01", "58000", "58030", "XX000", "XX001"],
];

for (const [codes, api_code] of [[UNAVAILABLE, "a 503"], [INTERNAL, "unexpected"]] as const) {
  for (const code of codes) {
    Deno.test(`toApiError() of ${code} is ${api_code}`, () => {
      const error = Object.assign(new Error("secret"), { code, routine: "ExecInsert" });
      const shown = toApiError(error);
      if (codes === INTERNAL) assert.equal(shown, error);
      else assert.deepEqual(shown, Object.assign(serviceUnavailable(), { cause: error }));
    });
  }
}

Deno.test("faultOf() names the class and the place of an error, never its message", () => {
  const frame = "    at canary (file:///x/shared/canary.ts:1:2)";
  const error = new Error(`canary\n${frame}`);
  error.stack = `Error: ${error.message}\n    at call (file:///srv/shared/store/store.ts:12:34)`;
  assert.equal(faultOf(error), "Error at store/store.ts:12");
  assert.equal(faultOf(Object.assign(new Error("canary"), { stack: "" })), "Error");
});

serviceCase("an unexpected database error reveals nothing to the caller", async (t, service) => {
  const canary = "canary-of-the-database";
  await service.sql.unsafe(`
    create function pay.betray() returns trigger language plpgsql as $$
    begin
      raise exception '${canary}' using detail = '${canary}', hint = '${canary}',
        table = '${canary}', errcode = coalesce(nullif(new.reference, ''), 'P0001');
    end $$;
    create trigger betray before insert on pay.payments
      for each row execute function pay.betray()`);
  const codes = { "23505": "internal_error", "XX000": "internal_error" };
  for (const [code, api_code] of Object.entries({ ...codes, "57014": "service_unavailable" })) {
    await t.step(`SQLSTATE ${code} is ${api_code}`, async () => {
      service.logs.length = 0;
      const response = await service.pay({ reference: code }, { idempotency_key: `of-${code}` });
      assertRefused(response, api_code);
      if (api_code === "internal_error") {
        const message = "Something went wrong on our side: try again";
        assert.equal(response.body.error.message, message);
      }
      const [fault, place] = service.logs[0]!.fault!.split(" at ");
      assert.equal(fault, `PostgresError ${code}`);
      assert.match(place ?? "store/x.ts:1", /^store\/\w+\.ts:\d+$/);
      assert.ok(
        !JSON.stringify([response.text, [...response.headers], service.logs]).includes(canary),
      );
      assert.equal(await service.count("idempotency_keys"), 0, "a failure is not stored");
    });
  }
});

const WORDS = "text of 2 to 4 letters";
const SCHEMA = z.object({ code: mustBe(z.string().min(2).max(4).regex(/^[a-z]*$/), WORDS) });

/** A message counts the characters of a text only if their number is the fault. */
const COUNTS: [sent: string, end: string][] = [
  ["abcde", ": it has 5"],
  ["", ": it is empty"],
  ["a1", ""],
];
for (const [sent, end] of COUNTS) {
  Deno.test(`issueMessage() of "${sent}" ends with "${WORDS}${end}"`, () => {
    const [issue] = SCHEMA.safeParse({ code: sent }).error!.issues;
    const fault = { param: "code", sent, literal: undefined, currency: undefined };
    assert.equal(issueMessage(SCHEMA, issue!, fault), `"code" must be ${WORDS}${end}`);
  });
}
