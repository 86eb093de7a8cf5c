/** Known bugs of payments and payouts on a chain, each with a test that notices it. */

import type { PlantedBug } from "./planted_bug.ts";

const PAYOUT = "shared/connectors/evm/evm_payout.ts";
const SCHEMAS = "supabase/schemas";

/** The bugs. If you change a text in the code that `find` names, change it here too. */
export const CHAIN_BUGS: readonly PlantedBug[] = [
  {
    name: "chain: a repeated payout gets a new nonce",
    edits: [
      {
        file: PAYOUT,
        find: "const nonce = payout.nonce ?? await this.#begin();",
        replace: "const nonce = await this.#begin();",
      },
      {
        file: `${SCHEMAS}/chain_payouts.sql`,
        find: "  if v_payout.nonce is not null or v_payout.exported_at is not null then\n",
        replace: "  if v_payout.exported_at is not null then\n",
      },
    ],
    noticed_by: "tests/live/chain_payouts_test.ts",
  },
  {
    name: "chain: a payout that people sign goes to the signer too",
    edits: [{
      file: PAYOUT,
      find:
        'if (payout.is_exported) return forOperator("exported, and waiting for people to sign it");',
      replace: "",
    }, {
      file: `${SCHEMAS}/chain_payouts.sql`,
      find: "  if v_payout.nonce is not null or v_payout.exported_at is not null then\n",
      replace: "  if v_payout.nonce is not null then\n",
    }, {
      file: "supabase/migrations/20261124000800_chain.sql",
      find: "check (exported_at is null or nonce is null)",
      replace: "check (true)",
    }],
    noticed_by: "tests/live/chain_payouts_test.ts",
  },
  {
    name: "chain: a node decides the fee of a payout",
    edits: [{
      file: "shared/connectors/evm/evm_fees.ts",
      find: "return Number(max_fee / BigInt(gas));",
      replace: "return Number.MAX_SAFE_INTEGER;",
    }],
    noticed_by: "tests/live/chain_payout_fees_test.ts",
  },
  {
    name: "chain: one transfer settles two equal payouts",
    edits: [{
      file: "shared/connectors/evm/evm_payout_poll.ts",
      find: "const alike = [...left.values()].filter((each) =>",
      replace: "const alike = open.filter((each) =>",
    }],
    noticed_by: "tests/live/chain_payouts_test.ts",
  },
  {
    name: "chain: a transfer in any block is final",
    edits: [{
      file: "shared/connectors/evm/evm_poll.ts",
      find: "const is_final = transfer.block_number <= pass.final;",
      replace: "const is_final = true;",
    }],
    noticed_by: "tests/connectors/evm_poll_test.ts",
  },
  {
    name: "chain: two workers add to one sum of final transfers",
    edits: [{
      file: `${SCHEMAS}/deposit_addresses.sql`,
      find: "<> pay.final_minor(f.environment_id, r.expects_id)",
      replace: "<> r.expects_final_minor",
    }],
    noticed_by: "tests/live/deposits_test.ts",
  },
];
