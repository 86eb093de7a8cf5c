/**
 * examples/supabase_orders in a Supabase project, next to the service: its functions open orders
 * and write what webhooks tell, and row-level security shows payers only their own orders.
 */

import assert from "node:assert/strict";
import { createClient } from "@supabase/supabase-js";
import { until } from "../support/common/until.ts";
import { lacksPrograms } from "../support/common/programs.ts";
import { tryStack } from "../../examples/supabase_orders/try_stack.ts";
import { openExposedProject } from "../support/exposure/exposed_project.ts";
import { startSupabaseApi } from "../support/exposure/supabase_api.ts";
import { openSupabaseProject } from "../support/examples/supabase_project.ts";

const ADA = "00000000-0000-4000-8000-0000000000ad";
const BOB = "00000000-0000-4000-8000-0000000000b0";

interface Row {
  status: string;
  payment_id: string | null;
  paid_at: Date | null;
}

/** A token of Supabase. The test is in the place of Supabase, which verifies its signature. */
function token(claims: object): string {
  const part = (value: object) => btoa(JSON.stringify(value)).replaceAll("=", "");
  return `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}.signature`;
}

const tokenOf = (sub: string) => token({ sub, role: "authenticated", email: `${sub}@example.com` });

Deno.test({
  name: "examples/supabase_orders writes its orders next to the service",
  ignore: await lacksPrograms("examples/supabase_orders", ["bash", "npx"]),
  async fn(t) {
    await using project = await openSupabaseProject();
    const { sql, client, checkout_url, webhook_url } = project;
    const checkout = async (body: object, bearer = tokenOf(ADA)) => {
      const response = await fetch(checkout_url, {
        method: "POST",
        headers: { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: await response.json() };
    };
    const order = (order_id: string, card = "pm_card_visa", product = "print") => ({
      order_id,
      product,
      token: card,
    });
    const read = async (id: string) => {
      const [row] = await sql<[Row?]>`select status, payment_id, paid_at from public.orders
        where id = ${id}`;
      return row ?? null;
    };
    const reaches = async (id: string, status: string) => {
      await until(`the order is ${status}`, async () => (await read(id))?.status === status);
      return (await read(id))!;
    };
    /** Runs a statement as the Data API does. */
    const as = (role: string, sub: string, statement: string) =>
      sql.begin(async (transaction) => {
        await transaction`select set_config('request.jwt.claims', ${
          JSON.stringify({ sub })
        }, true)`;
        await transaction.unsafe(`set local role ${role}`);
        return await transaction.unsafe(statement);
      });
    const paid_id = crypto.randomUUID();

    await t.step("Supabase verifies the token of a payer, and none of a webhook", () => {
      assert.deepEqual(project.verify_jwt, {
        "api-v1-payments": false,
        "api-v1-sandbox": false,
        checkout: true,
        "payment-webhook": false,
      });
    });
    await t.step("an order is paid when its webhook has arrived", async () => {
      const { status, body } = await checkout(order(paid_id));
      assert.deepEqual([status, body], [200, { status: "completed", url: null }]);
      const row = await reaches(paid_id, "paid");
      assert.ok(row.paid_at);
      const payment = await client.payments.retrieve(row.payment_id!);
      assert.deepEqual([payment.reference, payment.amount], [paid_id, 2500]);
    });
    await t.step("the same order again makes no second payment", async () => {
      const before = await read(paid_id);
      for (const card of ["pm_card_visa", "pm_card_mastercard"]) {
        const { status, body } = await checkout(order(paid_id, card));
        assert.deepEqual([status, body], [200, { status: "completed", url: null }]);
      }
      // Two clicks, before a webhook has told the payment.
      const id = crypto.randomUUID();
      const clicks = await Promise.all([1, 2].map(() => checkout(order(id))));
      assert.deepEqual(clicks.map(({ status }) => status), [200, 200]);
      await reaches(id, "paid");
      const made = (await client.payments.list({ limit: 100 })).data;
      for (const one of [id, paid_id]) {
        assert.equal(made.filter(({ reference }) => reference === one).length, 1);
      }
      assert.deepEqual(await read(paid_id), before);
    });
    for (const [result, status] of [["success", "paid"], ["failure", "declined"]] as const) {
      await t.step(`3-D Secure: after ${result} the order is ${status}`, async () => {
        const id = crypto.randomUUID();
        const { body } = await checkout(order(id, "pm_card_authenticationRequired"));
        assert.equal(body.status, "requires_action");
        assert.match(body.url, /#bank/);
        const { payment_id } = await reaches(id, "waiting");
        const authenticated = client.sandbox.authenticate(payment_id!, { result });
        if (result === "success") await authenticated;
        else await assert.rejects(authenticated, { code: "authentication_failed" });
        await reaches(id, status);
      });
    }
    await t.step("a declined order is paid again, once", async () => {
      const id = crypto.randomUUID();
      // The response alone tells the decline. The webhook can come later.
      assert.equal((await checkout(order(id, "pm_card_chargeDeclined"))).body.status, "declined");
      const { payment_id, paid_at } = (await read(id))!;
      assert.equal(paid_at, null);
      const clicks = await Promise.all([1, 2].map(() => checkout(order(id))));
      assert.deepEqual(
        clicks.map(({ body }) => body),
        [1, 2].map(() => ({ status: "completed", url: null })),
      );
      const row = await reaches(id, "paid");
      const [late] = (await client.webhookDeliveries.list({ payment_id: payment_id! })).data;
      await until("the webhooks of the declined payment have come", async () => {
        const { status } = await client.webhookDeliveries.retrieve(late!.id);
        return status === "delivered";
      });
      await client.webhookDeliveries.redeliver(late!.id);
      await until("one has come again", async () => {
        const { status, attempts } = await client.webhookDeliveries.retrieve(late!.id);
        return status === "delivered" && attempts.length === 2;
      });
      assert.deepEqual(await read(id), row);
      const made = (await client.payments.list({ limit: 100 })).data
        .filter(({ reference }) => reference === id);
      assert.deepEqual(made.map(({ status }) => status), ["completed", "declined"]);
    });
    await t.step("webhooks that come again change nothing", async () => {
      const before = await read(paid_id);
      const { payment_id } = before!;
      const list = () =>
        Array.fromAsync(client.webhookDeliveries.list({ payment_id: payment_id! }));
      for (const { id } of await list()) await client.webhookDeliveries.redeliver(id);
      await until(
        "every webhook has come twice",
        async () =>
          (await list()).every(({ status, attempts }) =>
            status === "delivered" && attempts.length === 2
          ),
      );
      assert.deepEqual(await read(paid_id), before);
    });
    await t.step("a refund keeps paid_at", async () => {
      const { payment_id, paid_at } = (await read(paid_id))!;
      await client.payments.refund(payment_id!);
      assert.deepEqual((await reaches(paid_id, "refunded")).paid_at, paid_at);
    });
    await t.step("a webhook without a valid signature changes nothing", async () => {
      const id = crypto.randomUUID();
      await sql`insert into public.orders ${
        sql({ id, user_id: ADA, product: "print", amount: 2500, currency: "EUR" })
      }`;
      const headers = {
        "Payment-Signature": `t=${Math.floor(Date.now() / 1000)},v1=${"0".repeat(64)}`,
      };
      const object = { object: "payment", id: "pay_x", reference: id, amount_refunded: 0 };
      const body = JSON.stringify({ type: "payment.completed", sequence: 2, data: { object } });
      const response = await fetch(webhook_url, { method: "POST", headers, body });
      await response.body?.cancel();
      assert.equal(response.status, 400);
      assert.equal((await read(id))!.status, "open");
      assert.deepEqual(project.complaints().length, 1);
    });
    await t.step("mistakes open no order", async () => {
      const id = crypto.randomUUID();
      const anon = token({ role: "anon" });
      for (
        const [body, bearer, status] of [
          [order(id), anon, 401],
          [order(id), "x", 401],
          [order("1"), undefined, 400],
          [order(id, "pm_card_visa", "gold"), undefined, 400],
          [{ ...order(id), token: 1 }, undefined, 400],
          [order(paid_id), tokenOf(BOB), 404],
        ] as const
      ) {
        const response = await checkout(body, bearer);
        assert.equal(response.status, status, JSON.stringify(response.body));
      }
      assert.equal(await read(id), null);
    });
    await t.step("supabase-js calls checkout as in the README", async () => {
      const supabase = createClient("https://project.example.com", "sb_publishable_0123", {
        accessToken: () => Promise.resolve(tokenOf(BOB)),
        global: { fetch: (_url, init) => fetch(checkout_url, init) },
      });
      const body = order(crypto.randomUUID());
      const { data, error } = await supabase.functions.invoke("checkout", { body });
      assert.deepEqual([data, error], [{ status: "completed", url: null }, null]);
      await reaches(body.order_id, "paid");
    });
    await t.step("the browser of another origin may call checkout", async () => {
      const response = await fetch(checkout_url, { method: "OPTIONS" });
      await response.body?.cancel();
      assert.equal(response.status, 200);
      assert.match(response.headers.get("Access-Control-Allow-Headers")!, /authorization/);
    });
    await t.step("payers read their own orders, and nobody writes them", async () => {
      const all = "select id from public.orders";
      assert.equal((await as("authenticated", ADA, all)).length, 6);
      assert.equal((await as("authenticated", BOB, all)).length, 1);
      assert.deepEqual([...await as("authenticated", crypto.randomUUID(), all)], []);
      const refused = [
        ["anon", all],
        ["authenticated", "update public.orders set status = 'paid'"],
        ["authenticated", "delete from public.orders"],
        ["authenticated", "select * from pay.payments"],
      ] as const;
      for (const [role, statement] of refused) {
        await assert.rejects(as(role, ADA, statement), { code: "42501" }, statement);
      }
    });
    await t.step("the user is the customer of the payment, and reads it", async () => {
      await sql`select pay.expose('one', 'test')`;
      const by_telephone = crypto.randomUUID();
      await checkout(order(by_telephone), token({ sub: BOB, role: "authenticated", email: "" }));
      const { payment_id } = await reaches(by_telephone, "paid");
      assert.equal((await client.payments.retrieve(payment_id!)).customer, null);
      const { data } = await client.payments.list({ customer_id: BOB });
      assert.equal(data.length, 1);
      const seen = await as("authenticated", BOB, "select id from payments.payments");
      assert.deepEqual(seen.map(({ id }) => id), data.map(({ id }) => id));
    });
    await t.step("types that the CLI generates have what web/ reads", () => project.checkTypes());
  },
});

Deno.test("examples/supabase_orders/web shows a user its payments, live", async () => {
  await using project = await openExposedProject(17);
  const api = startSupabaseApi(project);
  await project.deployer`select pay.expose('acme', 'test')`;
  const said: string[] = [];
  try {
    await tryStack({
      API_URL: api.url,
      ANON_KEY: api.anon_key,
      SERVICE_ROLE_KEY: api.service_key,
      PAYMENTS_API_KEY: project.test_key,
    }, (line) => said.push(line));
  } finally {
    await api.close();
  }
  assert.equal(said.length, 8, said.join("\n"));
});
