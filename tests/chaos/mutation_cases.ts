/**
 * The mutations that `deno task mutations` makes in a copy of the project: those that only a run
 * with crashes, competing requests or random steps notices. A test with fixed steps needs no
 * mutation here: its author has seen it fail.
 */

/** A change of the code that breaks a promise. */
export interface Mutation {
  name: string;
  edits: { file: string; find: string; replace: string }[];
  /** The test file or the chaos run that must fail. */
  noticed_by: string;
}

const MIGRATIONS = "supabase/migrations";
const SCHEMAS = "supabase/schemas";

/** SQL for the mutation with a late outbox: a separate statement after the commit. */
const LATE_OUTBOX = `
create or replace function pay.late_outbox() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('pay.worker', 'on', true);
  insert into pay.webhook_deliveries (environment_id, id, event_id, event_type, endpoint_id,
    subject_id, sequence, status, next_attempt_at, created_at)
  select e.environment_id, 'whd_' || substr(md5(e.id || t.id), 1, 26), e.id, e.type, t.id,
    e.subject_id, e.sequence, 'pending', e.created_at, e.created_at
  from pay.events e join pay.webhook_endpoints t on t.environment_id = e.environment_id
  -- Not the newest: those are left to the requests that made them.
  where e.created_at between now() - interval '300 milliseconds' and now() - interval '40 milliseconds'
  on conflict do nothing;
end
$$;
grant execute on function pay.late_outbox() to pay_api;
`;

const MONEY = `${MIGRATIONS}/20261124000300_payments.sql`;
/** Removes the constraint that stops refunds of more than the captured amount. */
const NO_REFUND_LIMIT = {
  file: MONEY,
  find: "    and amount_refunded + amount_refunding <= amount_minor - amount_released\n",
  replace: "",
};

