/** The dialog that sends an endpoint again what it has missed in a period. */

import { useState } from "preact/hooks";
import type { Recovery, WebhookEndpoint } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Dialog } from "../parts/dialog.tsx";
import { showFlash } from "../data/flash.ts";
import { SelectField, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { EXAMPLE_TIME, formatTime, TIME_ZONE, timeOf } from "../data/times.ts";

const SELECTIONS = [
  ["failed", "Failed and cancelled ones"],
  ["all", "Delivered ones too"],
] as const;

/** A recovery that the API has not completed with one request (contract §4). */
interface Rest {
  count: number;
  next_cursor: string;
}

/** The dialog. `since` is the first time that it shows. */
export function RecoverDialog(
  props: { endpoint: WebhookEndpoint; since: string; close: () => void },
) {
  const { endpoint, close } = props;
  const [since, setSince] = useState(formatTime(new Date(props.since)));
  const [until, setUntil] = useState("");
  const [status, setStatus] = useState<string>("failed");
  const [rest, setRest] = useState<Rest | null>(null);
  // Another period is another recovery.
  const afresh = (set: (value: string) => void) => (value: string) => {
    setRest(null);
    set(value);
  };
  const done = ({ count, has_more, next_cursor }: Recovery) => {
    const total = (rest?.count ?? 0) + count;
    if (has_more && next_cursor !== null) return setRest({ count: total, next_cursor });
    close();
    showFlash(
      total === 0
        ? "There was nothing to recover in this period."
        : `${countOf(total)} ${total === 1 ? "is" : "are"} pending again.`,
    );
  };
  return (
    <Dialog title="Recover deliveries" close={close}>
      <Form
        build={(options) =>
          call("webhookEndpoints", "recover", endpoint.id, {
            since: timeOf("since", since),
            ...(until.trim() !== "" && { until: timeOf("until", until) }),
            status: status === "all" ? "all" : "failed",
            ...(rest && { starting_after: rest.next_cursor }),
          }, options)}
        done={done}
        actions={(sending) => (
          <>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Recovering…" : rest ? "Recover the rest" : "Recover"}
            </button>
            <button type="button" onClick={close}>Cancel</button>
          </>
        )}
      >
        <p>
          The API sends the events of the period again, in the order of each payment. Those that
          wait already stay as they are.
        </p>
        {rest && (
          <p class="notice warn" role="status">
            {countOf(rest.count)} recovered. The period has more.
          </p>
        )}
        <TextField
          label="Since"
          params={["since"]}
          value={since}
          set={afresh(setSince)}
          placeholder={EXAMPLE_TIME}
          hint={`In the time zone ${TIME_ZONE}. At most 30 days ago.`}
        />
        <TextField
          label="Until"
          params={["until"]}
          value={until}
          set={afresh(setUntil)}
          placeholder={EXAMPLE_TIME}
          hint="By default now."
          optional
        />
        <SelectField
          label="Deliveries"
          params={["status"]}
          value={status}
          set={afresh(setStatus)}
          options={SELECTIONS}
        />
      </Form>
    </Dialog>
  );
}

function countOf(count: number): string {
  return count === 1 ? "1 delivery" : `${count.toLocaleString("en")} deliveries`;
}
