/**
 * The next things that the clock of the sandbox brings, the button that advances it to one, and the
 * effect of an advance: what it will do, and what it has done.
 */

import { useState } from "preact/hooks";
import type { ClockAdvance, Due } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Card } from "./page_parts.tsx";
import { ConfirmDialog } from "./confirm_dialog.tsx";
import { listOfDue, textOfDue } from "../data/due.ts";
import { useLive } from "../data/live.ts";
import { may } from "../data/permissions.ts";
import { Empty, Reading } from "./notice.tsx";
import { Mention } from "./mention.tsx";
import { Time } from "./text.tsx";
import { formatTime } from "../data/times.ts";
import { countText } from "../data/words.ts";

type Item = Due["data"][number];

/** Milliseconds after its time until which a thing has happened. */
const MARGIN_MS = 1_000;

export function DueCard() {
  const [chosen, setChosen] = useState<number | null>(null);
  const live = useLive(call("sandbox", "due"));
  return (
    <Card title="What comes next">
      <Reading label="what comes next" live={live} rows={2}>
        {({ now, data, has_more }) =>
          data.length === 0 ? <Empty title="Nothing is due" /> : (
            <ul class="records">
              {data.map((item) => (
                <DueItem
                  key={item.kind}
                  item={item}
                  is_cut={has_more}
                  is_later={item.first_at > now}
                  choose={() => setChosen(Date.parse(item.first_at) + MARGIN_MS)}
                />
              ))}
            </ul>
          )}
      </Reading>
      {chosen !== null && <AdvanceDialog to_ms={chosen} close={() => setChosen(null)} />}
    </Card>
  );
}

/** The things of a kind. A single one leads to its resource, several to their list. */
function DueItem({ item: { kind, count, first_at, first_id }, is_cut, is_later, choose }: {
  item: Item;
  is_cut: boolean;
  is_later: boolean;
  choose: () => void;
}) {
  const text = textOfDue(kind);
  return (
    <li>
      <div class="record">
        <span>{text}</span>
        {count === 1
          ? <Mention id={first_id} />
          : <a href={listOfDue(kind)}>{countText(count)}{is_cut && " or more"} of them</a>}
        {is_later && may("sandbox.setClock") && (
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
        {count > 1 && <span>The first</span>}
        <Time at={first_at} />
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
      begins_at_act
      build={(options) => call("sandbox", "setClock", { to }, options)}
      done={textOfAdvance}
      close={close}
    >
      <AdvanceEffect to_ms={to_ms} />
    </ConfirmDialog>
  );
}

/** Says what an advance to a time will do, before it is made. */
export function AdvanceEffect({ to_ms }: { to_ms: number }) {
  const until = new Date(to_ms).toISOString();
  const live = useLive(call("sandbox", "due", { until }));
  return (
    <div class="effect">
      <p>
        The clock goes to{" "}
        <Time at={until} />, and never goes back: only a reset makes it the real one. Data that is
        older than 30 days then is deleted.
      </p>
      <Reading label="what is due until then" live={live} rows={2}>
        {({ data, has_more }) =>
          data.length === 0 ? <p>Nothing that waits now is due until then.</p> : (
            <>
              <p>This happens, and what follows from it:</p>
              <ul class="plain-list">
                {data.map(({ kind, count }) => (
                  <li key={kind}>{countText(count)}{has_more && " or more"} × {textOfDue(kind)}</li>
                ))}
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
  return `The clock shows ${formatTime(now)}. ${
    done.length > 0 ? done.join(", ") : "Nothing was due"
  }.`;
}
