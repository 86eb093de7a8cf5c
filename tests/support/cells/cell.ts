/** A cell as an operator deploys it: `deno task serve` over a database of its own. */

import { freePort } from "../common/free_port.ts";
import type { TestDatabase } from "../database/database.ts";
import { openStage } from "../production/production_stage.ts";

/** A running cell with a sandbox. */
interface Cell {
  /** The key of the sandbox. */
  key: string;
  /** `127.0.0.1:<port>` */
  address: string;
  /** Sends SIGKILL to the instance. */
  kill(): Promise<void>;
  /** Launches another instance in place of the killed one. */
  restart(): Promise<void>;
  /** Lets the instance accept connections and do nothing else. */
  freeze(): void;
  resume(): void;
  /** Counts the stored payments. */
  payments(): Promise<number>;
}

/**
 * Launches a cell whose keys have the label. `open` closes everything.
 * @param database a migrated database in place of a new one
 */
export async function openCell(
  open: AsyncDisposableStack,
  label: string,
  database?: TestDatabase,
): Promise<Cell> {
  const { key, sql, launch } = await openStage(open, {
    prefix: label,
    ...(database && { database }),
  });
  const port = freePort();
  let instance = await launch(port);
  return {
    key,
    address: `127.0.0.1:${port}`,
    kill: async () => void await instance.end("SIGKILL"),
    async restart() {
      instance = await launch(port);
    },
    freeze: () => instance.send("SIGSTOP"),
    resume: () => instance.send("SIGCONT"),
    async payments() {
      const [row] = await sql`select count(*)::int as n from pay.payments`;
      return row!.n;
    },
  };
}
