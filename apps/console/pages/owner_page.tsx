/**
 * The way from a resource without a page of its own to the page that shows it: from a refund or a
 * dispute to its payment, from a delivery to its payment or its endpoint, and from a ledger entry
 * to the list of its transaction.
 */

import { useLayoutEffect } from "preact/hooks";
import { ALPHABET } from "../../../shared/core/ids.ts";
import { type Call, call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { Crumb } from "../parts/page_parts.tsx";
import { go } from "../data/route.ts";

/** The parts of a refund, a dispute or a delivery that name the page. */
interface Owned {
  payment_id?: string | null;
  endpoint_id?: string;
}

/** Returns the page that opens the page of a resource. It shows the failure if there is none. */
function ownerPage(name: string, read: (id: string) => Call<Owned>) {
  return function OwnerPage({ id }: { id: string }) {
    const live = useLive(read(id), { logged: true });
    const owner = live.data;
    useLayoutEffect(() => {
      if (owner?.payment_id) go(["payments", owner.payment_id], {}, true);
      else if (owner?.endpoint_id) go(["webhooks", owner.endpoint_id], {}, true);
    }, [owner]);
    return (
      <>
        <h1 tabIndex={-1}>{name}</h1>
        <Reading label={`this ${name.toLowerCase()}`} live={live}>{() => null}</Reading>
      </>
    );
  };
}

export const RefundPage = ownerPage("Refund", (id) => call("refunds", "retrieve", id));
export const DisputePage = ownerPage("Dispute", (id) => call("disputes", "retrieve", id));
export const DeliveryPage = ownerPage(
  "Delivery",
  (id) => call("webhookDeliveries", "retrieve", id),
);

/** Distances of the ordinals of a debit and of a credit from that of their transaction. */
const [DEBIT, CREDIT] = [1, 2];

/**
 * Opens the transaction of an entry. The API has no read of one entry, so the page reads the two
 * transactions whose entry it can be.
 */
export function EntryPage({ id }: { id: string }) {
  const ordinal = ALPHABET.indexOf(id.slice(-1));
  const read = (distance: number) =>
    call("ledgerEntries", "list", {
      transaction_id: id.replace(/^le_/, "txn_").slice(0, -1) +
        ALPHABET[Math.max(0, ordinal - distance)],
    });
  const first = useLive(read(DEBIT), { logged: true });
  const second = useLive(read(CREDIT), { logged: true });
  const entries = first.data && second.data && [...first.data.data, ...second.data.data];
  const found = entries?.find((entry) => entry.id === id);
  useLayoutEffect(() => {
    if (found) go(["ledger"], { transaction_id: found.transaction_id, entry: id }, true);
  }, [found]);
  return (
    <>
      <Crumb section="ledger" label="Ledger" />
      <h1 tabIndex={-1}>Ledger entry</h1>
      <Reading
        label="this ledger entry"
        live={{ data: entries, error: first.error ?? second.error }}
        rows={1}
      >
        {() => !found && <Empty title="No ledger entry has this id" />}
      </Reading>
    </>
  );
}
