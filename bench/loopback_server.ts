/** A small server of the benchmark's own, as a process of its own on a free port of loopback. */

import { fileURLToPath } from "node:url";
import { PROJECT_DIR } from "./product.ts";
import { TextLineStream } from "./text_line_stream.ts";

/** A running server. */
export interface LoopbackServer {
  readonly pid: number;
  readonly port: number;
  stop(): Promise<void>;
}

/** What a server of the benchmark needs beside the network of loopback. */
export interface LoopbackOptions {
  permissions?: readonly string[];
  args?: readonly string[];
  env?: Record<string, string>;
}

/** Starts a program of this folder that prints its port; resolves when it listens. */
export async function startLoopbackServer(
  program: string,
  { permissions = ["--allow-net=127.0.0.1"], args = [], env = {} }: LoopbackOptions = {},
): Promise<LoopbackServer> {
  const path = fileURLToPath(new URL(program, import.meta.url));
  const server = new Deno.Command(Deno.execPath(), {
    args: ["run", ...permissions, path, ...args],
    cwd: PROJECT_DIR,
    env,
    stdin: "null",
    stdout: "piped",
  }).spawn();
  let is_ended = false;
  const ended = server.status.then(() => is_ended = true);
  const lines = server.stdout.pipeThrough(new TextLineStream()).getReader();
  const { value } = await lines.read();
  if (value === undefined) throw new Error(`${program} did not start`);
  return {
    pid: server.pid,
    port: Number(value),
    async stop() {
      if (!is_ended) server.kill("SIGTERM");
      await ended;
    },
  };
}
