/**
 * `pay.expose` on servers that are set up like Supabase's, called by a role that is no superuser:
 * who sees which rows of the views and which messages, and that nothing is left after
 * `pay.unexpose`. `EXPOSED_ROWS` sets the number of payments in the test of the indexes.
 */

import assert from "node:assert/strict";
import { testWith } from "../support/common/programs.ts";
import { describeSchema } from "../support/database/schema_description.ts";
import { Dispute } from "../../shared/schema/dispute.ts";
import { Instrument } from "../../shared/schema/instrument.ts";
import { Payment } from "../../shared/schema/payment.ts";
import { Refund } from "../../shared/schema/refund.ts";
import { Transfer } from "../../shared/schema/transfer.ts";
import {
  ENVIRONMENTS,
  type ExposedProject,
  openExposedProject,
  type Row,
} from "../support/exposure/exposed_project.ts";
import { hasVersion, VERSIONS } from "../support/supabase/supabase_server.ts";

const ADA = "00000000-0000-4000-8000-0000000000ad";
const BOB = "00000000-0000-4000-8000-0000000000b0";
const VIEWS = ["payments", "instruments", "refunds", "disputes", "transfers"] as const;
const EXPOSE = "select pay.expose(account => 'acme', mode => 'test') as id";
const ROWS = Number(Deno.env.get("EXPOSED_ROWS") ?? 20_000);

const customer = (id: string) => ({ customer: { id, email: "ada@example.com", name: "Ada" } });
/** A payment by card that saves the card. */
const SAVED = { outcome: undefined, card: { token: "pm_card_visa" }, save: "off_session" };
const idsOf = (rows: Row[]) => rows.map(({ id }) => id).sort();

for (const version of VERSIONS) {
  testWith(
    `PostgreSQL ${version}`,
    await hasVersion(version),
    `pay.expose() on PostgreSQL ${version}`,
    async (t) => {
      await using project = await openExposedProject(version);
      const before = await describeSchema(project.admin_url);
      const roles_before = await membersOf(project);
      await t.step("refuses mistakes, which change nothing", () => assertRefused(project));
      assert.deepEqual(await describeSchema(project.admin_url), before);
      await t.step("makes the views, also again", async () => {
        for (let i = 0; i < 2; i++) {
          const [row] = await project.deployer.unsafe(EXPOSE);
          assert.equal(row!.id, ENVIRONMENTS.test.id);
        }
        assert.deepEqual(await membersOf(project), roles_before);
      });
      const made = await makePayments(project);
      await t.step("the columns are the members of the response", () => assertWire(project, made));
      await t.step("a customer reads its own rows", () => assertOwn(project, made));
      await t.step("nobody else reads a row, and nobody writes", () => assertShut(project));
      await t.step("settings and functions of the caller show no more", () => assertTight(project));
      await t.step("changes are sent to the customer's channel", () => assertSent(project));
      await t.step("payments beside the call succeed", () => assertBeside(project));
      await t.step("the views follow a reset", () => assertFollows(project));
      await t.step("another environment takes its place", () => assertReplaced(project));
      await t.step("views of one's own stop pay.unexpose()", async () => {
        await project.deployer`grant select on payments.payments to postgres`.catch(() => {});
        await project.admin`create view public.mine as select id from payments.payments`;
        await assert.rejects(project.deployer`select pay.unexpose()`, { code: "2BP01" });
        await project.admin`drop view public.mine`;
        assert.deepEqual(await membersOf(project), roles_before);
      });
      await t.step("pay.unexpose() leaves nothing, also twice", async () => {
        for (let i = 0; i < 2; i++) await project.deployer`select pay.unexpose()`;
        assert.deepEqual(await describeSchema(project.admin_url), before);
        assert.deepEqual(await membersOf(project), roles_before);
        const [left] = await project.admin`select to_regnamespace('payments') as schema,
          (select count(*)::int from pg_policy where polrelid = 'realtime.messages'::regclass
            or polname like '%exposed') as policies`;
        assert.deepEqual(left, { schema: null, policies: 0 });
        for (const role of ["anon", "authenticated", "service_role"]) {
          const read = project.as(role, ADA, "select from payments.payments");
          await assert.rejects(read, { code: "42P01" });
        }
        await project.pay(customer(ADA));
        assert.equal((await messagesOf(project)).length, 0);
      });
    },
  );
}

