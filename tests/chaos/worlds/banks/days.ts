/**
 * The bank of the run and the payers, a day at a time: which orders it books, rejects and returns,
 * and the files that tell of the day, in the order in which they arrive.
 */

import type { BankDouble, BookingForm, Movement } from "../../../support/bank/double.ts";
import type { Random } from "../../../support/core/random.ts";

/** The account at the bank. Its entries have no references, so their content is their identity. */
export const OWN_ACCOUNT = {
  iban: "DE89370400440532013000",
  bic: "COBADEFFXXX",
  currency: "EUR",
  has_references: false,
};

/** The transfers of payers, as parts of the amount. */
const PARTS = [[1], [1], [0.4, 0.6], [0.5, 0.5], [1.5], [1, 1], [0.5]];
const PAYER = { name: "Jan Payer", iban: "NL91ABNA0417164300" };
const CODES = { reject: ["AC01", "AC06", "AM04"], return: ["AC04", "MD01", "MD06", "MS03"] };

/** Orders of a file that the bank decides about together. */
interface OpenOrders {
  form: BookingForm;
  ids: string[];
}

export class BankDays {
  #open: OpenOrders[] = [];
  readonly #booked: string[] = [];
  #entries = 0;
  #late: string[] = [];

  constructor(readonly double: BankDouble, readonly random: Random) {}

  /** Takes a file of orders. Returns the bank's files about it. They come before statements. */
  async take(text: string): Promise<string[]> {
    const { iban } = OWN_ACCOUNT;
    const { orders, reply } = await this.double.run("take", iban, { text });
    const files = reply === null ? [] : [reply];
    const refused = orders
      .filter(({ state }) => this.random.chance(state === "held" ? 0.5 : 0.15));
    if (refused.length > 0) {
      const code = this.random.pick(CODES.reject);
      files.push(await this.double.run("reject", iban, { ids: idsOf(refused), code }));
    }
    const good = orders.filter((order) => !refused.includes(order));
    const held = good.filter(({ state }) => state === "held");
    await this.double.run("release", iban, { ids: idsOf(held) });
    for (const batch of Map.groupBy(good, (order) => order.batch).values()) {
      const form = this.random.pick<BookingForm>(["single", "single", "batch", "total"]);
      this.#open.push({ form, ids: idsOf(batch) });
    }
    return files;
  }

  /** The payer of a payment sends money with its reference: parts of the amount. */
  async pay(
    reference: string,
    amount: number,
    day: string,
    parts = this.random.pick(PARTS),
  ): Promise<void> {
    for (const part of parts) {
      await this.#move(day, { amount: Math.ceil(amount * part), reference, party: PAYER });
    }
  }

  /** Books money whose purpose nobody knows. */
  async receive(amount: number, day: string): Promise<void> {
    await this.#move(day, { amount, text: "no reference", party: PAYER });
  }

  /** Books and returns orders, and takes a charge. */
  async work(day: string, is_last: boolean): Promise<void> {
    const { iban } = OWN_ACCOUNT;
    const waiting: OpenOrders[] = [];
    for (const { form, ids } of this.#open) {
      // The bank books a batch at once.
      const left = form !== "single" || is_last ? [] : ids.filter(() => this.random.chance(0.3));
      const now = ids.filter((id) => !left.includes(id));
      if (left.length > 0) waiting.push({ form, ids: left });
      if (now.length > 0) await this.double.run("book", iban, { ids: now, day, form });
      this.#booked.push(...now);
    }
    this.#open = waiting;
    for (const id of this.#booked.splice(0)) {
      if (!this.random.chance(0.12)) this.#booked.push(id);
      else {
        const code = this.random.pick(CODES.return);
        await this.double.run("give_back", iban, { id, code, day });
      }
    }
    await this.#move(day, { amount: -this.random.integer(1, 500), family: "MCOP CHRG" });
  }

  /**
   * Returns the files about the entries since the last call, in the order in which they arrive:
   * reports and notifications have the same entries, and the statement of the day comes with those
   * of the next one.
   */
  async report(is_last: boolean): Promise<{ files: string[]; whole_day: string }> {
    const since = this.#entries;
    this.#entries = (await this.double.run("books", OWN_ACCOUNT.iban, {})).entries.length;
    const noon = this.random.integer(since, this.#entries);
    const write = async (message: string, from = since, until = this.#entries) => {
      const part = { message, since: from, until };
      return (await this.double.run("write", OWN_ACCOUNT.iban, part)).text;
    };
    const files = [
      await write("camt.052.001.02", since, noon),
      await write("camt.054.001.08", since, noon),
      await write("camt.054.001.02", noon),
      ...this.#late,
    ];
    this.#late = [await write("camt.053.001.08")];
    if (is_last) files.push(...this.#late);
    return { files: this.random.shuffled(files), whole_day: await write("camt.052.001.08") };
  }

  async #move(day: string, movement: Movement): Promise<void> {
    await this.double.run("move", OWN_ACCOUNT.iban, { day, ...movement });
  }
}

function idsOf(orders: readonly { id: string }[]): string[] {
  return orders.map(({ id }) => id);
}
