/** The dialog that sends an event of a payment to an endpoint. The payment does not change. */

import { useState } from "preact/hooks";
import type { EventType, WebhookDelivery } from "../client/mod.ts";
import { EVENT_TYPES } from "../shared/core/vocabulary.ts";
import { MAX_PAGE } from "../shared/schema/limits.ts";
import { call } from "./calls.ts";
import { resultOf } from "./deliveries.tsx";
import { Dialog } from "./dialog.tsx";
import { showFlash } from "./flash.tsx";
import { Form, SelectField, TextField } from "./form.tsx";
import { useLive } from "./live.ts";
import { Empty, Reading } from "./notice.tsx";
import { href } from "./route.ts";
import { endpointName } from "./words.ts";

/** Event types that the sandbox can send for a payment: all except those of transfers. */
const TRIGGERED_TYPES = EVENT_TYPES.filter((type) => !type.startsWith("transfer."));

/** The dialog. It is opened for a payment or for an endpoint, and asks for the other one. */
export function TriggerDialog(props: {
  payment_id?: string;
  endpoint_id?: string;
  close: () => void;
}) {
  const endpoints = useLive(call("webhookEndpoints", "list", { limit: MAX_PAGE }));
  const newest = useLive(
    props.payment_id === undefined ? call("payments", "list", { limit: 1 }) : null,
  );
  const [chosen, setEndpoint] = useState(props.endpoint_id ?? "");
  const [typed, setPayment] = useState<string | null>(props.payment_id ?? null);
  const [event, setEvent] = useState<string>("payment.completed" satisfies EventType);
  const payment_id = typed ?? newest.data?.data[0]?.id ?? "";

  const done = ({ status, attempts }: WebhookDelivery) => {
    props.close();
    const answer = attempts.at(-1);
    if (status === "available") {
      showFlash("The event is in the inbox of the endpoint.");
    } else if (status === "delivered") {
      showFlash(`Delivered: the endpoint answered ${answer?.response_status}.`);
    } else {
      showFlash(`Not delivered: ${answer ? resultOf(answer) : "no attempt was made"}.`, "bad");
    }
  };
  return (
    <Dialog title="Trigger an event" close={props.close}>
      <Reading label="endpoints" live={endpoints} rows={2}>
        {({ data }) => {
          if (data.length === 0) {
            return (
              <Empty title="No endpoints yet">
                <a class="button" href={href(["webhooks", "new"])} onClick={props.close}>
                  Add an endpoint
                </a>
              </Empty>
            );
          }
          const endpoint_id = chosen || data[0]!.id;
          return (
            <Form
              build={(idempotencyKey) =>
                call("sandbox", "trigger", {
                  endpoint_id,
                  event: event as EventType,
                  payment_id,
                }, { idempotencyKey })}
              done={done}
              actions={(sending) => (
                <>
                  <button type="submit" class="primary" aria-disabled={sending}>
                    {sending ? "Sending…" : "Send now"}
                  </button>
                  <button type="button" onClick={props.close}>Cancel</button>
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
                options={data.map((endpoint) => [endpoint.id, endpointName(endpoint)])}
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
        }}
      </Reading>
    </Dialog>
  );
}