/** The roles that can act as ours. */
async function membersOf({ admin }: ExposedProject): Promise<Row[]> {
  return [
    ...await admin`select roleid::regrole::text, member::regrole::text, to_jsonb(m) - 'oid' as m
      from pg_auth_members m where roleid::regrole::text like 'pay\\_%' order by 1, 2, m::text`,
  ];
}

async function assertRefused({ deployer, admin, as }: ExposedProject) {
  const refused = async (account: string | null, mode: string | null, code: string) => {
    const call = deployer`select pay.expose(account => ${account}, mode => ${mode})`;
    await assert.rejects(call, { code }, `${account} ${mode}`);
  };
  await refused("acme", "production", "22023");
  await refused("acme", null, "22023");
  await refused("nobody", "test", "22023");
  await refused("other", "live", "22023");
  await refused(null, "test", "22023");
  await admin`create schema payments`;
  await refused("acme", "test", "42P06");
  await deployer`select pay.unexpose()`;
  await admin`drop schema payments`;
  await admin`alter function auth.uid() rename to gone`;
  await refused("acme", "test", "42704");
  await admin`alter function auth.gone() rename to uid`;
  for (const role of ["anon", "authenticated", "service_role"]) {
    for (const call of ["pay.expose('acme', 'test')", "pay.unexpose()"]) {
      await assert.rejects(as(role, ADA, `select ${call}`), { code: "42501" });
    }
  }
}

/** The objects of the test: responses of the service, and the ids of each customer's payments. */
interface Made {
  wire: Record<typeof VIEWS[number], Row>;
  ada: string[];
  others: string[];
  /** The instruments of Ada. */
  instruments: string[];
}

async function makePayments({ pay, call, admin }: ExposedProject): Promise<Made> {
  const PAYMENTS = "api-v1-payments/v1/payments";
  const refunded = await pay({
    ...{ ...customer(ADA), ...SAVED },
    ...{ metadata: { note: "private" }, reference: "o-1" },
  });
  const refund = await call(`${PAYMENTS}/${refunded.id}/refund`, { amount: 300 });
  const disputed = await pay({ ...customer(ADA), outcome: "chargeback" });
  const waiting = await pay({ ...customer(ADA), outcome: "pending" });
  const mandate = await pay({
    ...{ ...customer(ADA), ...SAVED, card: undefined, amount: 0 },
    ...{ iban: "DE89 3704 0044 0532 0130 00", mandate: { signed_at: "2026-01-31" } },
  });
  const others = [];
  // Each looks like the id of Ada, but is another text.
  for (const id of [BOB, ADA.toUpperCase(), `${ADA} `, ` ${ADA}`, `{${ADA}}`, `${ADA}x`]) {
    others.push((await pay({ ...customer(id), ...SAVED })).id);
  }
  others.push((await pay()).id, (await pay({ payer: { email: "ada@example.com" } })).id);
  const of_bob = await call(`${PAYMENTS}/${others[0]}/refund`, {});
  const transfer = await call("api-v1-payments/v1/transfers", {
    amount: 100,
    currency: "EUR",
    destination: { iban: "DE89 3704 0044 0532 0130 00" },
  });
  assert.ok(of_bob.id);
  await pay(customer(ADA), "other");
  // The same payment in the live environment, which no provider serves here.
  await admin`insert into pay.payments select (jsonb_populate_record(p, jsonb_build_object(
    'environment_id', ${ENVIRONMENTS.live.id}::text, 'id', 'pay_' || repeat('z', 26)))).*
    from pay.payments p where p.id = ${waiting.id}`;
  const [{ body: payment }, { body: dispute }, { body: instrument }] = await admin`
    select body from pay.payments where id = ${refunded.id}
    union all select body from pay.disputes where payment_id = ${disputed.id}
    union all select pay_internal.instrument_body(i) from pay.instruments i
      where id = ${mandate.instrument_id}` as Row;
  return {
    wire: {
      payments: JSON.parse(payment),
      instruments: JSON.parse(instrument),
      refunds: refund,
      disputes: JSON.parse(dispute),
      transfers: transfer,
    },
    ada: [refunded.id, disputed.id, waiting.id, mandate.id].sort(),
    others: others.sort(),
    instruments: [refunded.instrument_id, mandate.instrument_id].sort(),
  };
}

