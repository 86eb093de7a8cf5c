/**
 * Starts the double of a bank: double.py as a process. It reads the product's files with mock-bank,
 * and writes its own with pyiso20022, so no code of the product decides what a bank says.
 * `.ci/bank_programs FOLDER` installs both, and BANK_PROGRAMS names the folder.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const FOLDER = Deno.env.get("BANK_PROGRAMS");
const PROGRAM = fileURLToPath(new URL("double.py", import.meta.url));

/** Whether tests with the double are skipped. In CI a missing program is a failure. */
export const no_bank_double = FOLDER === undefined && Deno.env.get("CI") === undefined;
if (no_bank_double) {
  console.warn("Tests with a bank are not run unless CI is set: BANK_PROGRAMS is not set");
}

/** A movement that belongs to no order. */
export interface Movement {
  /** Negative if money leaves. */
  amount: number;
  /** Family and sub-family of its transaction code; by default those of a credit transfer. */
  family?: string;
  /** Without any of these, the entry has no details. */
  text?: string;
  reference?: string;
  /** `EndToEndId` */
  id?: string;
  party?: { name: string; iban: string };
  return?: string;
}

/** A file of the bank. */
interface WrittenFile {
  text: string;
  entries: number;
}

/** An order that the bank has got. */
interface TakenOrder {
  id: string;
  batch: string;
  /** `held`: its payee does not match, and it waits for the customer. */
  state: "taken" | "held";
}

/** Everything that the bank has booked, and the state of each order. */
export interface BankBooks {
  /** `of`: the id of an order, or the reference of a payment. */
  entries: { amount: number; parts: { amount: number; of: string | null }[] }[];
  orders: Record<string, TakenOrder["state"] | "rejected" | "recalled" | "booked" | "returned">;
  /** The mandate of each collection. */
  mandates: Record<string, string>;
  /** The code of each order that the bank has rejected or returned. */
  codes: Record<string, string>;
}

/** The commands of an account at the bank, with their parameters and results. */
interface Commands {
  open: [{ bic: string; currency: string; has_references?: boolean }, null];
  /** Takes a file of orders. Returns them, and the bank's reply; null: it has the file already. */
  take: [{ text: string }, { orders: TakenOrder[]; reply: string | null }];
  release: [{ ids: string[] }, null];
  /** Returns the status report. */
  reject: [{ ids: string[]; code: string; is_whole?: boolean }, string];
  book: [{ ids: string[]; day: string; form?: BookingForm }, null];
  give_back: [{ id: string; code: string; day: string }, null];
  move: [Movement & { day: string }, null];
  /** Writes entries by their numbers in the books. */
  write: [{ message: string; since?: number; until?: number; opening?: number }, WrittenFile];
  books: [Record<never, never>, BankBooks];
}

/**
 * The form in which a bank books orders: each alone, or those of a batch together. Notifications
 * list the orders of a `batch`, statements do not. Nothing lists those of a `total`.
 */
export type BookingForm = "single" | "batch" | "total";

/** A running double. */
export class BankDouble {
  readonly #child: Deno.ChildProcess;
  readonly #input: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting: PromiseWithResolvers<unknown>[] = [];
  readonly #reading: Promise<void>;

  /** Starts a bank without accounts. */
  constructor() {
    if (FOLDER === undefined) throw new Error("BANK_PROGRAMS is not set: see .ci/bank_programs");
    const child = new Deno.Command(join(FOLDER, "bin/python"), {
      args: [PROGRAM],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    this.#child = child;
    this.#input = child.stdin.getWriter();
    this.#reading = this.#read();
  }

  /** Runs a command of an account. Throws if the bank refuses it. */
  async run<Name extends keyof Commands>(
    name: Name,
    iban: string,
    parameters: Commands[Name][0],
  ): Promise<Commands[Name][1]> {
    const reply = Promise.withResolvers<unknown>();
    this.#waiting.push(reply);
    const line = JSON.stringify({ do: name, iban, ...parameters });
    await this.#input.write(new TextEncoder().encode(`${line}\n`));
    const { result, error } = await reply.promise as { result: Commands[Name][1]; error?: string };
    if (error !== undefined) throw new Error(`the bank refuses ${name}: ${error}`);
    return result;
  }

  async close(): Promise<void> {
    await this.#input.close();
    await this.#reading;
    await this.#child.status;
  }

  async #read(): Promise<void> {
    let text = "";
    for await (const chunk of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const lines = text.split("\n");
      text = lines.pop()!;
      for (const line of lines) this.#waiting.shift()!.resolve(JSON.parse(line));
    }
    for (const reply of this.#waiting.splice(0)) reply.reject(new Error("the bank has ended"));
  }
}
