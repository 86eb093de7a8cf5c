/** Known bugs of the features of sandboxes: disputes, inboxes, faults, clocks and seeds. */

import type { PlantedBug } from "./planted_bug.ts";

const SCHEMAS = "supabase/schemas";

/** The bugs. If you change a replaced text in the code, change it here too. */
export const SANDBOX_BUGS: readonly PlantedBug[] = [
  {
    name: "dispute: late evidence counts",
    edits: [{
      file: "shared/domain/payments/dispute_payment.ts",
      find: "if (evidence_due_by !== null && at_ms > Date.parse(evidence_due_by)) {",
      replace: "if (evidence_due_by !== null && at_ms > Infinity) {",
    }],
    noticed_by: "tests/http/disputes_test.ts",
  },
  {
    name: "dispute: a saved text decides it",
    edits: [{
      file: "shared/domain/payments/dispute_payment.ts",
      find: "const end = submit ? DECISIVE.get(text.trim()) : undefined;",
      replace: "const end = DECISIVE.get(text.trim());",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "dispute: one that is lost is accepted again",
    edits: [{
      file: "shared/domain/payments/dispute_payment.ts",
      find: '  checkOpen(dispute, "accept the dispute");\n',
      replace: "",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "dispute: nobody loses it after 7 days",
    edits: [{
      file: "shared/domain/live/decide_result.ts",
      find: 'left = status === "needs_response" ? null : status;',
      replace: "left = status;",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "dispute: evidence does not count at the deadline",
    edits: [{
      file: "shared/domain/live/decide_result.ts",
      find: 'left = status === "needs_response" ? null : status;',
      replace: 'left = status === "needs_response" || status === "under_review" ? null : status;',
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "inbox: two that fill it do not wait for each other",
    edits: [{
      file: `${SCHEMAS}/inbox.sql`,
      find: "t.delivery = 'inbox'\n  for update;\n",
      replace: "t.delivery = 'inbox';\n",
    }],
    noticed_by: "torture --promise r15",
  },
  {
    name: "inbox: a page acknowledges itself",
    edits: [{
      file: `${SCHEMAS}/inbox.sql`,
      find: "    v_access.body := pay.inbox_page(\n",
      replace: `    perform pay.acknowledge_inbox(v_access.environment_id, p_id,
      v_endpoint.inbox_acknowledged, v_endpoint.inbox_position);
    v_access.body := pay.inbox_page(\n`,
    }],
    noticed_by: "torture --promise r15",
  },
  {
    name: "inbox: deliveries are signed with the time of their event",
    edits: [{
      file: "shared/domain/webhooks/inboxes.ts",
      find: "deliveryHeaders(delivered, real_ms)",
      replace: "deliveryHeaders(delivered, Date.parse(JSON.parse(body).created_at))",
    }],
    noticed_by: "tests/webhook/seeded_deliveries_test.ts",
  },
  {
    name: "inbox: a delivery does not wait for an earlier one of its payment",
    edits: [{
      file: `${SCHEMAS}/inbox.sql`,
      find: "order by c.due_at, c.subject_id, c.sequence, c.id) as position",
      replace: "order by c.due_at, c.subject_id, c.sequence desc, c.id) as position",
    }],
    noticed_by: "tests/webhook/inbox_test.ts",
  },
  {
    name: "fault: competing requests count it without its row lock",
    edits: [{
      file: `${SCHEMAS}/faults.sql`,
      find: "  order by f.id limit 1 for update;\n",
      replace: "  order by f.id limit 1;\n",
    }],
    noticed_by: "tests/faults/request_faults_test.ts",
  },
  {
    name: "fault: one of the provider that is used up decides a payment",
    edits: [{
      file: `${SCHEMAS}/faults.sql`,
      find: "    where l.id is null or a.place > l.times_left\n",
      replace: "    where false\n",
    }],
    noticed_by: "tests/faults/provider_faults_test.ts",
  },
  {
    name: "fault: a refused request names one that it has not used",
    edits: [{
      file: "shared/domain/providers/provider_fault.ts",
      find: "if (this.#fault === null || reply.fault_id !== this.#fault.id) return reply;",
      replace: "if (this.#fault === null || reply.replayed) return reply;",
    }],
    noticed_by: "tests/faults/provider_faults_test.ts",
  },
  {
    name: "fault: a delivery has its fault at every turn",
    edits: [{
      file: `${SCHEMAS}/relay_faults.sql`,
      find: "where not c.is_lost and d.fault_attempt is distinct from d.attempt_count + 1\n",
      replace: "where not c.is_lost\n",
    }],
    noticed_by: "tests/faults/delivery_faults_test.ts",
  },
  {
    name: "fault: a delayed delivery is in its inbox at once",
    edits: [{
      file: `${SCHEMAS}/inbox.sql`,
      find: "      and (d.next_attempt_at <= p_at or not pay.is_held_back(d, p_at))\n",
      replace: "",
    }],
    noticed_by: "tests/faults/inbox_faults_test.ts",
  },
  {
    name: "fault: those behind a delayed delivery of an inbox stop an advance",
    edits: [{
      file: `${SCHEMAS}/inbox.sql`,
      find: "    perform pay.put_off_behind_held(p_environment_id, p_endpoint_id, v_at);\n",
      replace: "",
    }],
    noticed_by: "tests/faults/inbox_faults_test.ts",
  },
  {
    name: "fault: deliveries to inboxes have none",
    edits: [{
      file: `${SCHEMAS}/inbox.sql`,
      find:
        "    v_checked := pay.give_inbox_faults(p_environment_id, p_endpoint_id, p_most, v_at);\n",
      replace: "    null;\n",
    }],
    noticed_by: "tests/faults/inbox_faults_test.ts",
  },
  {
    name: "fault: a request of another path matches",
    edits: [{
      file: `${SCHEMAS}/faults.sql`,
      find: "where not coalesce(p_thing -> w.key @> w.value, false)",
      replace: "where w.key <> 'path' and not coalesce(p_thing -> w.key @> w.value, false)",
    }],
    noticed_by: "tests/model/model_test.ts",
  },
  {
    name: "fault: a lost answer leaves its request undone",
    edits: [{
      file: "shared/http/request_faults.ts",
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
      find: "  v_access := pay.claim_one(p_request, v_access);\n",
      replace: "",
    }],
    noticed_by: "torture --promise r15",
  },
  {
    name: "clock: payments end at the target and not at their own times",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock_steps.sql`,
      find: `greatest(p_clock.frozen_at, pay.last_due(
      p_clock.environment_id, v_next, p_clock.target_at, p_sends))
`,
      replace: "p_clock.target_at\n",
    }],
    noticed_by: "tests/webhook/sandbox_clock_test.ts",
  },
  {
    name: "clock: a retry gets the answer of the middle of an advance that is over",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock_steps.sql`,
      find: "  if v_has_arrived then\n",
      replace: "  if false then\n",
    }],
    noticed_by: "tests/webhook/sandbox_clock_test.ts",
  },
  {
    name: "clock: a command forgets the advance that is not complete",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock.sql`,
      find: "pay.clock_target(p_command, p_now, p_before.target_at)",
      replace: "pay.clock_target(p_command, p_now, null)",
    }],
    noticed_by: "tests/races/clock_advances_test.ts",
  },
  {
    name: "clock: an answer is complete at the target of another request",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock_steps.sql`,
      find: "  elsif v_target <= v_clock.frozen_at and v_target < v_clock.target_at then\n",
      replace: "  elsif v_target < v_clock.target_at then\n",
    }],
    noticed_by: "tests/webhook/pending_advances_test.ts",
  },
  {
    name: "clock: it goes back by a millisecond when it runs again",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock_steps.sql`,
      find: "      ceil(extract(epoch",
      replace: "      round(extract(epoch",
    }],
    noticed_by: "tests/webhook/pending_advances_test.ts",
  },
  {
    name: "clock: an advance does not count what inboxes get",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock.sql`,
      find: "  if v_begun is null then\n",
      replace: "  if true then\n",
    }],
    noticed_by: "tests/webhook/pending_advances_test.ts",
  },
  {
    name: "clock: idempotency keys live by the real time",
    edits: [{
      file: `${SCHEMAS}/sandbox_clock.sql`,
      find:
        "  set created_at = greatest(k.created_at, v_clock.target_at), advances_to = v_clock.target_at\n",
      replace: "  set created_at = pay.server_time(), advances_to = v_clock.target_at\n",
    }],
    noticed_by: "tests/http/clock_test.ts",
  },
  {
    name: "a note outlives its sandbox",
    edits: [{
      file: `${SCHEMAS}/requests.sql`,
      find: "      for share of e skip locked\n",
      replace: "",
    }],
    noticed_by: "tests/http/request_log_test.ts",
  },
  {
    name: "seeded: the secret of an endpoint follows from the master secret",
    edits: [{
      file: "shared/domain/webhooks/endpoint_secret.ts",
      find: "salt.length === 2 * SEEDED_SALT_BYTES ? NO_MASTER_SECRET : master_secret,",
      replace: "salt === NO_MASTER_SECRET ? NO_MASTER_SECRET : master_secret,",
    }],
    noticed_by: "tests/webhook/seeded_deliveries_test.ts",
  },
];