const MEMBERS = {
  payments: Payment,
  instruments: Instrument,
  refunds: Refund,
  disputes: Dispute,
  transfers: Transfer,
};

async function assertWire({ as, admin }: ExposedProject, { wire, ada, others }: Made) {
  for (const view of VIEWS) {
    const columns = await admin`select attname as name, format_type(atttypid, null) as type
      from pg_attribute where attrelid = ${`payments.${view}`}::regclass and attnum > 0
      order by attnum`;
    const more = view === "instruments" ? { customer_id: wire[view].customer.id } : {};
    const names = Object.keys({ ...MEMBERS[view].shape, ...more });
    assert.deepEqual(columns.map(({ name }) => name), names);
    const [row] = await as(
      "service_role",
      null,
      `select to_jsonb(v) as row from payments.${view} v where id = '${wire[view].id}'`,
    );
    // A time is the same moment in another form.
    for (const { name, type } of columns) {
      if (type !== "timestamp with time zone" || row.row[name] === null) continue;
      row.row[name] = new Date(row.row[name]).toISOString();
    }
    assert.deepEqual(row.row, { ...wire[view], ...more });
  }
  const all = await as("service_role", null, "select id from payments.payments");
  assert.deepEqual(idsOf(all), [...ada, ...others].sort());
  // A token with the id of a customer shows each row once, too.
  const with_sub = await as("service_role", ADA, "select id from payments.payments");
  assert.deepEqual(with_sub, all);
}

async function assertOwn({ as }: ExposedProject, { wire, ada, others, instruments }: Made) {
  const read = (sub: string | null, what: string) => as("authenticated", sub, `select ${what}`);
  const own = await read(ADA, "id, customer ->> 'id' as customer_id from payments.payments");
  assert.deepEqual(idsOf(own), ada);
  assert.ok(own.every(({ customer_id }) => customer_id === ADA));
  assert.deepEqual(idsOf(await read(ADA, "id from payments.refunds")), [wire.refunds.id]);
  assert.deepEqual(idsOf(await read(ADA, "id from payments.disputes")), [wire.disputes.id]);
  assert.deepEqual(idsOf(await read(ADA, "id from payments.instruments")), instruments);
  const of_bob = await read(BOB, "customer_id from payments.instruments");
  assert.deepEqual(of_bob, [{ customer_id: BOB }]);
  assert.equal((await read(BOB, "id from payments.payments")).length, 1);
  assert.equal((await read(BOB, "id from payments.refunds")).length, 1);
  assert.equal((await read(BOB, "id from payments.disputes")).length, 0);
  for (const sub of [ADA, BOB]) assert.deepEqual(await read(sub, "id from payments.transfers"), []);
  const named = others.map((id) => `'${id}'`).join();
  assert.deepEqual(await read(ADA, `id from payments.payments where id in (${named})`), []);
  // The merchant's own words.
  const [row] = await read(
    ADA,
    `metadata, (select evidence from payments.disputes limit 1)
      from payments.payments where id = '${wire.payments.id}'`,
  );
  assert.deepEqual(row, { metadata: null, evidence: null });
  for (const view of VIEWS) {
    for (const sub of [null, crypto.randomUUID()]) {
      assert.deepEqual(await read(sub, `id from payments.${view}`), []);
    }
  }
}

