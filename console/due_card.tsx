/** The next things that the clock of the sandbox brings, and the button that advances it to one. */

import { useState } from "preact/hooks";
import { MAX_PAGE } from "../shared/schema/limits.ts";
import { call } from "./calls.ts";
import { ConfirmDialog } from "./confirm_dialog.tsx";
import { type Due, dueOf } from "./due.ts";
import { useLive } from "./live.ts";
import { Mention } from "./mention.tsx";
import { Empty, Reading } from "./notice.tsx";
import { Time } from "./text.tsx";

/** Number of things that the card shows. */
const SHOWN = 6;
/** Milliseconds between two reads. */
const EVERY_MS = 5_000;

/** The card. */
export function DueCard() {
  const [chosen, setChosen] = useState<Due | null>(null);
  const every = { every_ms: EVERY_MS };
  const read = (status: "authorized" | "requires_action" | "pending") =>
    call("payments", "list", { status, limit: MAX_PAGE });
  const clock = useLive(call("sandbox", "clock"), every);
  const lives = [
    useLive(read("authorized"), every),
    useLive(read("requires_action"), every),
    useLive(read("pending"), every),
  ];
  const disputes = useLive(
    call("disputes", "list", { status: "needs_response", limit: MAX_PAGE }),
    every,
  );
  const deliveries = useLive(
    call("webhookDeliveries", "list", { status: "pending", limit: MAX_PAGE }),
    every,
  );
  const payments = lives.flatMap(({ data }) => data?.data ?? []);
  const is_read = [clock, disputes, deliveries, ...lives].every(({ data }) => data !== null);
  const error = [clock, disputes, deliveries, ...lives]
    .find((live) => live.error !== null)?.error ?? null;
  const due = is_read
    ? dueOf(payments, disputes.data!.data, deliveries.data!.data).slice(0, SHOWN)
    : null;
  return (
    <section class="card" aria-labelledby="due">
      <h2 id="due">What comes next</h2>
      <Reading label="what comes next" live={{ data: due, error }} rows={2}>
        {(items) =>
          items.length === 0 ? <Empty title="Nothing is due" /> : (
            <ul class="records">
              {items.map((item) => (
                <DueItem
                  key={`${item.id} ${item.text}`}
                  item={item}
                  now_ms={Date.parse(clock.data!.now)}
                  choose={() => setChosen(item)}
                />
              ))}
            </ul>
          )}
      </Reading>
      {chosen && <AdvanceDialog due={chosen} close={() => setChosen(null)} />}
    </section>
  );
}

function DueItem({ item, now_ms, choose }: { item: Due; now_ms: number; choose: () => void }) {
  return (
    <li>
      <div class="record">
        <span>{item.text}</span>
        <Mention id={item.id} />
        {item.at_ms > now_ms && (
          <button
            type="button"
            class="small"
            aria-label={`Advance the clock to: ${item.text}`}
            onClick={choose}
          >
            Advance…
          </button>
        )}
      </div>
      <div class="record-line">
        <Time at={new Date(item.at_ms).toISOString()} />
      </div>
    </li>
  );
}

function AdvanceDialog({ due, close }: { due: Due; close: () => void }) {
  const to = new Date(due.at_ms).toISOString();
  return (
    <ConfirmDialog
      title="Advance the clock?"
      keep="Keep the time"
      act="Advance"
      acting="Advancing…"
      build={(options) => call("sandbox", "setClock", { to }, options)}
      done="The clock has advanced."
      close={close}
    >
      <p>
        The clock of the sandbox goes to{" "}
        <Time at={to} />. Everything that is due until then happens, in the order of time. A clock
        never goes back; a reset makes it the real one.
      </p>
    </ConfirmDialog>
  );
}
