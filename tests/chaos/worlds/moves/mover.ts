/** The operator's command that moves an account, as a process that is killed at its steps. */

import { pause } from "../../../support/common/until.ts";
import { startCells } from "../../../support/cells/cell_servers.ts";
import type { CellsProxy } from "../../../support/proxy/cells_proxy.ts";
import { Tally } from "../../harness/audit.ts";
import { killPostgres } from "../../harness/killer.ts";
import type { ApiServer, Stage } from "../../harness/stage.ts";

/** A cell: its database, its servers and its name at the proxy. */
export interface Cell {
  name: "a" | "b";
  stage: Stage;
  servers: ApiServer[];
}

/** The steps of a move, as the mover reports them. */
export const STEPS = [
  ...["copy", "drain", "fence", "seal"],
  ...["compare", "switch", "wake", "delete"],
] as const;
export const VICTIMS = ["mover", "source", "target"] as const;
export const ACCOUNT = "chaos";

export interface DueKill {
  step: string;
  victim: typeof VICTIMS[number];
}

export type Delay = (most_ms: number) => number;

/** The longest time from the line of a step to a kill: longer where the step takes longer. */
const DELAYS_MS: Readonly<Record<string, number>> = { copy: 3_000, delete: 300 };
const DELAY_MS = 60;

/** Moves an account from one cell to the other, or gives its move up. */
export class Mover {
  /** Kills by victim and step. */
  readonly kills = new Tally(STEPS.flatMap((step) => VICTIMS.map((who) => `${who} at ${step}`)));

  constructor(readonly proxy: CellsProxy) {}

  /** Starts the mover, and kills when it reports a step. Removes the kills from `left`. */
  async move(from: Cell, to: Cell, left: DueKill[], delay: Delay) {
    let killing: Promise<void> | null = null;
    let has_ended = false;
    const mover = this.start("move", from, to, (line) => {
      const index = left.findIndex(({ step }) => line.startsWith(`${step}:`));
      // One after the other: a database that recovers cannot be killed.
      if (index < 0 || killing !== null) return;
      const [due] = left.splice(index, 1) as [DueKill];
      killing = (async () => {
        const { step, victim } = due;
        await pause(delay(DELAYS_MS[step] ?? DELAY_MS));
        if (has_ended) left.push(due);
        else {
          this.kills.add(`${victim} at ${step}`);
          if (victim === "mover") mover.kill("SIGKILL");
          else await killPostgres((victim === "source" ? from : to).stage);
        }
        killing = null;
      })();
    });
    const ended = await mover.ended;
    has_ended = true;
    await killing;
    return ended;
  }

  start(action: "move" | "abort", from: Cell, to: Cell, onLine?: (line: string) => void) {
    const { map_file, socket } = this.proxy;
    const flags = ["--map", map_file, "--cell", to.name, "--socket", socket, "--run"];
    return startCells(
      [
        ...[`CELLS_FROM_URL=${from.stage.operator_url}`, `CELLS_TO_URL=${to.stage.operator_url}`],
        ...[action, "--account", ACCOUNT],
        ...(action === "move" ? flags : []),
      ],
      onLine,
    );
  }
}
