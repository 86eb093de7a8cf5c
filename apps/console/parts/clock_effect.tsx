/** The effect of an advance of the sandbox's clock: what it will do, and what it has done. */

import type { ClockAdvance } from "../../../packages/client/mod.ts";
import { dueUntil, useDues } from "../data/due.ts";
import { Reading } from "./notice.tsx";
import { Time } from "./text.tsx";

/** Number of kinds of things that the effect names. */
const NAMED = 6;

/** Says what an advance to a time will do, before it is made. */
export function AdvanceEffect({ to_ms }: { to_ms: number }) {
  const { groups, is_cut, error } = useDues();
  const due = groups && dueUntil(groups, to_ms);
  return (
    <div class="effect">
      <p>
        The clock goes to{" "}
        <Time at={new Date(to_ms).toISOString()} />, and never goes back: only a reset makes it the
        real one. Data that is older than 30 days then is deleted.
      </p>
      <Reading label="what is due until then" live={{ data: due, error }} rows={2}>
        {(due) =>
          due.length === 0 ? <p>Nothing that waits now is due until then.</p> : (
            <>
              <p>{is_cut ? "At least this" : "This"} happens:</p>
              <ul class="plain-list">
                {due.slice(0, NAMED).map(({ text, list, items }) => (
                  <li key={`${text} ${list}`}>{items.length} × {text}</li>
                ))}
                {due.length > NAMED && <li>{due.length - NAMED} other kinds of things</li>}
              </ul>
            </>
          )}
      </Reading>
    </div>
  );
}

/** Says where the clock stands after an advance, and what became due. */
export function textOfAdvance({ now, did }: ClockAdvance): string {
  const done = ([
    [did.deliveries, "attempt", "to deliver"],
    [did.expired_payments, "payment", "ended"],
    [did.disputes_closed, "dispute", "closed"],
    [did.purged, "row", "deleted"],
  ] as const).filter(([count]) => count !== 0)
    .map(([count, noun, what]) => `${count} ${noun}${count === 1 ? "" : "s"} ${what}`);
  return `The clock shows ${now}. ${done.length > 0 ? done.join(", ") : "Nothing was due"}.`;
}
