/**
 * The judge of the run on a chain. It compares the transfers that the chain has with the payments,
 * their ledger and the provider events. It shares no rule with the product.
 */

import type postgres from "postgres";
import type { ChainTransfer } from "../../../support/chain/chain_world.ts";
import { brokenInvariants, differences, failing, sumOf } from "../../harness/audit.ts";
import type { ChainClients } from "./clients.ts";
import type { ChainNode } from "./node.ts";

type StoredPayment = Awaited<ReturnType<typeof readPayments>>[number];

/** Compares the chain with the books, when everything has its result. */
export async function auditChain(
  sql: postgres.Sql,
  environment_id: string,
  { payers, payouts }: ChainClients,
  node: ChainNode,
): Promise<{ says: string; breaches: string[] }> {
  const transfers = await node.transfers();
  const rows = await readPayments(sql, environment_id);
  const stored = new Map(rows.map((row) => [row.id, row]));
  const sent = Map.groupBy(transfers, ({ to }) => to);
  const addresses = new Set(payers.map(({ address }) => address?.toLowerCase()));
  const received = transfers.filter(({ to }) => addresses.has(to));
  const sum = sumOf(received, ({ amount }) => amount);
  const counts = Map.groupBy(rows, ({ status, failure_code }) => failure_code ?? status);
  const states = [...counts].map(([status, all]) => `${all.length} ${status}`).join(", ");
  return {
    says: `${states}; ${received.length} transfers of ${sum}, ${payouts.length} payouts`,
    breaches: [
      ...payers.flatMap((payer) => auditPayment(payer, stored, sent)),
      ...failing([
        [addresses.size === payers.length, "two payments have one address"],
        [stored.size === payers.length, `${stored.size} of ${payers.length} payments are stored`],
      ]),
      ...await auditPayouts(sql, payouts, node.signer, transfers),
      ...await brokenInvariants(sql, true),
    ],
  };
}

/**
 * Reads the payments, with the money at the chain by the ledger. The invariants compare that with
 * the parts of it.
 */
async function readPayments(sql: postgres.Sql, environment_id: string) {
  return await sql<
    {
      id: string;
      status: string;
      failure_code: string | null;
      amount_captured: number;
      amount_refunded: number;
      at_chain: number;
    }[]
  >`
    select p.id, p.status, p.body::json ->> 'failure_code' as failure_code,
      (p.body::json ->> 'amount_captured')::int as amount_captured,
      p.amount_refunded::int as amount_refunded, (
        select coalesce(sum(case e.direction when 'debit' then e.amount_minor
          else -e.amount_minor end), 0)
        from pay.ledger_entries e where e.environment_id = p.environment_id
          and e.subject_id = p.id and e.account = 'processor'
      )::int as at_chain
    from pay.payments p
    where p.environment_id = ${environment_id} and p.method_kind = 'stablecoin'`;
}

function auditPayment(
  { id, address, amount_minor }: ChainClients["payers"][number],
  stored: ReadonlyMap<string, StoredPayment>,
  sent: ReadonlyMap<string, ChainTransfer[]>,
): string[] {
  const row = stored.get(id ?? "");
  if (!row || address === null) return [`${id} is not stored`];
  const sum = sumOf(sent.get(address.toLowerCase()) ?? [], ({ amount }) => amount);
  const { status, failure_code, amount_captured, amount_refunded } = row;
  // Refunds leave from the wallet of the signer, and the ledger takes them from the payment.
  const at_chain = row.at_chain + amount_refunded;
  const is_paid = ["completed", "partially_refunded", "refunded"].includes(status);
  return failing([
    [at_chain === sum, `the chain has ${sum}, and the ledger ${at_chain}`],
    [is_paid || status === "failed", "no end"],
    [!is_paid || amount_captured === amount_minor, `took ${amount_captured}`],
    [!is_paid || sum >= amount_minor, `completed with ${sum}`],
    // Money that came in time decides, and late money does not.
    [failure_code !== "underpaid" || sum > 0 && sum < amount_minor, `underpaid with ${sum}`],
  ]).map((fault) => `${id} (${failure_code ?? status}, requested ${amount_minor}): ${fault}`);
}

/** Checks that each completed payout was paid once, and that no other was paid. */
async function auditPayouts(
  sql: postgres.Sql,
  payouts: ChainClients["payouts"],
  signer: string,
  transfers: readonly ChainTransfer[],
): Promise<string[]> {
  const rows = await sql<{ id: string; status: string }[]>`
    select id, status from pay.refunds union all select id, status from pay.transfers`;
  const statuses = new Map(rows.map(({ id, status }) => [id, status]));
  return differences(
    "payout",
    payouts.map(({ id, address, amount }) => [address, statuses.get(id), amount] as const)
      .filter(([, status]) => status !== "failed")
      .map(([address, status, amount]) => [address, `${status} ${amount}`]),
    transfers.filter(({ from }) => from === signer.toLowerCase())
      .map(({ to, amount }) => [to, `completed ${amount}`]),
  );
}
