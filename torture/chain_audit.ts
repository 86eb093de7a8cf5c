/**
 * The judge of the run on a chain. It compares the transfers that the chain has with the payments,
 * their ledger and the facts. It shares no rule with the product.
 */

import type postgres from "postgres";
import { checkBooks } from "../scripts/operator/check_books.ts";
import type { ChainLog } from "./chain_node.ts";

/** A payment as its client knows it. */
export interface ChainPayment {
  /** Null: its create was not answered. */
  id: string | null;
  address: string | null;
  amount_minor: number;
}

/** The evidence of a run that has come to rest. */
interface ChainEvidence {
  sql: postgres.Sql;
  environment_id: string;
  payments: readonly ChainPayment[];
  transfers: readonly ChainLog[];
}

/** A payment as it is stored. */
interface StoredPayment {
  id: string;
  status: string;
  failure_code: string | null;
  amount_captured: number;
  /** By the ledger: the money at the chain, and the parts of it. */
  at_chain: number;
  available: number;
  unapplied: number;
}

/** Findings that are the operator's work, and no fault: money without a purpose. */
const TOLD = /came for a payment that is|more than asked has come/;

/** Compares the chain with the books. */
export async function auditChain(
  { sql, environment_id, payments, transfers }: ChainEvidence,
): Promise<{ says: string; findings: string[] }> {
  const rows = await sql<StoredPayment[]>`
    select p.id, p.status, p.body::json ->> 'failure_code' as failure_code,
      (p.body::json ->> 'amount_captured')::int as amount_captured,
      coalesce(l.at_chain, 0)::int as at_chain, coalesce(l.available, 0)::int as available,
      coalesce(l.unapplied, 0)::int as unapplied
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
    where p.environment_id = ${environment_id}`;
  const stored = new Map(rows.map((row) => [row.id, row]));
  const sent = Map.groupBy(transfers, ({ to }) => to.toLowerCase());
  const addresses = new Set(payments.map(({ address }) => address?.toLowerCase()));
  const findings = [
    ...payments.flatMap((payment) => auditPayment(payment, stored, sent)),
    ...addresses.size === payments.length ? [] : ["two payments have one address"],
    ...stored.size === payments.length
      ? []
      : [`${stored.size} payments are stored, and ${payments.length} were created`],
    ...await readOracles(sql),
  ];
  const received = transfers.filter(({ to }) => addresses.has(to.toLowerCase()));
  const sum = received.reduce((total, { amount }) => total + amount, 0);
  const booked = rows.reduce((total, { at_chain }) => total + at_chain, 0);
  if (sum !== booked) findings.push(`the chain has ${sum}, and the ledger ${booked}`);
  const counts = Map.groupBy(rows, ({ status, failure_code }) => failure_code ?? status);
  const states = [...counts].map(([status, all]) => `${all.length} ${status}`).join(", ");
  return { says: `${states}; ${received.length} transfers of ${sum}`, findings };
}

function auditPayment(
  { id, address, amount_minor }: ChainPayment,
  stored: ReadonlyMap<string, StoredPayment>,
  sent: ReadonlyMap<string, ChainLog[]>,
): string[] {
  const row = stored.get(id ?? "");
  if (!row || address === null) return [`${id} is not stored`];
  const transfers = sent.get(address.toLowerCase()) ?? [];
  const sum = transfers.reduce((total, { amount }) => total + amount, 0);
  const { status, failure_code, amount_captured, at_chain, available, unapplied } = row;
  const findings: string[] = [];
  const check = (holds: boolean, what: string) => {
    if (!holds) findings.push(`${id} (${failure_code ?? status}, asked ${amount_minor}): ${what}`);
  };
  check(at_chain === sum, `the chain has ${sum}, and the ledger ${at_chain}`);
  check(available + unapplied === sum, `${available} available and ${unapplied} unapplied`);
  if (status === "completed") {
    check(amount_captured === amount_minor && available === amount_minor, `took ${available}`);
    check(sum >= amount_minor, `completed with ${sum}`);
  } else {
    check(status === "failed", "no end");
    check(available === 0, `${available} available`);
    // Money that came in time decides, and late money does not.
    if (failure_code === "underpaid") check(sum > 0 && sum < amount_minor, `underpaid with ${sum}`);
  }
  return findings;
}

/** The findings of the oracles, without those that are the operator's work. */
async function readOracles(sql: postgres.Sql): Promise<string[]> {
  const verdicts = await checkBooks(sql);
  const broken = verdicts.filter(({ oracle, findings }) =>
    findings > 0 && oracle !== "oracle_provider_facts"
  ).flatMap(({ oracle, examples }) => examples.map((example) => `${oracle}: ${example}`));
  const facts = await sql<{ detail: string }[]>`
    select subject_id || ': ' || detail as detail from pay.oracle_provider_facts`;
  return [...broken, ...facts.map(({ detail }) => detail).filter((text) => !TOLD.test(text))];
}
