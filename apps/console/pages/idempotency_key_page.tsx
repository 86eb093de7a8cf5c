/** The page of an idempotency key: its first request, and the stored response. */

import type { IdempotencyKey } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Card, Columns, Title } from "../parts/page_parts.tsx";
import { Json } from "../parts/json.tsx";
import { Mention } from "../parts/mention.tsx";
import { useLive } from "../data/live.ts";
import { Reading } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { Fact, Id } from "../parts/text.tsx";

/** The page. The API finds only keys that this API key has used within 24 hours. */
export function IdempotencyKeyPage({ id }: { id: string }) {
  const live = useLive(call("idempotencyKeys", "retrieve", id), { logged: true });
  return (
    <>
      <Title title="Idempotency key" is_long under={<Id id={id} />} />
      <Reading label="the stored record" live={live} rows={4}>
        {(record) => <Stored record={record} />}
      </Reading>
    </>
  );
}

function Stored({ record }: { record: IdempotencyKey }) {
  const { key: idempotency_key, status } = record;
  return (
    <Columns
      title="First request"
      details={
        <>
          <Fact name="Request" code={`${record.method} ${record.path}`} />
          {status !== null && (
            <Fact name="Status">
              <span class={`status ${status < 400 ? "good" : "warn"}`}>{status}</span>
            </Fact>
          )}
          <Fact name="Replays">{record.replays}</Fact>
          <Fact name="Request id">
            <Mention id={record.first_request_id} />
          </Fact>
          <Fact name="Requests">
            <a href={href(["requests"], { source: "any", idempotency_key })}>All with this key</a>
          </Fact>
          <Fact name="Created" at={record.created_at} />
          <Fact name="Expires" at={record.expires_at} />
        </>
      }
    >
      <Card title="Stored response">
        {record.body === null
          ? <p class="quiet">The first request is under way.</p>
          : <Json value={record.body} label="The stored response" />}
      </Card>
    </Columns>
  );
}
