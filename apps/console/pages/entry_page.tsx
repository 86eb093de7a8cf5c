/** The way from the id of a ledger entry to the list that shows its transaction. */

import { useLayoutEffect } from "preact/hooks";
import { ALPHABET } from "../../../shared/core/ids.ts";
import { call } from "../data/calls.ts";
import { Crumb } from "../parts/crumb.tsx";
import { useLive } from "../data/live.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { go } from "../data/route.ts";

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