async function assertShut({ as, deployer, admin }: ExposedProject) {
  for (const view of VIEWS) {
    const denied = (role: string, statement: string) =>
      assert.rejects(as(role, ADA, statement), { code: "42501" }, `${role}: ${statement}`);
    await denied("anon", `select from payments.${view}`);
    for (const role of ["anon", "authenticated", "service_role"]) {
      // No view can be written, whoever asks.
      for (
        const change of [
          "insert into # (id) values ('x')",
          "update # set id = 'x'",
          "delete from #",
        ]
      ) {
        const statement = change.replace("#", `payments.${view}`);
        await assert.rejects(as(role, ADA, statement), ({ code }) => /^(42501|55000)$/.test(code));
      }
      await denied(role, `select from pay.${view}`);
      await denied(role, "call payments.broadcast('payments:x', '{}')");
    }
    await assert.rejects(deployer.unsafe(`select from pay.${view}`), { code: "42501" });
    // A role that somebody lets in by mistake sees no row.
    await admin.unsafe(`grant usage on schema payments to anon`);
    await admin.unsafe(`grant select on payments.${view} to anon`);
    assert.deepEqual(await as("anon", ADA, `select id from payments.${view}`), []);
    await admin.unsafe(`revoke select on payments.${view} from anon`);
    await admin.unsafe(`revoke usage on schema payments from anon`);
  }
}

async function assertTight({ as, notices, admin }: ExposedProject) {
  const own = await as("authenticated", ADA, "select id from payments.payments");
  for (
    const setting of [
      `set local pay.worker = 'on'`,
      `set local pay.environment_ids = '{${Object.values(ENVIRONMENTS).map(({ id }) => id)}}'`,
    ]
  ) {
    const seen = await as("authenticated", ADA, `${setting}; select id from payments.payments`);
    assert.deepEqual([...seen.at(-1)], own);
  }
  await assert.rejects(
    as("authenticated", ADA, "set local row_security = off; select id from payments.payments"),
    { code: "42501" },
  );
  // The policies alone, without the conditions of the views, show the same rows.
  for (const view of VIEWS) {
    await admin.unsafe(`create view payments.bare as select * from pay.${view};
      alter view payments.bare owner to pay_reader;
      grant usage on schema payments to anon;
      grant select on payments.bare to anon, authenticated, service_role`).simple();
    for (
      const [role, sub] of [["authenticated", ADA], ["authenticated", BOB], [
        "service_role",
        null,
      ]] as const
    ) {
      const [bare, shown] = [
        await as(role, sub, "select id from payments.bare"),
        await as(role, sub, `select id from payments.${view}`),
      ];
      assert.deepEqual(idsOf(bare), idsOf(shown), `${role} ${view}`);
    }
    for (const role of ["anon", "authenticated"]) {
      assert.deepEqual(await as(role, null, "select id from payments.bare"), []);
    }
    await admin.unsafe("drop view payments.bare; revoke usage on schema payments from anon")
      .simple();
  }
  // A function of the caller that tells what it is given, and is cheaper than any condition.
  notices.length = 0;
  const leak =
    `create or replace function pg_temp.leak(p_text text) returns boolean language plpgsql
      cost 0.0000001 as $$ begin raise notice 'saw %', p_text; return true; end $$;
      select id from payments.`;
  for (const view of ["payments", "instruments", "refunds", "disputes"]) {
    await as("authenticated", ADA, `${leak}${view} v where pg_temp.leak(v::text)`);
  }
  const saw = notices.filter((text) => text.startsWith("saw "));
  assert.equal(saw.length, own.length + 4);
  assert.ok(saw.every((text) => !text.includes(BOB) && !text.includes("private")), saw.join("\n"));
  // An error that depends on another row's value.
  const [bobs] = await admin`select id from pay.payments where customer_id = ${BOB}`;
  await as(
    "authenticated",
    ADA,
    `select id from payments.payments
      where 1 / (case when id = '${bobs!.id}' then 0 else 1 end) = 1`,
  );
}

