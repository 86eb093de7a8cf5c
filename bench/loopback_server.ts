/** A small server of the benchmark's own, as a process of its own on a free port of loopback. */

import { fileURLToPath } from "node:url";
import { TextLineStream } from "./text_line_stream.ts";

/** A running server. */
export interface LoopbackServer {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts a program of this folder that prints its port; resolves when it listens. */
export async function startLoopbackServer(program: string): Promise<LoopbackServer> {
  const server = new Deno.Command(Deno.execPath(), {
    args: ["run", "--allow-net=127.0.0.1", fileURLToPath(new URL(program, import.meta.url))],
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const lines = server.stdout.pipeThrough(new TextLineStream()).getReader();
  const port = Number((await lines.read()).value);
  return {
    pid: server.pid,
    port,
    async stop() {
      server.kill("SIGTERM");
      await server.status;
    },
  };
}
