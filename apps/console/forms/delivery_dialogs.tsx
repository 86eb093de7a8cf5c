/**
 * The dialogs that send events again: one event of a payment to an endpoint, which changes no
 * payment, and what an endpoint has missed in a period.
 */

import { NewLink } from "../parts/page_parts.tsx";
import { useState } from "preact/hooks";
import type {
  EventType,
  Recovery,
  WebhookDelivery,
  WebhookEndpoint,
} from "../../../packages/client/mod.ts";
import { EVENT_TYPES } from "../../../shared/core/vocabulary.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { fieldsOf, useDraft } from "../data/draft.ts";
import { showFlash } from "../data/flash.ts";
import { useLive } from "../data/live.ts";
import { EXAMPLE_TIME, formatTime, TIME_ZONE, timeOf } from "../data/times.ts";
import { endpointName } from "../data/words.ts";
import { resultOf } from "../parts/deliveries.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { optionsOf, SelectField, TextField } from "../parts/fields.tsx";
import { Form, FormDialog } from "../parts/form.tsx";
import { Empty, Reading } from "../parts/notice.tsx";

/** Event types that the sandbox can send for a payment: not those of transfers and instruments. */
const TRIGGERED_TYPES = EVENT_TYPES.filter((type) => !/^(transfer|instrument)\./.test(type));

interface TriggerProps {
  payment_id?: string;
  endpoint_id?: string;
  close: () => void;
}

/** The dialog. It is opened for a payment or for an endpoint, and asks for the other one. */
export function TriggerDialog(props: TriggerProps) {
  const endpoints = useLive(call("webhookEndpoints", "list", { limit: MAX_PAGE }));
  const newest = useLive(
    props.payment_id === undefined ? call("payments", "list", { limit: 1 }) : null,
  );
  const is_read = props.payment_id !== undefined || newest.data !== null || newest.error !== null;
  return (
    <Dialog title="Trigger an event" close={props.close}>
      <Reading
        label="endpoints"
        live={is_read ? endpoints : { ...endpoints, data: null }}
        rows={2}
      >
        {({ data }) =>
          data.length === 0
            ? (
              <Empty title="No endpoints yet">
                <NewLink section="webhooks" class="button" onClick={props.close}>
                  Add an endpoint
                </NewLink>
              </Empty>
            )
            : <TriggerForm {...props} endpoints={data} newest_payment={newest.data?.data[0]?.id} />}
      </Reading>
    </Dialog>
  );
}

/** The form. Its first values stay, also when there is a newer payment or endpoint. */
function TriggerForm(
  props: TriggerProps & {
    endpoints: readonly WebhookEndpoint[];
    newest_payment: string | undefined;
  },
) {
  const { endpoints, close } = props;
  const { draft: { endpoint_id, payment_id, event }, field } = useDraft({
    endpoint_id: props.endpoint_id ?? endpoints[0]!.id,
    payment_id: props.payment_id ?? props.newest_payment ?? "",
    event: "payment.completed" satisfies EventType as string,
  });
  const done = ({ status, attempts }: WebhookDelivery) => {
    close();
    const response = attempts.at(-1);
    if (status === "available") {
      showFlash("The event is in the inbox of the endpoint.");
    } else if (status === "delivered") {
      showFlash(`Delivered: the endpoint returned ${response?.response_status}.`);
    } else {
      showFlash(`Not delivered: ${response ? resultOf(response) : "no attempt was made"}.`, "bad");
    }
  };
  return (
    <Form
      build={(options) =>
        call("sandbox", "trigger", { endpoint_id, event: event as EventType, payment_id }, options)}
      done={done}
      act="Send now"
      after={<button type="button" onClick={close}>Cancel</button>}
    >
      <p class="quiet">
        One attempt, signed with the endpoint’s secret. The payment does not change.
      </p>
      <SelectField {...field("event", "Event")} options={optionsOf(TRIGGERED_TYPES)} />
      <SelectField
        {...field("endpoint_id", "Endpoint")}
        options={endpoints.map((endpoint) => [endpoint.id, endpointName(endpoint)])}
      />
      {props.payment_id === undefined && (
        <TextField {...field("payment_id", "Payment")} hint="By default the newest payment" mono />
      )}
    </Form>
  );
}

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
  const [rest, setRest] = useState<Rest | null>(null);
  const first = { since: formatTime(props.since), until: "", status: "failed" };
  const { draft: { since, until, status }, change } = useDraft(first);
  // Another period is another recovery.
  const field = fieldsOf({ since, until, status }, (changed) => {
    setRest(null);
    change(changed);
  });
  const done = ({ count, has_more, next_cursor }: Recovery) => {
    const total = (rest?.count ?? 0) + count;
    if (has_more && next_cursor !== null) {
      setRest({ count: total, next_cursor });
      return null;
    }
    return total === 0
      ? "There was nothing to recover in this period."
      : `${countOf(total)} ${total === 1 ? "is" : "are"} pending again.`;
  };
  return (
    <FormDialog
      title="Recover deliveries"
      close={close}
      build={(options) =>
        call("webhookEndpoints", "recover", endpoint.id, {
          since: timeOf("since", since),
          ...(until.trim() !== "" && { until: timeOf("until", until) }),
          status: status === "all" ? "all" : "failed",
          ...(rest && { starting_after: rest.next_cursor }),
        }, options)}
      done={done}
      act={rest ? "Recover the rest" : "Recover"}
    >
      <p>
        The API sends the events of the period again, in the order of each payment. Those that wait
        already stay as they are.
      </p>
      {rest && (
        <p class="notice warn" role="status">
          {countOf(rest.count)} recovered. The period has more.
        </p>
      )}
      <TextField
        {...field("since", "Since")}
        placeholder={EXAMPLE_TIME}
        hint={`In the time zone ${TIME_ZONE}. At most 30 days ago.`}
      />
      <TextField
        {...field("until", "Until")}
        placeholder={EXAMPLE_TIME}
        hint="By default now."
        optional
      />
      <SelectField {...field("status", "Deliveries")} options={SELECTIONS} />
    </FormDialog>
  );
}

function countOf(count: number): string {
  return count === 1 ? "1 delivery" : `${count.toLocaleString("en")} deliveries`;
}
