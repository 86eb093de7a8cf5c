/** The card with the buttons that advance a payment or a transfer to another status. */

import { useAction } from "./action.ts";
import type { Call } from "./calls.ts";
import { FailureNotice } from "./notice.tsx";
import { label } from "./words.ts";

/** A status that can follow. */
interface Move {
  to: string;
  /** The cause of the move in the real world. */
  text: string;
  call: Call<unknown>;
}

/** The buttons, or the text `none` if no status can follow. */
export function Moves({ moves, none }: { moves: readonly Move[]; none: string }) {
  const { failure, running, run } = useAction();
  return (
    <section class="card" aria-labelledby="moves">
      <h2 id="moves">Advance</h2>
      {moves.length === 0 ? <p class="quiet">{none}</p> : (
        <ul class="moves">
          {moves.map(({ to, text, call }) => (
            <li key={to}>
              <button
                type="button"
                aria-disabled={running}
                onClick={() => run(call, `Advanced to ${label(to).toLowerCase()}.`)}
              >
                <span>{label(to)}</span>
                <span class="quiet">{text}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {failure && <FailureNotice failure={failure} />}
    </section>
  );
}
