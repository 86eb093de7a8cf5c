/**
 * Calls of the service with `functions.invoke` of the real @supabase/supabase-js. The API key is in
 * the call's own `Authorization` header, which overrides the header of the library.
 */

import assert from "node:assert/strict";
import { createClient, FunctionsHttpError, type SupabaseClient } from "@supabase/supabase-js";
import { type ServedService, withServedService } from "../support/service/served_service.ts";

const PAYMENTS = "api-v1-payments/v1/payments";
const BODY = { amount: 1000, currency: "EUR", outcome: "success" };
/**
 * Keys of a Supabase project, in the old and the new form. Neither is an API key of the service.
 */
const PROJECT_KEYS = ["eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2ln", "sb_publishable_0123"];

/** A Supabase client of the served functions, and the requests that it sends. */
function supabaseOf({ base_url }: ServedService, project_key: string) {
  const sent: Request[] = [];
  const supabase = createClient(base_url.replace("/functions/v1", ""), project_key, {
    auth: { persistSession: false, autoRefreshToken: false },
    global: {
      fetch(input, init) {
        const request = new Request(input, init);
        sent.push(request.clone());
        return fetch(request);
      },
    },
  });
  return { supabase, sent };
}

/** The member `error` in the body of a refused call. */
async function refusal(call: ReturnType<SupabaseClient["functions"]["invoke"]>) {
  const { data, error } = await call;
  assert.equal(data, null);
  assert.ok(error instanceof FunctionsHttpError);
  return { status: error.context.status, ...(await error.context.json()).error };
}

for (const project_key of PROJECT_KEYS) {
  Deno.test(`functions.invoke with a project key ${project_key.slice(0, 4)}…`, (t) =>
    withServedService(async (served) => {
      const { supabase, sent } = supabaseOf(served, project_key);
      const headers = { Authorization: `Bearer ${served.service.key.text}` };
      await t.step("POST creates a payment and replays it", async () => {
        const options = { headers: { ...headers, "Idempotency-Key": "order-1" }, body: BODY };
        const { data, error } = await supabase.functions.invoke(PAYMENTS, options);
        assert.equal(error, null);
        assert.equal(data.status, "completed");
        const again = await supabase.functions.invoke(PAYMENTS, options);
        assert.deepEqual(again.data, data);
        assert.equal(again.response!.headers.get("Idempotent-Replayed"), "true");
      });
      await t.step("a decline is a FunctionsHttpError with the service's body", async () => {
        const body = { ...BODY, outcome: "declined" };
        const error = await refusal(supabase.functions.invoke(PAYMENTS, { headers, body }));
        assert.deepEqual([error.status, error.code], [402, "payment_declined"]);
        assert.equal(error.payment.status, "declined");
      });
      await t.step("without an API key in the call it is 401", async () => {
        const error = await refusal(supabase.functions.invoke(PAYMENTS, { body: BODY }));
        assert.deepEqual([error.status, error.code], [401, "unauthorized"]);
      });
      await t.step("preflight allows every header that the library sends", async () => {
        const names = new Set(sent.flatMap((request) => [...request.headers.keys()]));
        for (const name of ["apikey", "authorization", "x-client-info"]) {
          assert.ok(names.has(name), name);
        }
        const preflight = await fetch(`${served.base_url}/${PAYMENTS}`, {
          method: "OPTIONS",
          headers: {
            Origin: "http://localhost:3000",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": [...names].sort().join(","),
          },
        });
        const allowed = preflight.headers.get("Access-Control-Allow-Headers")!.toLowerCase();
        assert.deepEqual([...names].filter((name) => !allowed.split(",").includes(name)), []);
      });
    }));
}
