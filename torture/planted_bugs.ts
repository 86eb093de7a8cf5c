/**
 * `deno task planted-bugs`: puts known bugs into a copy of the project, one at a time, and checks that
 * a named test notices each. `--check` only checks that the file of each bug has the replaced text
 * exactly once. `--only <part of a name>` selects bugs.
 *
 * Exit codes: 0 if every bug was noticed, 1 if one was not or cannot be planted.
 */

import { parseArgs } from "node:util";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { PlantedBug } from "./planted_bug.ts";
import { CHAIN_BUGS } from "./chain_bugs.ts";
import { SANDBOX_BUGS } from "./sandbox_bugs.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MIGRATIONS = "supabase/migrations";
const SCHEMAS = "supabase/schemas";
/** A test that runs longer has not noticed the bug. */
const TEST_DEADLINE_MS = 600_000;

/** SQL for the bug of a late outbox: a separate statement after the commit. */
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

/** The bugs. If you change a replaced text in the code, change it here too. */
const BUGS: PlantedBug[] = [
  {
    name: "a unique index is dropped",
    edits: [{
      file: `${MIGRATIONS}/20261124000200_keys.sql`,
      find: "create unique index environments_one_live_per_account",
      replace: "create index environments_one_live_per_account",
    }],
    noticed_by: "tests/database/constraints_test.ts",
  },
  {
    name: "a refund of the exact rest is refused: >= for >",
    edits: [{
      file: "shared/domain/payments/refund_payment.ts",
      find: "amount_minor > rest)",
      replace: "amount_minor >= rest)",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
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
    name: "a refund that has failed is completed",
    edits: [{
      file: "shared/domain/payments/refund_payment.ts",
      find: 'refund.status === "pending"\n    ? ["completed", "failed"]',
      replace: 'refund.status !== "completed"\n    ? ["completed", "failed"]',
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a payment is captured twice",
    edits: [{
      file: "shared/domain/payments/move_payment.ts",
      find: 'if (payment.status !== "authorized") {',
      replace: 'if (payment.status !== "authorized" && payment.status !== "completed") {',
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a capture takes more than was authorized, with no constraint to stop it",
    edits: [
      {
        file: "shared/domain/payments/move_payment.ts",
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
      file: "shared/domain/payments/settlement.ts",
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
        file: `${SCHEMAS}/commit_rows.sql`,
        find: "from event e\n    join pay.webhook_endpoints t\n      on t.environment_id",
        replace:
          "from event e\n    join pay.webhook_endpoints t\n      on false and t.environment_id",
      },
      {
        file: `${SCHEMAS}/committing.sql`,
        find: "create or replace function pay.commit(",
        replace: `${LATE_OUTBOX}\ncreate or replace function pay.commit(`,
      },
      {
        file: "shared/store/store.ts",
        find:
          "database.attempt<CommitRow>(COMMIT, commitParameters(list, is_alone ? null : HURRIED_MS))",
        replace:
          `database.attempt<CommitRow>(COMMIT, commitParameters(list, is_alone ? null : HURRIED_MS))
        .then(async (rows) => {
          await new Promise((resolve) => setTimeout(resolve, 50));
          await database.query("select pay.late_outbox()", []);
          return rows;
        })`,
      },
    ],
    noticed_by: "tests/webhook/kill_test.ts",
  },
  {
    name: "a signature is verified over parsed JSON",
    edits: [{
      file: "client/webhook_signature.ts",
      find: "signedContent(timestamp, rawBody)",
      replace: `signedContent(timestamp, JSON.stringify(JSON.parse(
        typeof rawBody === "string" ? rawBody : new TextDecoder().decode(rawBody))))`,
    }],
    noticed_by: "tests/client/webhook_signature_test.ts",
  },
  {
    name: "a delivery is signed over parsed JSON",
    edits: [{
      file: "shared/core/webhook_signature.ts",
      find: "const { event_id, body, secrets, timestamp_seconds: timestamp } = delivery;",
      replace: `const { event_id, secrets, timestamp_seconds: timestamp } = delivery;
  const body = JSON.stringify(JSON.parse(delivery.body));`,
    }],
    noticed_by: "tests/core/webhook_signature_test.ts",
  },
  {
    name: "a signature is as old as its event",
    edits: [{
      file: "shared/domain/webhooks/attempt.ts",
      find: "timestamp_seconds: Math.floor(signed_ms / 1000)",
      replace: "timestamp_seconds: Math.floor(Date.parse(JSON.parse(body).created_at) / 1000)",
    }],
    noticed_by: "torture --promise r8",
  },
  {
    name: "live run: a retry has a new idempotency key",
    edits: [{
      file: "shared/connectors/stripe/stripe_requests.ts",
      find: "key: call.id }",
      replace: "key: call.id + crypto.randomUUID() }",
    }],
    noticed_by: "torture --live --operations 150",
  },
  {
    name: "live run: a call is sent before its claim",
    edits: [
      {
        file: "shared/domain/live/live_payments.ts",
        find: "const reply = await changes.create(asked, () => (claim = decide()).change);",
        replace: `claim = decide();
      const early = claim as Claim;
      if (known_account) await runner.run(known_account, {
        ...early, id: early.change.calls[0]!.id, environment_id: known_account.environment_id,
        currency: early.subject.currency, provider_reference: null, attempt: 1, may_repeat: true,
        instrument: early.token === null ? null : { token: early.token },
        created_at_ms: Date.now(), request_id: asked.context.request_id,
      }).catch(() => {});
      const reply = await changes.create(asked, () => early.change);`,
      },
      {
        file: "shared/domain/live/live_payments.ts",
        find: "const { call_id, account, provider_reference, created_at, deposit } = reply.call;",
        replace: `const { call_id, account, provider_reference, created_at, deposit } = reply.call;
    known_account = account;`,
      },
      {
        file: "shared/domain/live/live_payments.ts",
        find: "/** A change that claims a call, and the parts of the call. */",
        replace: `let known_account: Parameters<CallRunner["run"]>[0] | null = null;

/** A change that claims a call, and the parts of the call. */`,
      },
    ],
    noticed_by: "torture --live --operations 150",
  },
  {
    name: "live run: a fact that comes twice is applied twice",
    edits: [{
      file: "shared/connectors/stripe/stripe_facts.ts",
      find: "reference: `${draft.of.id}:${draft.reference_state}`,",
      replace: "reference: `${draft.of.id}:${draft.reference_state}${crypto.randomUUID()}`,",
    }],
    noticed_by: "torture --live --operations 150",
  },
  {
    name: "live: a load ignores that the key of a call is under way",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "(i.status = 102 and a.kind = 'webhook_endpoints'",
      replace: "(i.status = 102",
    }],
    noticed_by: "tests/live/refund_twins_test.ts",
  },
  {
    name: "a policy is missing",
    edits: [{
      file: `${MIGRATIONS}/20261124001000_policies.sql`,
      find: " 'webhook_deliveries',\n",
      replace: "\n",
    }],
    noticed_by: "tests/webhook/delivery_test.ts",
  },
  {
    name: "a policy opens to everyone",
    edits: [{
      file: `${MIGRATIONS}/20261124001000_policies.sql`,
      find: "to pay_owner using (environment_id %s or %s)',\n      v_table || '_of_environment'",
      replace:
        "to pay_owner using (environment_id %s or true or %s)',\n      v_table || '_of_environment'",
    }],
    noticed_by: "tests/database/row_level_security_test.ts",
  },
  {
    name: "a lease never ends",
    edits: [{
      file: "shared/domain/webhooks/relay.ts",
      find: "leased_until_ms: at_ms + lease_ms",
      replace: "leased_until_ms: at_ms + 1e11",
    }],
    noticed_by: "tests/webhook/kill_test.ts",
  },
  {
    name: "a purge ignores the 24 hours",
    edits: [{
      file: `${SCHEMAS}/retention.sql`,
      find: "and o.created_at <= p_at - pay.idempotency_retention()",
      replace: "and o.created_at <= p_at",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a key outlives its day by a moment: >= for >",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "when i.created_at <= a.kept_since then 'expired'",
      replace: "when i.created_at < a.kept_since then 'expired'",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "a twin does not wait",
    edits: [{
      file: `${SCHEMAS}/committing.sql`,
      find: "set plan_cache_mode = force_generic_plan set lock_timeout = '3s'",
      replace: "set plan_cache_mode = force_generic_plan set lock_timeout = '1ms'",
    }],
    noticed_by: "tests/http/idempotency_twins_test.ts",
  },
  {
    name: "a revoked key opens its environment",
    edits: [{
      file: `${SCHEMAS}/admission.sql`,
      find: "    where s.hash = a.hash and s.revoked_at is null and (s.expires_at",
      replace: "    where s.hash = a.hash and (s.expires_at",
    }],
    noticed_by: "tests/database/admission_test.ts",
  },
  {
    name: "an advance waits for nothing that is due",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock_steps.sql`,
      find: "elsif pay.has_due_work(p_environment_id, p_sends) then",
      replace: "elsif false then",
    }],
    noticed_by: "tests/http/clock_test.ts",
  },
  {
    name: "a signature has the time of the sandbox's clock",
    edits: [{
      file: "shared/domain/webhooks/relay.ts",
      find: "signed_ms: real_ms,",
      replace: "signed_ms: at_ms,",
    }],
    noticed_by: "tests/webhook/sandbox_clock_test.ts",
  },
  {
    name: "a request is decided by an older clock",
    edits: [{
      file: `${SCHEMAS}/admission.sql`,
      find: "        when a.version is distinct from k.version then 'outdated'\n",
      replace: "",
    }],
    noticed_by: "tests/http/sandbox_settings_test.ts",
  },
  {
    name: "a twin is let through",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "where not exists (\n    select from claimed k",
      replace: "where false and not exists (\n    select from claimed k",
    }],
    noticed_by: "tests/races/twins_test.ts",
  },
  {
    name: "a replay has new bytes",
    edits: [{
      file: `${SCHEMAS}/idempotency.sql`,
      find: "p_found[v_kept.n].body := v_kept.body;",
      replace: "p_found[v_kept.n].body := v_kept.body || ' ';",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "deliveries of a payment do not wait for each other",
    edits: [{
      file: "shared/domain/webhooks/relay.ts",
      find: "        goes_on = await this.#attempt(delivery);",
      replace: "        this.#attempt(delivery).catch(on_error);",
    }],
    noticed_by: "tests/webhook/delivery_order_test.ts",
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
    name: "the ledger takes a movement within one account",
    edits: [{
      file: `${MIGRATIONS}/20261124000400_ledger.sql`,
      find: "check (debit_account <> credit_account)",
      replace: "check (debit_account = debit_account)",
    }],
    noticed_by: "tests/database/constraints_test.ts",
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
    name: "the ledger repeats the entry that a page begins after",
    edits: [{
      file: `${SCHEMAS}/ledger.sql`,
      find: "where entry.id < v_before",
      replace: "where entry.id <= v_before",
    }],
    noticed_by: "tests/http/ledger_test.ts",
  },
  {
    name: "transfers out of one balance do not wait for each other",
    edits: [{
      file: `${SCHEMAS}/committing.sql`,
      find: "      perform pg_advisory_xact_lock(hashtextextended(v_fund, 0));\n",
      replace: "",
    }],
    noticed_by: "tests/http/transfers_race_test.ts",
  },
  {
    name: "a frozen database is not noticed",
    edits: [{
      file: "shared/store/database_health.ts",
      find: "this.#is_unavailable = !await isAnswered(this.#probe.ask(), this.#deadline_ms);",
      replace: "this.#is_unavailable = false;",
    }],
    noticed_by: "tests/http/database_unavailable_test.ts",
  },
  {
    name: "live: a retry has a new idempotency key",
    edits: [{
      file: "shared/connectors/stripe/stripe_requests.ts",
      find: "key: call.id }",
      replace: "key: call.id + crypto.randomUUID() }",
    }],
    noticed_by: "tests/live/unknown_answers_test.ts",
  },
  {
    name: "live: a fact is applied twice",
    edits: [{
      file: `${SCHEMAS}/provider_records.sql`,
      find: "a.outcome = 'applied' and l.outcome in ('applied', 'ignored') as is_known",
      replace: "false as is_known",
    }],
    noticed_by: "tests/database/provider_records_test.ts",
  },
  {
    name: "live: a repeated fact is a new one",
    edits: [{
      file: "shared/connectors/stripe/stripe_facts.ts",
      find: "reference: `${draft.of.id}:${draft.reference_state}`,",
      replace: "reference: `${draft.of.id}:${draft.reference_state}${crypto.randomUUID()}`,",
    }],
    noticed_by: "tests/live/notifications_test.ts",
  },
  {
    name: "live: a late fact overwrites a final status",
    edits: [{
      file: "shared/domain/live/apply_fact.ts",
      find: 'if (!canBecome(payment, "cancelled")) return { outcome: "ignored" };',
      replace: "",
    }],
    noticed_by: "tests/domain/live_facts_test.ts",
  },
  {
    name: "live: an amount is not compared",
    edits: [{
      file: "shared/domain/live/fact_effect.ts",
      find: "if (fact.amount_minor === expected_minor) return null;",
      replace: "if (fact.amount_minor !== expected_minor || true) return null;",
    }],
    noticed_by: "tests/live/notifications_test.ts",
  },
  {
    name: "live: the money of a fact that contradicts the books is not booked",
    edits: [{
      file: "shared/domain/live/unmatched.ts",
      find: "return is_ours && movedAtProvider(fact) !== 0",
      replace: "return false && is_ours",
    }],
    noticed_by: "tests/live/notifications_test.ts",
  },
  {
    name: "live: a refund that fails later leaves the ledger as it is",
    edits: [{
      file: "shared/domain/payments/refund_payment.ts",
      find: '  change.move("refund_reversal", refund.amount_minor, refund.id);\n',
      replace: "",
    }],
    noticed_by: "tests/live/provider_money_test.ts",
  },
  {
    name: "live: a fee of the account is not read",
    edits: [{
      file: "shared/connectors/stripe/stripe_movements.ts",
      find: '  fee: "account_fee",',
      replace: "",
    }],
    noticed_by: "tests/live/provider_money_test.ts",
  },
  {
    name: "live: an unsigned notification counts",
    edits: [{
      file: "shared/connectors/stripe/stripe_signature.ts",
      find: "if (!signed) throw",
      replace: "if (!signed && keys.length === 0) throw",
    }],
    noticed_by: "tests/live/notifications_test.ts",
  },
  {
    name: "live: a call is sent before its claim",
    edits: [
      {
        file: "shared/domain/live/live_payments.ts",
        find: "const reply = await changes.create(asked, () => (claim = decide()).change);",
        replace: `claim = decide();
      const early = claim as Claim;
      if (known_account) await runner.run(known_account, {
        ...early, id: early.change.calls[0]!.id, environment_id: known_account.environment_id,
        currency: early.subject.currency, provider_reference: null, attempt: 1, may_repeat: true,
        instrument: early.token === null ? null : { token: early.token },
        created_at_ms: Date.now(), request_id: asked.context.request_id,
      }).catch(() => {});
      const reply = await changes.create(asked, () => early.change);`,
      },
      {
        file: "shared/domain/live/live_payments.ts",
        find: "const { call_id, account, provider_reference, created_at, deposit } = reply.call;",
        replace: `const { call_id, account, provider_reference, created_at, deposit } = reply.call;
    known_account = account;`,
      },
      {
        file: "shared/domain/live/live_payments.ts",
        find: "/** A change that claims a call, and the parts of the call. */",
        replace: `let known_account: Parameters<CallRunner["run"]>[0] | null = null;

/** A change that claims a call, and the parts of the call. */`,
      },
    ],
    noticed_by: "tests/live/twins_test.ts",
  },
  {
    name: "live: a claim of a capture writes the payment with an empty body",
    edits: [{
      file: "shared/domain/changes/change_builder.ts",
      find: "const changed = this.#events.length > 0 ? subject.object : null;",
      replace: "const changed = subject.object;",
    }],
    noticed_by: "tests/live/unknown_answers_test.ts",
  },
  {
    name: "live: an account settles the payment of another account",
    edits: [{
      file: `${SCHEMAS}/provider_facts.sql`,
      find: "and c.account_id = p_account_id\n      and (c.provider_reference is null",
      replace: "and (c.provider_reference is null",
    }],
    noticed_by: "tests/live/notifications_test.ts",
  },
  {
    name: "live: facts that came before the provider's id are forgotten",
    edits: [{
      file: `${SCHEMAS}/provider_calls.sql`,
      find: "perform pay.reopen_facts(p_calls);",
      replace: "null;",
    }],
    noticed_by: "tests/live/notifications_test.ts",
  },
  ...SANDBOX_BUGS,
  ...CHAIN_BUGS,
];

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { check: { type: "boolean" }, only: { type: "string", default: "" } },
  });
  const bugs = BUGS.filter(({ name }) => name.includes(values.only));
  const unplantable = (await Promise.all(bugs.map(findTexts))).flat();
  for (const fault of unplantable) console.error(fault);
  if (unplantable.length > 0 || bugs.length === 0) return 1;
  if (values.check) {
    console.log(`${bugs.length} bugs can be planted`);
    return 0;
  }
  const copy = await copyProject();
  try {
    let missed = 0;
    for (const noticed_by of new Set(bugs.map(({ noticed_by }) => noticed_by))) {
      if (await fails(copy, noticed_by) !== false) {
        console.error(`${noticed_by} fails without a bug, so it cannot notice one`);
        return 1;
      }
    }
    for (const bug of bugs) {
      const started = performance.now();
      const restore = await plant(copy, bug);
      const verdict = await fails(copy, bug.noticed_by);
      await restore();
      const seconds = Math.round((performance.now() - started) / 1_000);
      if (verdict !== true) missed++;
      const word = verdict === true ? "noticed" : verdict === false ? "MISSED " : "UNCLEAR";
      console.log(`${word} ${bug.name}: ${bug.noticed_by} (${seconds} s)`);
    }
    console.log(`${bugs.length - missed} of ${bugs.length} planted bugs noticed`);
    return missed === 0 ? 0 : 1;
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

/** The reasons why a bug cannot be planted. */
async function findTexts({ name, edits }: PlantedBug): Promise<string[]> {
  const faults: string[] = [];
  for (const { file, find } of edits) {
    const text = await Deno.readTextFile(join(ROOT, file)).catch(() => "");
    const count = text.split(find).length - 1;
    if (count !== 1) {
      faults.push(`"${name}": ${file} has the text to replace ${count} times: "${find}"`);
    }
  }
  return faults;
}

/** Copies the files that git lists into a temporary folder. */
async function copyProject(): Promise<string> {
  const copy = await Deno.makeTempDir({ prefix: "payments-planted-" });
  await Deno.chmod(copy, 0o755);
  const listed = await new Deno.Command("git", {
    args: ["ls-files", "--cached", "--others", "--exclude-standard"],
    cwd: ROOT,
  }).output();
  if (!listed.success) throw new Error("git does not list the project's files");
  for (const file of new TextDecoder().decode(listed.stdout).split("\n")) {
    if (file === "" || !await Deno.stat(join(ROOT, file)).catch(() => null)) continue;
    await Deno.mkdir(dirname(join(copy, file)), { recursive: true });
    await Deno.copyFile(join(ROOT, file), join(copy, file));
  }
  return copy;
}

/** Plants a bug; the returned function removes it. */
async function plant(copy: string, { edits }: PlantedBug): Promise<() => Promise<void>> {
  const before = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const path = join(copy, file);
    const text = await Deno.readTextFile(path);
    if (!before.has(path)) before.set(path, text);
    await Deno.writeTextFile(path, text.split(find).join(replace));
  }
  return async () => {
    for (const [path, text] of before) await Deno.writeTextFile(path, text);
  };
}

/** Whether a test fails by its assertions; null if it failed before them. */
async function fails(copy: string, test: string): Promise<boolean | null> {
  const [name, ...rest] = test.split(" ");
  const args = name === "torture"
    ? ["run", "-A", "torture/torture.ts", "--seed", "1", ...rest]
    : ["run", "-A", "scripts/testing/test.ts", test];
  const child = new Deno.Command(Deno.execPath(), {
    args,
    cwd: copy,
    env: { NO_COLOR: "1", SEED: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const timer = setTimeout(() => child.kill("SIGTERM"), TEST_DEADLINE_MS);
  const { code, stdout, stderr } = await child.output();
  clearTimeout(timer);
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (code === 0) return false;
  const has_judged = name === "torture" ? /^BROKEN /m.test(text) : /^FAILED \| /m.test(text) &&
    !/error: (TS\d+|Type checking failed|Relative import)/.test(text);
  if (!has_judged) console.error(text.slice(-2_000));
  return has_judged ? true : null;
}
