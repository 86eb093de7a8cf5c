/** The page of an idempotency key: its first request, and the stored response. */

import type { IdempotencyKey } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Json } from "../parts/json.tsx";
import { useLive } from "../data/live.ts";
import { Reading } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { Fact, Facts, Id, Time } from "../parts/text.tsx";

/** The page. The API finds only keys that this API key has used within 24 hours. */
export function IdempotencyKeyPage({ id }: { id: string }) {
  const live = useLive(call("idempotencyKeys", "retrieve", id), { logged: true });
  return (
    <>
      <div class="title payment-title">
        <div>
          <h1 tabIndex={-1} class="url">Idempotency key</h1>
          <p class="under-title">
            <Id id={id} />
          </p>
        </div>
      </div>
      <Reading label="the stored record" live={live} rows={4}>
        {(record) => <Stored record={record} />}
      </Reading>
    </>
  );
}

function Stored({ record }: { record: IdempotencyKey }) {
  const { first_request_id, method, path, status, replays } = record;
  return (
    <div class="columns">
      <section class="card main-column" aria-labelledby="stored">
        <h2 id="stored">Stored response</h2>
        {record.body === null
          ? <p class="quiet">The first request is under way.</p>
          : <Json value={record.body} label="The stored response" />}
      </section>
      <section class="card side-column details" aria-labelledby="details">
        <h2 id="details">First request</h2>
        <Facts>
          <Fact name="Request">
            <code>{method} {path}</code>
          </Fact>
          <Fact name="Status">
            {status !== null && (
              <span class={`status ${status < 400 ? "good" : "warn"}`}>{status}</span>
            )}
          </Fact>
          <Fact name="Replays">{replays}</Fact>
          <Fact name="Request id">
            <a href={href(["requests"], { source: "any", request_id: first_request_id })}>
              <code>{first_request_id}</code>
            </a>
          </Fact>
          <Fact name="Requests">
            <a href={href(["requests"], { source: "any", idempotency_key: record.key })}>
              All with this key
            </a>
          </Fact>
          <Fact name="Created">
            <Time at={record.created_at} />
          </Fact>
          <Fact name="Expires">
            <Time at={record.expires_at} />
          </Fact>
        </Facts>
      </section>
    </div>
  );
}
