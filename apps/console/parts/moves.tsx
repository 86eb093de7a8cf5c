/** The card with the buttons that advance a payment or a transfer to another status. */

import { useState } from "preact/hooks";
import { type Action, ActionButton, useAction } from "./action.tsx";
import { Card } from "./page_parts.tsx";
import { InlineSelect, type Option } from "./fields.tsx";
import type { Build } from "../data/retry_key.ts";
import { refusalOfCall } from "../data/permissions.ts";
import { label } from "../data/words.ts";

/** A status that can follow. */
interface Move {
  to: string;
  /** The cause of the move in the real world. */
  text: string;
  /** Builds the call, with the choice of the user if there is one. */
  build: (choice: string) => Build<unknown>;
  /** A choice that the move takes. The first option is chosen at the beginning. */
  choice?: { label: string; options: readonly Option[] };
}

/**
 * The buttons, or the text `none` if no status can follow. Renders nothing if the key may not make
 * the moves.
 */
export function Moves({ moves, none }: { moves: readonly Move[]; none: string }) {
  const action = useAction();
  if (moves[0] && refusalOfCall(moves[0].build("")({}))) return null;
  return (
    <Card title="Advance">
      {moves.length === 0 ? <p class="quiet">{none}</p> : (
        <ul class="moves">
          {moves.map((move) => <MoveItem key={move.to} move={move} action={action} />)}
        </ul>
      )}
      {action.notice}
    </Card>
  );
}

function MoveItem({ move, action }: { move: Move; action: Action }) {
  const { to, text, build, choice } = move;
  const [chosen, setChosen] = useState(choice?.options[0]?.[0] ?? "");
  return (
    <li>
      <ActionButton
        of={action}
        build={build(chosen)}
        done={`Advanced to ${label(to).toLowerCase()}.`}
      >
        <span>{label(to)}</span>
        <span class="quiet">{text}</span>
      </ActionButton>
      {choice && (
        <InlineSelect
          label={choice.label}
          value={chosen}
          set={setChosen}
          options={choice.options}
        />
      )}
    </li>
  );
}
