/**
 * The newest responses that a running `listen` has got, in a file of the data folder, so that
 * `trigger` can show the response to its event. The file exists as long as `listen` runs.
 */

import { readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { makeDataDir, writePrivately } from "./data_folder.ts";
import type { ForwardResult } from "./forwarding.ts";

/** A response, and the delivery to which it belongs. */
interface ForwardedResponse extends ForwardResult {
  delivery_id: string;
}

interface ResponsesFile {
  /** The process of `listen`. A killed one leaves its file. */
  pid: number;
  responses: ForwardedResponse[];
}

/** Responses that the file stores: those that come while `trigger` looks for its own. */
const MAX_KEPT = 20;

/** The responses of one endpoint. */
export class ResponsesOfListener {
  readonly #path: string;
  #responses: ForwardedResponse[] = [];

  /** Begins without responses. */
  constructor(data_dir: string, endpoint_id: string) {
    this.#path = pathOf(data_dir, endpoint_id);
    this.#write();
  }

  /** Stores a response. */
  add(delivery_id: string, result: ForwardResult): void {
    this.#responses = [...this.#responses, { delivery_id, ...result }].slice(-MAX_KEPT);
    this.#write();
  }

  /** Deletes the file. */
  end(): void {
    rmSync(this.#path, { force: true });
  }

  #write(): void {
    const file: ResponsesFile = { pid: process.pid, responses: this.#responses };
    try {
      makeDataDir(dirname(this.#path));
      writePrivately(this.#path, file);
    } catch {
      // Forwarding needs no file. Only `trigger` does not see the responses then.
    }
  }
}

/**
 * Returns the newest responses of an endpoint, by delivery. Returns null if no `listen` runs for
 * it.
 */
export function readResponses(
  data_dir: string,
  endpoint_id: string,
): Map<string, ForwardResult> | null {
  try {
    const text = readFileSync(pathOf(data_dir, endpoint_id), "utf8");
    const { pid, responses } = JSON.parse(text) as ResponsesFile;
    // It throws if there is no such process.
    process.kill(pid, 0);
    return new Map(responses.map(({ delivery_id, ...result }) => [delivery_id, result]));
  } catch {
    return null;
  }
}

function pathOf(data_dir: string, endpoint_id: string): string {
  return join(data_dir, `listener_${endpoint_id}.json`);
}
