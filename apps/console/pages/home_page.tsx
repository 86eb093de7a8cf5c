/** The home page: payments over time, failing endpoints, the last errors, and what comes next. */

import type { LoggedRequest, WebhookEndpoint } from "../../../packages/client/mod.ts";
import { MAX_PAGE } from "../../../shared/schema/limits.ts";
import { call } from "../data/calls.ts";
import { Card, NewLink, Title } from "../parts/page_parts.tsx";
import { DueCard } from "../parts/due_card.tsx";
import { PaymentCharts } from "./payment_charts.tsx";
import { useLive } from "../data/live.ts";
import { endOfPath, statusTone } from "../data/logged_request.ts";
import { Empty, Reading, ReadingList } from "../parts/notice.tsx";
import { href } from "../data/route.ts";
import { Time } from "../parts/text.tsx";
import { endpointName, label } from "../data/words.ts";

const ERRORS = 5;
/** The reasons for which the service turns an endpoint off. */
const OFF_BY_SERVICE: ReadonlySet<string> = new Set(["gone", "failing"]);

export function HomePage({ query }: { query: Readonly<Record<string, string>> }) {
  return (
    <>
      <Title title="Home">
        <NewLink section="payments" class="button primary">Create payment</NewLink>
      </Title>
      <div class="home-page">
        <PaymentCharts span={query["span"]} />
        <EndpointsCard />
        <ErrorsCard />
        <DueCard />
      </div>
    </>
  );
}

/** The endpoints whose attempts fail, or that the service has turned off. */
function EndpointsCard() {
  const live = useLive(call("webhookEndpoints", "list", { limit: MAX_PAGE }));
  return (
    <Card title="Failing endpoints">
      <Reading label="endpoints" live={live} rows={2}>
        {({ data }) => {
          const failing = data.filter(isFailing);
          if (failing.length === 0) {
            return <Empty title={data.length === 0 ? "No endpoint exists" : "None"} />;
          }
          return (
            <ul class="records">
              {failing.map((endpoint) => (
                <li key={endpoint.id} class="record">
                  <span class="status bad">
                    {endpoint.status === "enabled" ? "Failing" : label(endpoint.disabled_reason!)}
                  </span>
                  <a href={href(["webhooks", endpoint.id])}>{endpointName(endpoint)}</a>
                </li>
              ))}
            </ul>
          );
        }}
      </Reading>
    </Card>
  );
}

function isFailing({ failing, status, disabled_reason }: WebhookEndpoint): boolean {
  return failing === true ||
    (status === "disabled" && OFF_BY_SERVICE.has(disabled_reason ?? ""));
}

/** The last requests of programs that got an error. A decline is a result, and no error. */
function ErrorsCard() {
  const errors = { status: "error", source: "program" } as const;
  const live = useLive(call("sandbox", "listRequests", { ...errors, limit: ERRORS }));
  return (
    <Card
      title="Last errors"
      actions={<a href={href(["requests"], { status: errors.status })}>All of them</a>}
    >
      <ReadingList label="errors" live={live} none="None" is_paged>
        {(requests) => (
          <ul class="records">
            {requests.map((request) => <ErrorItem key={request.id} request={request} />)}
          </ul>
        )}
      </ReadingList>
    </Card>
  );
}

function ErrorItem({ request }: { request: LoggedRequest }) {
  const { id, status, method, error_code, created_at } = request;
  return (
    <li>
      <div class="record">
        <span class={`status ${statusTone(status)}`}>{status}</span>
        <a href={href(["requests", id])}>
          <code>{method} {endOfPath(request)}</code>
        </a>
      </div>
      <div class="record-line">
        <code>{error_code}</code>
        <Time at={created_at} />
      </div>
    </li>
  );
}
