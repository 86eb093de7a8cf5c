/**
 * The judge of the run on a chain. It compares the transfers that the chain has with the payments,
 * their ledger and the provider events. It shares no rule with the product.
 */

import type postgres from "postgres";
import { brokenInvariants, failing, sumOf } from "../../harness/audit.ts";
import type { ChainClients } from "./clients.ts";
import type { ChainLog, ChainNode } from "./node.ts";

interface StoredPayment {
  id: string;
  status: string;
  failure_code: string | null;
  amount_captured: number;
  amount_refunded: number;
  /** By the ledger: the money at the chain, and the parts of it. */
  at_chain: number;
  available: number;
  unapplied: number;
}

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
  const sent = Map.groupBy(transfers, ({ to }) => to.toLowerCase());
  const addresses = new Set(payers.map(({ address }) => address?.toLowerCase()));
  const received = transfers.filter(({ to }) => addresses.has(to.toLowerCase()));
  const sum = sumOf(received, ({ amount }) => amount);
  const refunded = sumOf(rows, ({ amount_refunded }) => amount_refunded);
  const booked = sumOf(rows, ({ at_chain }) => at_chain);
  const counts = Map.groupBy(rows, ({ status, failure_code }) => failure_code ?? status);
  const states = [...counts].map(([status, all]) => `${all.length} ${status}`).join(", ");
  return {
    says: `${states}; ${received.length} transfers of ${sum}, ${payouts.length} payouts`,
    breaches: [
      ...payers.flatMap((payer) => auditPayment(payer, stored, sent)),
      ...failing([
        [addresses.size === payers.length, "two payments have one address"],
        [stored.size === payers.length, `${stored.size} of ${payers.length} payments are stored`],
        [sum - refunded === booked, `the chain has ${sum - refunded}, and the ledger ${booked}`],
      ]),
      ...await auditPayouts(sql, payouts, node.signer, transfers),
      ...await brokenInvariants(sql, true),
    ],
  };
}

async function readPayments(sql: postgres.Sql, environment_id: string): Promise<StoredPayment[]> {
  return await sql<StoredPayment[]>`
    select p.id, p.status, p.body::json ->> 'failure_code' as failure_code,
      (p.body::json ->> 'amount_captured')::int as amount_captured,
      p.amount_refunded::int as amount_refunded, coalesce(l.at_chain, 0)::int as at_chain,
      coalesce(l.available, 0)::int as available, coalesce(l.unapplied, 0)::int as unapplied
    from pay.payments p
    left join (
      select subject_id,
        sum(signed) filter (where account = 'processor') as at_chain,
        -sum(signed) filter (where account = 'available') as available,
        -sum(signed) filter (where account = 'unapplied') as unapplied
      from (
        select subject_id, account,
          case direction when 'debit' then amount_minor else -amount_minor end as signed
        from pay.ledger_entries where environment_id = ${environment_id}
      ) e
      group by subject_id
    ) l on l.subject_id = p.id
    where p.environment_id = ${environment_id} and p.method_kind = 'stablecoin'`;
}

function auditPayment(
  { id, address, amount_minor }: ChainClients["payers"][number],
  stored: ReadonlyMap<string, StoredPayment>,
  sent: ReadonlyMap<string, ChainLog[]>,
): string[] {
  const row = stored.get(id ?? "");
  if (!row || address === null) return [`${id} is not stored`];
  const sum = sumOf(sent.get(address.toLowerCase()) ?? [], ({ amount }) => amount);
  const { status, failure_code, amount_captured, amount_refunded, unapplied } = row;
  // Refunds leave from the wallet of the signer, and the ledger takes them from the payment.
  const at_chain = row.at_chain + amount_refunded;
  const available = row.available + amount_refunded;
  const is_paid = ["completed", "partially_refunded", "refunded"].includes(status);
  return failing([
    [at_chain === sum, `the chain has ${sum}, and the ledger ${at_chain}`],
    [available + unapplied === sum, `${available} available and ${unapplied} unapplied`],
    [is_paid || status === "failed", "no end"],
    [!is_paid || amount_captured === amount_minor, `took ${amount_captured}`],
    [available === (is_paid ? amount_minor : 0), `${available} available`],
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
  transfers: readonly ChainLog[],
): Promise<string[]> {
  const rows = await sql<{ id: string; status: string }[]>`
    select id, status from pay.refunds union all select id, status from pay.transfers`;
  const statuses = new Map(rows.map(({ id, status }) => [id, status]));
  const sent = Map.groupBy(
    transfers.filter(({ from }) => from.toLowerCase() === signer.toLowerCase()),
    ({ to }) => to.toLowerCase(),
  );
  const known = new Set(payouts.map(({ address }) => address));
  return [
    ...payouts.flatMap(({ id, address, amount }) => {
      const amounts = (sent.get(address) ?? []).map((each) => each.amount);
      const status = statuses.get(id);
      const is_right = status === "completed"
        ? amounts.length === 1 && amounts[0] === amount
        : status === "failed" && amounts.length === 0;
      return is_right ? [] : [`${id} of ${amount} is ${status}, and was paid ${amounts}`];
    }),
    ...[...sent.keys()].filter((to) => !known.has(to)).map((to) => `${to} was paid by no payout`),
  ];
}
