/** The success of an endpoint over time, and its newest failures, from its newest deliveries. */

import type { WebhookDelivery } from "../client/mod.ts";
import { type Attempt, attemptsOf, bucketsOf, healthOf } from "./attempts.ts";
import { resultOf } from "./deliveries.tsx";
import { Mention } from "./mention.tsx";
import { Time } from "./text.tsx";
import { formatTime } from "./times.ts";

/** Failures that the card shows. */
const SHOWN = 5;
/** The size of the chart in units of its view box. */
const [WIDTH, HEIGHT] = [480, 96];
/** The gap between two bars. */
const GAP = 4;

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
      <section class="card" aria-labelledby="success">
        <div class="card-title">
          <h2 id="success">Success</h2>
          <strong class="large">{percent} %</strong>
        </div>
        <Chart attempts={attempts} />
        <p class="quiet">
          {attempts.length - failures.length} of {attempts.length}{" "}
          {attempts.length === 1 ? "attempt" : "attempts"} succeeded
          {is_cut && `, of the newest ${deliveries.length} deliveries`}. Half of them took at most
          {" "}
          {median_ms} ms, and 95 % at most {slow_ms} ms.
        </p>
      </section>
      <section class="card" aria-labelledby="failures">
        <h2 id="failures">Newest failures</h2>
        {failures.length === 0 ? <p class="quiet">No attempt has failed.</p> : (
          <ul class="failures">
            {failures.slice(0, SHOWN).map((failure) => (
              <Failure key={`${failure.delivery.id} ${failure.attempt.number}`} of={failure} />
            ))}
          </ul>
        )}
      </section>
    </div>
  );
}

function Failure({ of: { attempt, delivery } }: { of: Attempt }) {
  const { event_type, payment_id } = delivery;
  return (
    <li>
      <span class="answer bad">{resultOf(attempt)}</span>
      <code>{event_type}</code>
      <span class="quiet">attempt {attempt.number}</span>
      {payment_id && <Mention section="payments" id={payment_id} />}
      <Time at={attempt.at} />
    </li>
  );
}

/** A bar for each part of the time, with the failures on top. */
function Chart({ attempts }: { attempts: readonly Attempt[] }) {
  const buckets = bucketsOf(attempts);
  const most = Math.max(...buckets.map(({ taken, failed }) => taken + failed));
  const step = WIDTH / buckets.length;
  const heightOf = (count: number) => count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
  const [first, last] = [buckets[0]!, buckets.at(-1)!];
  const failed = attempts.filter(({ is_taken }) => !is_taken).length;
  return (
    <figure class="chart">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Attempts from ${formatTime(first.from)} to ${formatTime(last.to)}: ` +
          `${attempts.length - failed} succeeded, ${failed} failed`}
      >
        {buckets.map((bucket, i) => {
          const [good, bad] = [heightOf(bucket.taken), heightOf(bucket.failed)];
          const shared = { x: i * step + GAP / 2, width: step - GAP };
          return (
            <g key={i}>
              <title>
                {formatTime(bucket.from)}: {bucket.taken} succeeded, {bucket.failed} failed
              </title>
              {/* The whole height, so that the title appears above a short bar. */}
              <rect {...shared} class="ground" y={0} height={HEIGHT} />
              <rect {...shared} class="good" y={HEIGHT - good} height={good} />
              <rect {...shared} class="bad" y={HEIGHT - good - bad} height={bad} />
            </g>
          );
        })}
      </svg>
      <figcaption>
        <Time at={first.from.toISOString()} />
        <Time at={last.to.toISOString()} />
      </figcaption>
    </figure>
  );
}
