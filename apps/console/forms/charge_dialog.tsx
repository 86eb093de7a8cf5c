/** The dialog that charges an instrument while the payer is not present. */

import type { Instrument } from "../../../packages/client/mod.ts";
import { RAILS } from "../../../shared/domain/rails.ts";
import { call } from "../data/calls.ts";
import { openCreated, openDeclined } from "../data/created_payment.ts";
import { useDraft } from "../data/draft.ts";
import { AmountFields, TextField } from "../parts/fields.tsx";
import { FormDialog } from "../parts/form.tsx";
import { amountOf, present } from "./create_body.ts";

/** The dialog. Also a declined payment has a page, which tells the next step. */
export function ChargeDialog(
  { instrument: { id, method_kind }, close }: { instrument: Instrument; close: () => void },
) {
  const first = { amount: "", currency: "EUR", description: "" };
  const { draft, field, kept } = useDraft(first, `charge ${id}`);
  const { currency, description } = draft;
  return (
    <FormDialog
      title="Charge"
      close={close}
      kept={kept}
      build={(options) =>
        call("payments", "create", {
          amount: amountOf(draft),
          currency: currency.trim(),
          instrument: id,
          off_session: true,
          ...present({ description }),
        }, options)}
      done={openCreated}
      settle={openDeclined}
      act="Charge"
    >
      <p>
        The payer is not present. {RAILS[method_kind].collects
          ? "The payment is collected under the mandate."
          : "If the issuer asks for 3-D Secure, the payment is declined."}
      </p>
      <AmountFields field={field} />
      <TextField {...field("description", "Description")} optional />
    </FormDialog>
  );
}
