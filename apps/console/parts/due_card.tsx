/**
 * The next things that the clock of the sandbox brings, the button that advances it to one, and the
 * effect of an advance: what it will do, and what it has done.
 */

import { useState } from "preact/hooks";
import type { ClockAdvance } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Card } from "./page_parts.tsx";
import { ConfirmDialog } from "./confirm_dialog.tsx";
import { type DueGroup, dueUntil, useDues } from "../data/due.ts";
import { useLive } from "../data/live.ts";
import { Empty, Reading } from "./notice.tsx";
import { Mention } from "./mention.tsx";
import { Time } from "./text.tsx";

/** Number of kinds that the card shows. */
const SHOWN = 6;
/** Milliseconds after its time until which a thing has happened. */
const MARGIN_MS = 1_000;
/** Milliseconds between two reads of the clock. */
const EVERY_MS = 5_000;

/** The card. */
export function DueCard() {
  const [chosen, setChosen] = useState<number | null>(null);
  const clock = useLive(call("sandbox", "clock"), { every_ms: EVERY_MS });
  const { groups, is_cut, error } = useDues();
  return (
    <Card title="What comes next">
      <Reading
        label="what comes next"
        live={{ data: clock.data && groups, error: clock.error ?? error }}
        rows={2}
      >
        {(groups) =>
          groups.length === 0 ? <Empty title="Nothing is due" /> : (
            <>
              <ul class="records">
                {groups.slice(0, SHOWN).map((group) => (
                  <DueItem
                    key={`${group.text} ${group.list}`}
                    group={group}
                    now_ms={Date.parse(clock.data!.now)}
                    choose={() => setChosen(group.items[0]!.at_ms + MARGIN_MS)}
                  />
                ))}
              </ul>
              {(is_cut || groups.length > SHOWN) && <p class="quiet">There is more.</p>}
            </>
          )}
      </Reading>
      {chosen !== null && <AdvanceDialog to_ms={chosen} close={() => setChosen(null)} />}
    </Card>
  );
}

/** The things of a kind. A single one leads to its resource, several to their list. */
function DueItem({ group: { text, list, items }, now_ms, choose }: {
  group: DueGroup;
  now_ms: number;
  choose: () => void;
}) {
  const [{ at_ms, id }] = items as [DueGroup["items"][number]];
  return (
    <li>
      <div class="record">
        <span>{text}</span>
        {items.length === 1 ? <Mention id={id} /> : <a href={list}>{items.length} of them</a>}
        {at_ms > now_ms && (
          <button
            type="button"
            class="small"
            aria-label={`Advance the clock to: ${text}`}
            onClick={choose}
          >
            Advance…
          </button>
        )}
      </div>
      <div class="record-line">
        {items.length > 1 && <span>The first</span>}
        <Time at={new Date(at_ms).toISOString()} />
      </div>
    </li>
  );
}

function AdvanceDialog({ to_ms, close }: { to_ms: number; close: () => void }) {
  const to = new Date(to_ms).toISOString();
  return (
    <ConfirmDialog
      title="Advance the clock?"
      keep="Keep the time"
      act="Advance"
      acting="Advancing…"
      begins_at_act
      build={(options) => call("sandbox", "setClock", { to }, options)}
      done={textOfAdvance}
      close={close}
    >
      <AdvanceEffect to_ms={to_ms} />
    </ConfirmDialog>
  );
}

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