/** The mutations. If you change a replaced text in the code, change it here too. */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: "a refund of more than the rest goes through, with no constraint to stop it",
    edits: [
      {
        file: "shared/domain/payments/refund_payment.ts",
        find: "amount_minor > rest)",
        replace: "amount_minor > rest + 1)",
      },
      NO_REFUND_LIMIT,
      {
        file: MONEY,
        find: "then amount_refunded between 1 and amount_minor - amount_released - 1",
        replace: "then amount_refunded >= 1",
      },
    ],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a pending refund is not held, with no constraint to stop it",
    edits: [
      {
        file: "shared/domain/payments/lifecycle.ts",
        find:
          "return payment.amount_captured - payment.amount_refunded - payment.amount_refunding;",
        replace: "return payment.amount_captured - payment.amount_refunded;",
      },
      NO_REFUND_LIMIT,
    ],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a capture takes more than was authorized, with no constraint to stop it",
    edits: [
      {
        file: "shared/domain/payments/capture_and_cancel.ts",
        find: "if (amount_minor > payment.amount_minor) {",
        replace: "if (amount_minor > payment.amount_minor + 1) {",
      },
      {
        file: MONEY,
        find: "check (amount_released between 0 and amount_minor - 1)",
        replace: "check (amount_released < amount_minor)",
      },
    ],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a dispute that the merchant has won is booked twice",
    edits: [{
      file: "shared/domain/payments/payment_steps.ts",
      find: '  change.move("chargeback_reversal", amount_minor);\n',
      replace: `  change.move("chargeback_reversal", amount_minor);
  change.move("chargeback_reversal", amount_minor);\n`,
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "the outbox is written after the commit",
    edits: [
      {
        file: `${SCHEMAS}/events.sql`,
        find: "from event e\n    join pay.webhook_endpoints t\n      on t.environment_id",
        replace:
          "from event e\n    join pay.webhook_endpoints t\n      on false and t.environment_id",
      },
      {
        file: `${SCHEMAS}/commit.sql`,
        find: "create or replace function pay.commit(",
        replace: `${LATE_OUTBOX}\ncreate or replace function pay.commit(`,
      },
      {
        file: "shared/store/store.ts",
        find: "      cost.learn(list, rows);\n",
        replace: `      cost.learn(list, rows);
      await new Promise((resolve) => setTimeout(resolve, 50));
      await database.query("select pay.late_outbox()", []);
`,
      },
    ],
    noticed_by: "tests/webhook/kill_test.ts",
  },
  {
    name: "a signature is as old as its event",
    edits: [{
      file: "shared/domain/webhooks/attempt.ts",
      find: "timestamp_seconds: Math.floor(signed_ms / 1000)",
      replace: "timestamp_seconds: Math.floor(Date.parse(JSON.parse(body).created_at) / 1000)",
    }],
    noticed_by: "chaos --promise r8",
  },
  {
    name: "live run: a retry has a new idempotency key",
    edits: [{
      file: "shared/connectors/stripe/stripe_requests.ts",
      find: "key: operation.id }",
      replace: "key: operation.id + crypto.randomUUID() }",
    }],
    noticed_by: "chaos --live --operations 150",
  },
  {
    name: "live run: an operation is sent before its reservation",
    edits: [
      {
        file: "shared/domain/operations/operations.ts",
        find:
          "const reply = await this.#changes.create(\n        requested,\n        () => this.#decide(requested, begin(), decided),\n      );",
        replace: `const begun = begin();
      const early = await this.#decide(requested, begun, decided);
      if (known_account && early.operations[0]) {
        await this.#runner.run(known_account, {
          ...begun.operation,
          id: early.operations[0].id,
          environment_id: known_account.environment_id,
          attempts: 1,
        }).catch(() => {});
      }
      const reply = await this.#changes.create(requested, () => early);`,
      },
      {
        file: "shared/domain/operations/operations.ts",
        find: "const { account, ...row } = reply.operation;",
        replace: `const { account, ...row } = reply.operation;
    known_account = account;`,
      },
      {
        file: "shared/domain/operations/operations.ts",
        find: "/** Begins operations, and reserves them or decides them at once. */",
        replace: `let known_account: Parameters<OperationRunner["run"]>[0] | null = null;

/** Begins operations, and reserves them or decides them at once. */`,
      },
    ],
    noticed_by: "chaos --live --operations 150",
  },
  {
    name: "live run: a provider event that comes twice is applied twice",
    edits: [{
      file: "shared/connectors/stripe/stripe_provider_events.ts",
      find: "reference: `${draft.of.id}:${draft.reference_state}`,",
      replace: "reference: `${draft.of.id}:${draft.reference_state}${crypto.randomUUID()}`,",
    }],
    noticed_by: "chaos --live --operations 150",
  },
  {
    name: "a lease never ends",
    edits: [{
      file: "shared/domain/webhooks/dispatcher.ts",
      find: "leased_until_ms: at_ms + lease_ms",
      replace: "leased_until_ms: at_ms + 1e11",
    }],
    noticed_by: "tests/webhook/kill_test.ts",
  },
  {
    name: "an event shows the payment before it",
    edits: [{
      file: `${SCHEMAS}/events.sql`,
      find: "and v.sequence > p_sequence and",
      replace: "and v.sequence >= p_sequence and",
    }],
    noticed_by: "tests/database/event_texts_test.ts",
  },
  {
    name: "a purge ignores the 24 hours",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "and o.created_at <= p_at - pay_internal.idempotency_retention()",
      replace: "and o.created_at <= p_at",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a key outlives its day by a moment: >= for >",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "when i.created_at <= a.stored_since then 'expired'",
      replace: "when i.created_at < a.stored_since then 'expired'",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a duplicate does not wait",
    edits: [{
      file: `${SCHEMAS}/commit.sql`,
      find: "set plan_cache_mode = force_generic_plan set lock_timeout = '3s'",
      replace: "set plan_cache_mode = force_generic_plan set lock_timeout = '1ms'",
    }],
    noticed_by: "tests/http/idempotency_duplicates_test.ts",
  },
  {
    name: "a duplicate is let through",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "where not exists (\n    select from claimed k",
      replace: "where false and not exists (\n    select from claimed k",
    }],
    noticed_by: "tests/races/duplicates_test.ts",
  },
  {
    name: "a replay has new bytes",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "p_found[v_stored.n].body := pay_internal.response_body(v_stored.stored);",
      replace: "p_found[v_stored.n].body := pay_internal.response_body(v_stored.stored) || ' ';",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a refund leaves the ledger as it is",
    edits: [{
      file: "shared/domain/payments/refund_payment.ts",
      find: `  change.move("refund", amount_minor, refund.id);\n`,
      replace: "",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "the ledger adds one movement of a list to its total",
    edits: [{
      file: `${SCHEMAS}/ledger.sql`,
      find: "      sum(m.amount_minor) as amount_minor\n",
      replace: "      max(m.amount_minor) as amount_minor\n",
    }],
    noticed_by: "tests/races/ledger_totals_test.ts",
  },
  {
    name: "the ledger drops an amount when all stripes are taken",
    edits: [{
      file: `${SCHEMAS}/ledger.sql`,
      find:
        "      perform pg_advisory_xact_lock(hashtextextended(v_lock, v_stripe));\n      exit;\n",
      replace: "      return;\n",
    }],
    noticed_by: "tests/races/ledger_totals_test.ts",
  },
  {
    name: "the ledger keeps one generation of a total",
    edits: [{
      file: `${SCHEMAS}/ledger.sql`,
      find: "else t.generation + 1 end",
      replace: "else t.generation end",
    }],
    noticed_by: "tests/races/ledger_totals_test.ts",
  },
  {
    name: "transfers out of one balance do not wait for each other",
    edits: [{
      file: `${SCHEMAS}/transfers.sql`,
      find: "      perform pg_advisory_xact_lock(hashtextextended(v_fund, 0));\n",
      replace: "",
    }],
    noticed_by: "tests/http/transfers_race_test.ts",
  },
  {
    name: "dispute: evidence does not count at the deadline",
    edits: [{
      file: "shared/domain/operations/decide_result.ts",
      find: 'left = status === "needs_response" ? null : status;',
      replace: 'left = status === "needs_response" || status === "under_review" ? null : status;',
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "inbox: two that fill it do not wait for each other",
    edits: [{
      file: `${SCHEMAS}/webhook_inbox.sql`,
      find: "t.delivery = 'inbox'\n  for update;\n",
      replace: "t.delivery = 'inbox';\n",
    }],
    noticed_by: "chaos --promise r15",
  },
  {
    name: "inbox: a page acknowledges itself",
    edits: [{
      file: `${SCHEMAS}/webhook_inbox.sql`,
      find: "    v_access.body := pay_internal.inbox_page(\n",
      replace: `    perform pay_internal.acknowledge_inbox(v_access.environment_id, p_id,
      v_endpoint.inbox_acknowledged, v_endpoint.inbox_position);
    v_access.body := pay_internal.inbox_page(\n`,
    }],
    noticed_by: "chaos --promise r15",
  },
  {
    name: "fault: a lost response leaves its request undone",
    edits: [{
      file: "shared/sandbox/request_faults.ts",
      find:
        'if (fault === "server_error_after" || fault === "connection_lost_after") await done(decide);',
      replace: 'if (fault === "connection_lost_after") await done(decide);',
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "clock: an advance is counted twice after a retry",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock.sql`,
      find: "  v_access := pay_internal.claim_one(p_request, v_access);\n",
      replace: "",
    }],
    noticed_by: "chaos --promise r15",
  },
  {
    name: "clock: a command forgets the advance that is not complete",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock.sql`,
      find: "pay_internal.clock_target(p_command, p_now, p_before.target_at)",
      replace: "pay_internal.clock_target(p_command, p_now, null)",
    }],
    noticed_by: "tests/races/clock_advances_test.ts",
  },
  {
    name: "fault: competing requests count it without its row lock",
    edits: [{
      file: `${SCHEMAS}/sandbox_faults.sql`,
      find: "  order by fault.id limit 1 for update;\n",
      replace: "  order by f.id limit 1;\n",
    }],
    noticed_by: "tests/faults/request_faults_test.ts",
  },
  {
    name: "a log entry outlives its sandbox",
    edits: [{
      file: `${SCHEMAS}/sandbox_requests.sql`,
      find: "      for share of e skip locked\n",
      replace: "",
    }],
    noticed_by: "tests/http/request_log_test.ts",
  },
  {
    name: "chain: two workers add to one sum of final transfers",
    edits: [{
      file: `${SCHEMAS}/chain_deposits.sql`,
      find: "<> pay_internal.final_minor(f.environment_id, r.payment_id)",
      replace: "<> r.expects_final_minor",
    }],
    noticed_by: "tests/live/deposits_test.ts",
  },
  {
    name: "bank: an entry is booked again with each kind of file",
    edits: [{
      file: "shared/connectors/bank/read_entry.ts",
      find: "identity: identityOf({\n        account,\n",
      replace: "identity: identityOf({\n        account: account + kind,\n",
    }],
    noticed_by: "chaos --promise bank",
  },
  {
    name: "bank: a killed command leaves a half of a file",
    edits: [
      {
        file: "apps/operator/bank.ts",
        find:
          "await sql.begin(async (transaction) => {\n    const store = storeOf(transaction);\n" +
          "    const known",
        replace: "await Promise.resolve().then(async () => {\n    const store = storeOf(sql);\n" +
          "    const known",
      },
      {
        file: `${SCHEMAS}/bank_files.sql`,
        find: "    select f.result from pay.bank_files f\n",
        replace: `    select coalesce(f.result, '{"entries": 0, "details": 0, "warnings": []}')
    from pay.bank_files f\n`,
      },
    ],
    noticed_by: "chaos --promise bank",
  },
  {
    name: "bank: of two exports at once, both have an order",
    edits: [
      {
        file: `${SCHEMAS}/bank_orders.sql`,
        find: "and b.owner_id = o.id and b.state = 'waiting';\n  get diagnostics",
        replace: "and b.owner_id = o.id;\n  get diagnostics",
      },
    ],
    noticed_by: "chaos --promise bank",
  },
  {
    name: "bank: a payee that does not match is taken as a match",
    edits: [
      {
        file: "shared/connectors/bank/read_status.ts",
        find: '["RVNM", "no_match"]',
        replace: '["RVNM", "match"]',
      },
    ],
    noticed_by: "tests/live/bank_orders_test.ts",
  },
  {
    name: "bank: a returned collection is booked without its payment",
    edits: [{
      file: "shared/connectors/bank/booked_entries.ts",
      find: ': { op: "authorize", state: "returned", provider_reference, ...back };',
      replace: ": null;",
    }],
    noticed_by: "chaos --promise bank",
  },
];
