/** The button that deletes the bank details of a payment or transfer, and the dialog before it. */

import { useState } from "preact/hooks";
import type { Payment, Transfer } from "../../../packages/client/mod.ts";
import { isByBank } from "../../../shared/domain/payments/lifecycle.ts";
import { call } from "../data/calls.ts";
import { ConfirmDialog } from "./confirm_dialog.tsx";

/** The button, if the payment or transfer is one of a bank. */
export function BankDetailsButton({ of }: { of: Payment | Transfer }) {
  const [open, setOpen] = useState(false);
  const { id } = of;
  const is_by_bank = of.object === "payment" ? isByBank(of) : of.destination.type !== "wallet";
  if (!is_by_bank) return null;
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>Delete bank details…</button>
      {open && (
        <ConfirmDialog
          title="Delete the bank details?"
          keep="Keep them"
          act="Delete bank details"
          acting="Deleting…"
          build={(options) =>
            of.object === "payment"
              ? call("payments", "deleteBankDetails", id, options)
              : call("transfers", "deleteBankDetails", id, options)}
          done="Bank details deleted."
          close={() => setOpen(false)}
        >
          <p>
            IBAN, name and address are deleted. Country and last four characters stay.
            {of.object === "payment" && " A later refund must name its destination."}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
