/** The dialog that resets the sandbox. */

import { useState } from "preact/hooks";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "../parts/confirm_dialog.tsx";
import { forgetLists, go } from "../data/route.ts";

/** Asks for confirmation, then deletes the data of the sandbox. */
export function ResetDialog({ close }: { close: () => void }) {
  const [with_endpoints, setWithEndpoints] = useState(false);
  return (
    <ConfirmDialog
      title="Reset the sandbox?"
      close={close}
      build={(options) =>
        call("sandbox", "reset", with_endpoints ? { webhook_endpoints: true } : {}, options)}
      done={({ deleted }) => {
        forgetLists();
        go(["payments"]);
        const { payments, ledger_entries, webhook_deliveries } = deleted;
        return `Reset: ${payments} payments, ${ledger_entries} ledger entries and ` +
          `${webhook_deliveries} deliveries deleted.`;
      }}
      act="Delete everything"
    >
      <p>
        This deletes every payment, instrument, refund, transfer, ledger entry, event and delivery
        of this key’s sandbox and cannot be undone. Keys stay.
      </p>
      <label class="inline">
        <input
          type="checkbox"
          checked={with_endpoints}
          onChange={(event) => setWithEndpoints(event.currentTarget.checked)}
        />
        Delete the webhook endpoints too
      </label>
    </ConfirmDialog>
  );
}