const messagesOf = async ({ admin }: ExposedProject): Promise<Row[]> => [
  ...await admin`delete from realtime.messages returning topic, event, private, extension, payload`,
];

async function assertSent(project: ExposedProject) {
  const { pay, call, as, admin, notices } = project;
  await messagesOf(project);
  const paid = await pay(customer(ADA));
  const message = (status: string, sequence: number) => ({
    topic: `payments:${ADA}`,
    event: "payment",
    private: true,
    extension: "broadcast",
    payload: { object: "payment", id: paid.id, status, sequence },
  });
  assert.deepEqual(await messagesOf(project), [message("completed", 2)]);
  await call(`api-v1-payments/v1/payments/${paid.id}/refund`, { amount: 1 });
  assert.deepEqual((await messagesOf(project)).at(-1), message("partially_refunded", 5));
  await pay();
  await pay(customer(ADA), "other");
  assert.deepEqual(await messagesOf(project), []);
  // Realtime asks with a message of the topic whether a user may join.
  for (const [sub, topic, rows] of [[ADA, ADA, 1], [BOB, ADA, 0], [ADA, `${ADA}x`, 0]] as const) {
    await admin`insert into realtime.messages (topic, extension) values ('x', 'broadcast')`;
    const seen = await as(
      "authenticated",
      sub,
      `set local realtime.topic = 'payments:${topic}';
        select extension from realtime.messages`,
    );
    assert.equal(seen.at(-1).length, rows, `${sub} ${topic}`);
    await assert.rejects(
      as(
        "authenticated",
        sub,
        `set local realtime.topic = 'payments:${topic}';
          insert into realtime.messages (topic, extension) values ('x', 'broadcast')`,
      ),
      { code: "42501" },
    );
    await messagesOf(project);
  }
  // A Realtime that fails or is gone fails no payment.
  for (const broken of ["table realtime.messages", "function realtime.send"]) {
    await admin.unsafe(`alter ${broken} rename to gone`);
    notices.length = 0;
    assert.equal((await pay(customer(ADA))).status, "completed");
    await admin.unsafe(
      `alter ${broken.replace(/\.\w+$/, ".gone")} rename to ${broken.split(".")[1]}`,
    );
  }
  assert.deepEqual(await messagesOf(project), []);
}

async function assertBeside({ deployer, pay }: ExposedProject) {
  let is_over = false;
  // `pay` throws if the service does not create the payment.
  const payers = Array.from({ length: 4 }, async () => {
    let paid = 0;
    for (; !is_over; paid++) await pay(customer(ADA));
    return paid;
  });
  for (let i = 0; i < 5; i++) await deployer.unsafe(EXPOSE);
  is_over = true;
  for (const paid of await Promise.all(payers)) assert.ok(paid > 0);
}

async function assertFollows(project: ExposedProject) {
  const { pay, call, as } = project;
  await call("api-v1-sandbox/reset", {});
  const read = async (role: string) =>
    idsOf(await as(role, ADA, "select id from payments.payments"));
  for (const role of ["service_role", "authenticated"]) assert.deepEqual(await read(role), []);
  await messagesOf(project);
  const { id } = await pay(customer(ADA));
  for (const role of ["service_role", "authenticated"]) assert.deepEqual(await read(role), [id]);
  assert.equal((await messagesOf(project)).length, 1);
}

async function assertReplaced(project: ExposedProject) {
  const { deployer, as, pay } = project;
  const [row] = await deployer`select pay.expose('acme', 'live') as id`;
  assert.equal(row!.id, ENVIRONMENTS.live.id);
  for (const role of ["service_role", "authenticated"]) {
    const seen = await as(role, ADA, "select id from payments.payments");
    assert.deepEqual(idsOf(seen), [`pay_${"z".repeat(26)}`]);
  }
  await messagesOf(project);
  await pay(customer(ADA));
  assert.deepEqual(await messagesOf(project), []);
}

