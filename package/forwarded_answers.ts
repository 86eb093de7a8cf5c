/**
 * The newest answers that a running `listen` has got, in a file of the data folder, so that `trigger`
 * can show the answer to its event. The file exists as long as `listen` runs.
 */

import { readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { makeDataDir, writePrivately } from "./data_folder.ts";
import type { ForwardResult } from "./forwarding.ts";

/** An answer, and the delivery to which it belongs. */
interface ForwardedAnswer extends ForwardResult {
  delivery_id: string;
}

interface AnswersFile {
  /** The process of `listen`. A killed one leaves its file. */
  pid: number;
  answers: ForwardedAnswer[];
}

/** Answers that the file stores: those that come while `trigger` looks for its own. */
const MAX_KEPT = 20;

/** The answers of one endpoint. */
export class AnswersOfListener {
  readonly #path: string;
  #answers: ForwardedAnswer[] = [];

  /** Begins without answers. */
  constructor(data_dir: string, endpoint_id: string) {
    this.#path = pathOf(data_dir, endpoint_id);
    this.#write();
  }

  /** Stores an answer. */
  add(delivery_id: string, result: ForwardResult): void {
    this.#answers = [...this.#answers, { delivery_id, ...result }].slice(-MAX_KEPT);
    this.#write();
  }

  /** Deletes the file. */
  end(): void {
    rmSync(this.#path, { force: true });
  }

  #write(): void {
    const file: AnswersFile = { pid: process.pid, answers: this.#answers };
    try {
      makeDataDir(dirname(this.#path));
      writePrivately(this.#path, file);
    } catch {
      // Forwarding needs no file. Only `trigger` does not see the answers then.
    }
  }
}

/** Returns the newest answers of an endpoint, by delivery. Returns null if no `listen` runs for it. */
export function readAnswers(
  data_dir: string,
  endpoint_id: string,
): Map<string, ForwardResult> | null {
  try {
    const text = readFileSync(pathOf(data_dir, endpoint_id), "utf8");
    const { pid, answers } = JSON.parse(text) as AnswersFile;
    // It throws if there is no such process.
    process.kill(pid, 0);
    return new Map(answers.map(({ delivery_id, ...result }) => [delivery_id, result]));
  } catch {
    return null;
  }
}

function pathOf(data_dir: string, endpoint_id: string): string {
  return join(data_dir, `listener_${endpoint_id}.json`);
}
