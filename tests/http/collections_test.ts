/**
 * Collections in a sandbox (contract §2): the result on the due date, and what a mandate allows.
 * tests/model has returns months later, tests/races uses of one mandate at once.
 */

import assert from "node:assert/strict";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import type { TestResponse, TestService } from "../support/service/service.ts";
import {
  advance,
  advanceClock,
  APPROVED,
  assertRefused,
  PAYMENTS,
  SANDBOX,
  serviceCase,
} from "../support/service/service_case.ts";

const AT = Date.parse("2026-06-08T08:09:10.111Z");
const DAY_S = 86_400;
const DUE_ON = "2026-06-22";
const MANDATE = { id: "M-1", signed_at: "2026-05-01", sequence: "recurring" };
const RETURNED_IBAN = "DE00 0000 0000 0000 0000 99";

let mandates = 0;
/** Creates a collection of 1000 under a mandate of its own, unless one is given. */
function collect(
  service: TestService,
  { mandate = {}, ...body }: Record<string, unknown> = {},
  key: Record<string, string> = {},
): Promise<TestResponse> {
  const own = { ...MANDATE, id: `own ${++mandates}`, ...mandate as Record<string, unknown> };
  return service.pay({ ...APPROVED.sepa, mandate: own, ...body }, key);
}

async function read(service: TestService, id: string) {
  return await service.get(`${PAYMENTS}/${id}`);
}

serviceCase("a collection has its result on the due date", async (t, service) => {
  await service.setClock(AT);
  /** [name, body, status then, return code] */
  const RESULTS: [string, Record<string, unknown>, string, string | null][] = [
    ["an approved IBAN", {}, "completed", null],
    ["the IBAN that is returned", { iban: RETURNED_IBAN }, "failed", "R01"],
    ["the IBAN of a revoked mandate", { iban: "DE78370400440532013101" }, "failed", "MD01"],
    ["an IBAN that is returned later", { iban: "DE71370400440532013130" }, "completed", null],
  ];
  for (const [name, body, status, return_code] of RESULTS) {
    await t.step(`${name}: ${status} at the beginning of the due date`, async () => {
      await service.setClock(AT);
      const { body: { id } } = await collect(service, body);
      const due_ms = Date.parse(DUE_ON);
      for (const [at_ms, expected] of [[due_ms - 1, "processing"], [due_ms, status]] as const) {
        await service.setClock(at_ms);
        await service.deps.provider_worker.notify();
        assert.equal((await read(service, id)).status, expected);
      }
      const ended = await read(service, id);
      assert.deepEqual([ended.return_code, ended.updated_at], [
        return_code,
        "2026-06-22T00:00:00.000Z",
      ]);
    });
  }
  await assertSilent(service.sql);
});

/** Uses of one mandate in turn: [name, uses of days, sequence and param of the error] */
const USES: [string, [days: number, sequence: string, param: string | null][]][] = [
  ["recurring, then everything but first and one_off", [
    [0, "recurring", null],
    [0, "first", "mandate.sequence"],
    [0, "one_off", "mandate.sequence"],
    [0, "recurring", null],
    [0, "final", null],
    [0, "recurring", "mandate.id"],
    [0, "final", "mandate.id"],
  ]],
  ["first once", [[0, "first", null], [0, "first", "mandate.sequence"], [0, "recurring", null]]],
  ["one_off once", [[0, "one_off", null], [0, "one_off", "mandate.id"]]],
  ["used within 36 months", [[1_000, "recurring", null], [1_000, "recurring", null]]],
  ["idle for 36 months since the signature", [[1_100, "first", "mandate.id"]]],
  ["idle for 36 months since the last use", [
    [100, "recurring", null],
    [1_100, "recurring", "mandate.id"],
  ]],
];

/** Uses of one mandate, one after the other: [name, uses of a body, and whether it is taken] */
const BINDINGS: [string, [body: Record<string, unknown>, is_own: boolean][]][] = [
  ["another IBAN with the same end", [
    [{ iban: "DE89370400440532013000" }, true],
    [{ iban: "de89 3704 0044 0532 0130 00" }, true],
    [{ iban: "DE69512108001245133000" }, false],
    [{ iban: "DE89370400440532013000" }, true],
  ]],
  ["the first customer", [
    [{}, true],
    [{ customer: { id: "ada", email: "ada@example.com" } }, true],
    [{ payer: { id: "bob", email: "ada@example.com" } }, false],
    [{}, true],
    [{ customer: { id: "ada", email: "ada@example.com" } }, true],
  ]],
];

serviceCase("a mandate allows what its uses leave", async (t, service) => {
  for (const [number, [name, uses]] of USES.entries()) {
    await t.step(name, async () => {
      const clock = await service.get(`${SANDBOX}/clock`);
      const signed_at = clock.now;
      for (const [days, sequence, param] of uses) {
        await advanceClock(service, days * DAY_S);
        const mandate = { id: `uses ${number}`, signed_at, sequence };
        const response = await collect(service, { mandate });
        if (param === null) assert.equal(response.status, 201, response.text);
        else assertRefused(response, "invalid_parameter", param);
      }
    });
  }
  const signed_at = (await service.get(`${SANDBOX}/clock`)).now;
  for (const [code, is_over] of [["MD01", true], ["AC06", true], ["AM04", false]] as const) {
    await t.step(`a return with ${code} ${is_over ? "ends" : "leaves"} it`, async () => {
      const mandate = { id: `code ${code}`, signed_at, sequence: "recurring" };
      const { body: { id } } = await collect(service, { mandate });
      await advance(service, id, "completed");
      const path = `${SANDBOX}/payments/${id}/advance`;
      const failed = { body: { to: "failed", return_code: code } };
      assert.equal((await service.call("POST", path, failed)).status, 200);
      const again = await collect(service, { mandate: { ...mandate, id: `CODE ${code}` } });
      if (is_over) assertRefused(again, "invalid_parameter", "mandate.id");
      else assert.equal(again.status, 201, again.text);
    });
  }
  for (const [name, uses] of BINDINGS) {
    await t.step(name, async () => {
      for (const [body, is_own] of uses) {
        // A bank does not tell the case of an id.
        const id = is_own ? name : name.toUpperCase();
        const mandate = { id, signed_at, sequence: "recurring" };
        const response = await collect(service, { mandate, ...body });
        if (is_own) assert.equal(response.status, 201, response.text);
        else assertRefused(response, "invalid_parameter", "mandate.id");
      }
    });
  }
  await t.step("a refused create uses nothing", async () => {
    const mandate = { id: "refused", signed_at, sequence: "one_off" };
    assertRefused(
      await collect(service, { mandate, currency: "USD" }),
      "invalid_parameter",
      "currency",
    );
    assert.equal((await collect(service, { mandate })).status, 201);
  });
  await t.step("another sandbox has mandates of its own, and a reset forgets them", async () => {
    const here = { id: "own", signed_at, sequence: "one_off" };
    assert.equal((await collect(service, { mandate: here })).status, 201);
    const mandate = { ...here, signed_at: MANDATE.signed_at };
    const other = { key: service.other.text };
    assert.equal((await collect(service, { mandate }, other)).status, 201);
    assertRefused(await collect(service, { mandate }, other), "invalid_parameter", "mandate.id");
    await service.call("POST", `${SANDBOX}/reset`, other);
    assert.equal((await collect(service, { mandate }, other)).status, 201);
  });
});
