/** The success of an endpoint over time, and its newest failures, from its newest deliveries. */

import type { WebhookDelivery } from "../../../packages/client/mod.ts";
import { type Attempt, attemptsOf, bucketsOf, healthOf } from "../data/attempts.ts";
import { BarChart, type Series } from "./bar_chart.tsx";
import { Card } from "./page_parts.tsx";
import { resultOf } from "./deliveries.tsx";
import { Mention } from "./mention.tsx";
import { Time } from "./text.tsx";
import { formatTime } from "../data/times.ts";

const SHOWN = 5;
/** The parts of the bars, from the bottom. */
const SERIES: readonly Series[] = [
  { name: "Delivered", tone: "good" },
  { name: "Failed", tone: "bad" },
];

/** The cards. Renders nothing before the first attempt. */
export function EndpointHealth({ deliveries, is_cut }: {
  deliveries: readonly WebhookDelivery[];
  /** Whether the endpoint has older deliveries. */
  is_cut: boolean;
}) {
  const attempts = attemptsOf(deliveries);
  if (attempts.length === 0) return null;
  const failures = attempts.filter(({ is_taken }) => !is_taken);
  const { percent, median_ms, slow_ms } = healthOf(attempts);
  return (
    <div class="health">
      <Card title="Success" actions={<strong class="large">{percent} %</strong>}>
        <BarChart
          title="Attempts"
          series={SERIES}
          bars={bucketsOf(attempts).map(({ from, taken, failed }) => ({
            label: formatTime(from),
            values: [taken, failed],
          }))}
          format={String}
        />
        <p class="quiet">
          {attempts.length - failures.length} of {attempts.length}{" "}
          {attempts.length === 1 ? "attempt" : "attempts"} succeeded
          {is_cut && `, of the newest ${deliveries.length} deliveries`}. Half of them took at most
          {" "}
          {median_ms} ms, and 95 % at most {slow_ms} ms.
        </p>
      </Card>
      <Card title="Newest failures">
        {failures.length === 0 ? <p class="quiet">No attempt has failed.</p> : (
          <ul class="failures">
            {failures.slice(0, SHOWN).map((failure) => (
              <Failure key={`${failure.delivery.id} ${failure.attempt.number}`} of={failure} />
            ))}
          </ul>
        )}
      </Card>
    </div>
  );
}

function Failure({ of: { attempt, delivery } }: { of: Attempt }) {
  const { event_type, payment_id } = delivery;
  return (
    <li>
      <span class="response bad">{resultOf(attempt)}</span>
      <code>{event_type}</code>
      <span class="quiet">attempt {attempt.number}</span>
      {payment_id && <Mention id={payment_id} />}
      <Time at={attempt.at} />
    </li>
  );
}
