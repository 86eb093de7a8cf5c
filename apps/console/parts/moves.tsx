/** The card with the buttons that advance a payment or a transfer to another status. */

import { useState } from "preact/hooks";
import { useAction } from "../data/action.ts";
import { FailureNotice } from "./notice.tsx";
import type { Build } from "../data/retry_key.ts";
import { label } from "../data/words.ts";

/** A status that can follow. */
interface Move {
  to: string;
  /** The cause of the move in the real world. */
  text: string;
  /** Builds the call, with the choice of the user if there is one. */
  build: (choice: string) => Build<unknown>;
  /** A choice that the move takes. The first option is chosen at the beginning. */
  choice?: { label: string; options: readonly (readonly [value: string, label: string])[] };
}

/** The buttons, or the text `none` if no status can follow. */
export function Moves({ moves, none }: { moves: readonly Move[]; none: string }) {
  const { failure, running, run } = useAction();
  return (
    <section class="card" aria-labelledby="moves">
      <h2 id="moves">Advance</h2>
      {moves.length === 0 ? <p class="quiet">{none}</p> : (
        <ul class="moves">
          {moves.map((move) => <MoveItem key={move.to} move={move} running={running} run={run} />)}
        </ul>
      )}
      {failure && <FailureNotice failure={failure} />}
    </section>
  );
}

function MoveItem(
  props: { move: Move } & Pick<ReturnType<typeof useAction>, "running" | "run">,
) {
  const { move: { to, text, build, choice }, running, run } = props;
  const [chosen, setChosen] = useState(choice?.options[0]?.[0] ?? "");
  return (
    <li>
      <button
        type="button"
        aria-disabled={running}
        onClick={() => run(build(chosen), `Advanced to ${label(to).toLowerCase()}.`)}
      >
        <span>{label(to)}</span>
        <span class="quiet">{text}</span>
      </button>
      {choice && (
        <label class="inline">
          <span>{choice.label}</span>
          <select value={chosen} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
            {choice.options.map(([value, name]) => (
              <option key={value} value={value}>{name}</option>
            ))}
          </select>
        </label>
      )}
    </li>
  );
}
