/** The disputes of a payment, with the form that sends evidence for an open one. */

import { useRef } from "preact/hooks";
import type { Dispute } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { Card } from "./page_parts.tsx";
import { ConfirmButton } from "./confirm_dialog.tsx";
import { useDraft } from "../data/draft.ts";
import { showFlash } from "../data/flash.ts";
import { TextField } from "./fields.tsx";
import { Form } from "./form.tsx";
import { useLive } from "../data/live.ts";
import { amountText } from "../data/money.ts";
import { may } from "../data/permissions.ts";
import { ReadingList } from "./notice.tsx";
import { Id, Money, Status, Time } from "./text.tsx";
import { label } from "../data/words.ts";

/** The disputes, newest first. Renders nothing if the payment has none. */
export function Disputes({ payment_id }: { payment_id: string }) {
  const live = useLive(call("disputes", "list", { payment_id, limit: MAX_PAGE }));
  if (live.data?.data.length === 0) return null;
  return (
    <Card title="Disputes">
      <ReadingList label="disputes" live={live} rows={1} none="No disputes">
        {(disputes) => (
          <ul class="records" aria-label="Disputes">
            {disputes.map((dispute) => <DisputeItem key={dispute.id} dispute={dispute} />)}
          </ul>
        )}
      </ReadingList>
    </Card>
  );
}

function DisputeItem({ dispute }: { dispute: Dispute }) {
  const { id, status, amount_minor, currency, reason, evidence, evidence_due_by } = dispute;
  return (
    <li>
      <div class="record">
        <Status of={status} />
        <Money class="strong" amount_minor={amount_minor} currency={currency} />
        <span class="quiet">{label(reason)}</span>
      </div>
      <div class="record-line">
        <Id id={id} />
        <Time at={dispute.created_at} />
      </div>
      {evidence && status !== "needs_response" && <p class="about">Evidence: {evidence.text}</p>}
      {status === "needs_response" && evidence_due_by && (
        <p class="about">
          Without evidence the dispute is lost at <Time at={evidence_due_by} />.
        </p>
      )}
      {status === "needs_response" && may("disputes.submitEvidence") && (
        <EvidenceForm key={id} dispute={dispute} />
      )}
      {(status === "needs_response" || status === "under_review") && <Accept dispute={dispute} />}
    </li>
  );
}

/** The name of the button that only saves the evidence. */
const SAVE = "save";

function EvidenceForm({ dispute: { id, evidence } }: { dispute: Dispute }) {
  const { draft: { text }, field, kept } = useDraft({ text: evidence?.text ?? "" }, id);
  const submit = useRef(true);
  return (
    <Form
      label="Evidence"
      kept={kept}
      pressed={(name) => {
        submit.current = name !== SAVE;
      }}
      build={(options) =>
        call("disputes", "submitEvidence", id, {
          text,
          ...(!submit.current && { submit: false }),
        }, options)}
      done={({ status }) =>
        showFlash(
          submit.current
            ? `Evidence submitted: the dispute is ${DONE[status]}.`
            : "Evidence saved. The payer’s bank does not see it before you submit it.",
        )}
      act="Submit evidence"
      acting="Sending…"
      after={(sending) => (
        <button type="submit" name={SAVE} aria-disabled={sending}>Save for later</button>
      )}
    >
      <TextField
        {...field("text", "Evidence")}
        rows={4}
        hint="In the sandbox winning_evidence wins the dispute and losing_evidence loses it. Every
          other text is under review until the payment is advanced."
      />
    </Form>
  );
}

/** The words for the status of a dispute after its evidence was submitted. */
const DONE: Readonly<Record<Dispute["status"], string>> = {
  needs_response: "waiting for a response",
  under_review: "under review",
  won: "won",
  lost: "lost",
};

function Accept({ dispute: { id, amount_minor, currency } }: { dispute: Dispute }) {
  return (
    <div class="record-buttons">
      <ConfirmButton
        class="small"
        title="Accept the dispute?"
        keep="Keep the dispute open"
        act="Accept the dispute"
        build={(options) => call("disputes", "accept", id, options)}
        done="Dispute accepted: it is lost."
      >
        <p>
          The dispute is lost at once: the payer keeps{" "}
          {amountText(amount_minor, currency)}, and no evidence is possible any more.
        </p>
      </ConfirmButton>
    </div>
  );
}
