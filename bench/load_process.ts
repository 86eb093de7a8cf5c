/** The benchmark's end of the load generator: starts the process, gives it orders, ends it. */

import { fileURLToPath } from "node:url";
import type { LoadOrder, LoadResult } from "./load_order.ts";
import { TextLineStream } from "./text_line_stream.ts";

const PROGRAM = fileURLToPath(new URL("load_generator.ts", import.meta.url));

/** A running load generator; one order at a time. */
export interface LoadProcess {
  readonly pid: number;
  run(order: LoadOrder): Promise<LoadResult>;
  stop(): Promise<void>;
}

/** Starts the load generator. */
export function startLoadProcess(): LoadProcess {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-net=127.0.0.1", PROGRAM],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const orders = child.stdin.getWriter();
  const results = child.stdout.pipeThrough(new TextLineStream()).getReader();
  return {
    pid: child.pid,
    async run(order) {
      await orders.write(new TextEncoder().encode(JSON.stringify(order) + "\n"));
      const { value } = await results.read();
      if (value === undefined) throw new Error("the load generator has ended");
      return JSON.parse(value);
    },
    async stop() {
      await orders.close();
      await child.status;
    },
  };
}
