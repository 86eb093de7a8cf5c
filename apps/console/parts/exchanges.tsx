/** What the attempts of a delivery sent, and the beginnings of the responses. */

import { useState } from "preact/hooks";
import type { DeliveryExchange, WebhookDelivery } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Json, jsonText } from "./json.tsx";
import { useLive } from "../data/live.ts";
import { Reading } from "./notice.tsx";
import { CopyButton } from "./text.tsx";

/** A part of a delivery that opens. It reads the delivery only while it is open. */
export function Exchanges({ delivery }: { delivery: WebhookDelivery }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="exchanges" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Requests and responses</summary>
      {open && <ExchangeList id={delivery.id} />}
    </details>
  );
}

function ExchangeList({ id }: { id: string }) {
  const live = useLive(call("webhookDeliveries", "retrieve", id), { logged: true });
  return (
    <Reading label="the requests and responses" live={live} rows={3}>
      {({ exchanges = [] }) =>
        exchanges.length === 0
          ? (
            <p class="quiet">
              None is kept. The API keeps those of the newest 5 attempts for 7 days.
            </p>
          )
          : exchanges.toReversed().map((exchange) => (
            <ExchangeView key={exchange.attempt} id={id} exchange={exchange} />
          ))}
    </Reading>
  );
}

function ExchangeView(props: { id: string; exchange: DeliveryExchange }) {
  const { id, exchange: { attempt, request, response } } = props;
  const { url, headers, body } = request;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <>
      <div class="record-line">
        <span>Request of attempt {attempt}</span>
        <CopyButton text={body} label={`Copy body of attempt ${attempt}, ${id}`}>
          Copy body
        </CopyButton>
      </div>
      <Json
        value={[`POST ${url}`, ...lines, "", jsonText(body)].join("\n")}
        label={`Request of attempt ${attempt}, ${id}`}
      />
      <p class="record-line">
        {response === null
          ? "There was no response."
          : `Response to attempt ${attempt}${response.truncated ? ": the first kilobyte" : ""}`}
      </p>
      {response && <Json value={response.text} label={`Response to attempt ${attempt}, ${id}`} />}
    </>
  );
}
