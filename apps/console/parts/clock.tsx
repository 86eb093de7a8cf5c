/** The clock of the sandbox in the head of the console, and the dialog that sets it. */

import { useState } from "preact/hooks";
import { call } from "../data/calls.ts";
import { useClock } from "../data/clock.ts";
import { AdvanceEffect, textOfAdvance } from "./due_card.tsx";
import { ConfirmDialog } from "./confirm_dialog.tsx";
import { useDraft } from "../data/draft.ts";
import { may } from "../data/permissions.ts";
import { SelectField, TextField } from "./fields.tsx";
import { Time } from "./text.tsx";
import {
  EXAMPLE_TIME,
  formatMinute,
  formatTime,
  parseTime,
  TIME_ZONE,
  timeOf,
} from "../data/times.ts";

/** Seconds and names of the advances that the dialog offers. */
const ADVANCES = [
  ["", "nothing"],
  ["60", "1 minute"],
  ["3600", "1 hour"],
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
  ["31536000", "365 days"],
  ["to", "to a time…"],
] as const;

/** Shows the time of the sandbox. A button opens the dialog. */
export function ClockButton() {
  const clock = useClock();
  const [open, setOpen] = useState(false);
  if (clock === null) return null;
  const { now, mode, target } = clock;
  const is_real = mode === "real" && clock.offset_seconds === 0;
  if (!may("sandbox.setClock")) {
    return is_real ? null : <p class="quiet clock">{formatMinute(now)}</p>;
  }
  return (
    <>
      <button
        type="button"
        class="plain clock"
        title={`The clock of the sandbox shows ${formatTime(now)}`}
        onClick={() => setOpen(true)}
      >
        {is_real ? "Clock" : formatMinute(now)}
        {mode === "frozen" && <span class="wide-only">&nbsp;· frozen</span>}
      </button>
      {open && <ClockDialog now={now} mode={mode} target={target} close={() => setOpen(false)} />}
    </>
  );
}

function ClockDialog({ now, mode, target, close }: {
  now: string;
  mode: "real" | "frozen";
  target: string | null;
  close: () => void;
}) {
  const { draft: { seconds, to, next }, field } = useDraft({
    seconds: "86400",
    to: "",
    next: mode as string,
  });
  const from_ms = Date.parse(target ?? now);
  const to_ms = seconds === "to"
    ? Date.parse(parseTime(to) ?? "")
    : seconds !== ""
    ? from_ms + Number(seconds) * 1_000
    // A frozen clock that runs again first advances to the real time.
    : mode === "frozen" && next === "real"
    ? Date.now()
    : from_ms;
  return (
    <ConfirmDialog
      title="Set the clock of the sandbox?"
      keep="Keep the time"
      act="Set the clock"
      begins_at_act
      build={(options) =>
        call("sandbox", "setClock", {
          ...(seconds === "to"
            ? { to: timeOf("to", to) }
            : seconds !== "" && { advance: Number(seconds) }),
          mode: next === "frozen" ? "frozen" : "real",
        }, options)}
      done={textOfAdvance}
      close={close}
    >
      <p>
        It shows <Time at={now} />
        {mode === "frozen" ? " and stands" : ""}. {target !== null && (
          <>
            It is on its way to <Time at={target} />.{" "}
          </>
        )}
        Everything of this sandbox obeys it.
      </p>
      <SelectField {...field("seconds", "Advance by", "advance")} options={ADVANCES} />
      {seconds === "to" && (
        <TextField
          {...field("to", "Time")}
          placeholder={EXAMPLE_TIME}
          hint={`In the time zone ${TIME_ZONE}, or RFC 3339. At most 400 days ahead.`}
        />
      )}
      <SelectField
        {...field("next", "After that", "mode")}
        options={[["real", "the clock runs"], ["frozen", "the clock is frozen"]]}
      />
      {to_ms > from_ms && <AdvanceEffect to_ms={to_ms} />}
    </ConfirmDialog>
  );
}
