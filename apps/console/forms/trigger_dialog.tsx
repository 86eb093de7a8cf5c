/** The dialog that sends an event of a payment to an endpoint. The payment does not change. */

import { useState } from "preact/hooks";
import type { EventType, WebhookDelivery, WebhookEndpoint } from "../../../packages/client/mod.ts";
import { EVENT_TYPES } from "../../../shared/core/vocabulary.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { resultOf } from "../parts/deliveries.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { showFlash } from "../data/flash.ts";
import { SelectField, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { useLive } from "../data/live.ts";
import { Empty, Reading } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { endpointName } from "../data/words.ts";

/** Event types that the sandbox can send for a payment: all except those of transfers. */
const TRIGGERED_TYPES = EVENT_TYPES.filter((type) => !type.startsWith("transfer."));

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
                <a class="button" href={href(["webhooks", "new"])} onClick={props.close}>
                  Add an endpoint
                </a>
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
  const [endpoint_id, setEndpoint] = useState(props.endpoint_id ?? endpoints[0]!.id);
  const [payment_id, setPayment] = useState(props.payment_id ?? props.newest_payment ?? "");
  const [event, setEvent] = useState<string>("payment.completed" satisfies EventType);

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
      actions={(sending) => (
        <>
          <button type="submit" class="primary" aria-disabled={sending}>
            {sending ? "Sending…" : "Send now"}
          </button>
          <button type="button" onClick={close}>Cancel</button>
        </>
      )}
    >
      <p class="quiet">
        One attempt, signed with the endpoint’s secret. The payment does not change.
      </p>
      <SelectField
        label="Event"
        params={["event"]}
        value={event}
        set={setEvent}
        options={TRIGGERED_TYPES.map((type) => [type, type])}
      />
      <SelectField
        label="Endpoint"
        params={["endpoint_id"]}
        value={endpoint_id}
        set={setEndpoint}
        options={endpoints.map((endpoint) => [endpoint.id, endpointName(endpoint)])}
      />
      {props.payment_id === undefined && (
        <TextField
          label="Payment"
          params={["payment_id"]}
          value={payment_id}
          set={setPayment}
          hint="By default the newest payment"
          mono
        />
      )}
    </Form>
  );
}