Deno.test(`the views read only their rows of ${ROWS} payments`, async (t) => {
  await using project = await openExposedProject(17);
  const { admin, deployer } = project;
  const suffix = (n: string) => `lpad((${n})::text, 26, '0')`;
  const uuid = (n: string) => `'00000000-0000-4000-8000-' || lpad((${n})::text, 12, '0')`;
  const body = JSON.stringify({ object: "payment", livemode: false, text: "x".repeat(600) });
  // A third of the payments has a customer with an id. Each of those has about 100.
  await admin.unsafe(`insert into pay.payments (environment_id, id, status, amount_minor,
        amount_refunded, currency, method_kind, customer_id, sequence, created_at, updated_at, body)
      select case when n % 10 = 0 then '${ENVIRONMENTS.other.id}' else '${ENVIRONMENTS.test.id}' end,
        'pay_' || ${suffix("n")}, 'completed', 1, 0, 'EUR', 'card',
        case when n % 3 = 0 then ${
    uuid(`n % ${Math.ceil(ROWS / 300)}`)
  } end, 2, now(), now(), '${body}'
      from generate_series(1, ${ROWS}) n`);
  await admin.unsafe(
    `insert into pay.refunds (environment_id, id, payment_id, amount_minor, currency,
        created_at, body)
      select environment_id, replace(id, 'pay_', 're_'), id, 1, 'EUR', now(), '${body}'
      from pay.payments where id like '%0'`,
  );
  await admin`insert into pay.instruments (environment_id, id, status, customer_id, method_kind,
      usage, is_kept, payment_id, touched_at, sequence, created_at, updated_at)
    select environment_id, replace(id, 'pay_', 'ins_'), 'active', customer_id, 'card',
      'off_session', true, id, now(), 1, now(), now()
    from pay.payments where customer_id is not null`;
  await admin`vacuum analyze`;
  await deployer.unsafe(EXPOSE);
  const one = `'pay_${String(Math.floor(ROWS / 2) + 1).padStart(26, "0")}'`;
  const sub = `00000000-0000-4000-8000-${"3".padStart(12, "0")}`;
  /** Each statement reads a page of rows, so it may not depend on the number of payments. */
  for (
    const [role, statement, max_pages] of [
      // The user has about a hundred payments, of which all are read, and ten refunds.
      ["authenticated", "select * from payments.payments order by id desc limit 20", 150],
      ["authenticated", "select * from payments.payments order by created_at desc", 150],
      ["authenticated", `select * from payments.payments where id = ${one}`, 20],
      ["authenticated", "select * from payments.instruments order by id desc limit 20", 150],
      ["service_role", "select * from payments.instruments order by id desc limit 20", 40],
      ["authenticated", "select * from payments.refunds order by id desc limit 20", 600],
      ["authenticated", "select * from payments.disputes", 600],
      ["authenticated", "select count(*) from payments.payments", 150],
      ["service_role", "select * from payments.payments order by id desc limit 20", 40],
      ["service_role", `select * from payments.payments where id = ${one}`, 20],
      ["service_role", `select * from payments.refunds where payment_id = ${one}`, 20],
      ["service_role", "select * from payments.refunds order by id desc limit 20", 40],
    ] as const
  ) {
    await t.step(`${role}: ${statement}`, async () => {
      const plan = await project.as(
        role,
        sub,
        `explain (analyze, buffers, format json) ${statement}`,
      );
      const [{ Plan, ...times }] = plan[0]["QUERY PLAN"];
      const pages = Plan["Shared Hit Blocks"] + Plan["Shared Read Blocks"];
      console.log(`${times["Execution Time"].toFixed(1)} ms, ${pages} pages`);
      assert.ok(pages <= max_pages, JSON.stringify(plan[0]["QUERY PLAN"], null, 1));
    });
  }
});
