/** The dialog that resets the sandbox. */

import { call } from "./calls.ts";
import { Dialog } from "./dialog.tsx";
import { showFlash } from "./flash.tsx";
import { Form } from "./form.tsx";
import { go } from "./route.ts";

/** Asks for confirmation, then deletes the data of the sandbox. */
export function ResetDialog({ close }: { close: () => void }) {
  return (
    <Dialog title="Reset the sandbox?" close={close}>
      <Form
        label="Reset the sandbox"
        build={(idempotencyKey) => call("sandbox", "reset", { idempotencyKey })}
        done={({ deleted }) => {
          close();
          go(["payments"]);
          const { payments, ledger_entries, webhook_deliveries } = deleted;
          showFlash(
            `Reset: ${payments} payments, ${ledger_entries} ledger entries and ` +
              `${webhook_deliveries} deliveries deleted.`,
          );
        }}
        actions={(sending) => (
          <>
            <button type="button" onClick={close} autoFocus>Keep everything</button>
            <button type="submit" class="danger" aria-disabled={sending}>
              {sending ? "Deleting…" : "Delete everything"}
            </button>
          </>
        )}
      >
        <p>
          This deletes every payment, refund, transfer, ledger entry, event and delivery of this
          key’s sandbox and cannot be undone. Keys and webhook endpoints stay.
        </p>
      </Form>
    </Dialog>
  );
}
