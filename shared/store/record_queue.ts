/**
 * Results of providers that arrive while a statement records others share the next statement, as
 * requests do (coalescer.ts). There is no timer, so an idle service records a result at once.
 *
 * If a statement waits too long for a lock, or the database refuses it, each of its records is sent
 * again alone, so that none delays the others.
 */

import { sendApart } from "./apart.ts";
import { toApiError } from "./database.ts";
import type { ProviderRecord, RecordOutcome } from "./provider_rows.ts";

/** Most statements under way. The second one runs while the first waits for a lock. */
const MAX_UNDER_WAY = 2;
/** Most records of one statement. */
const MAX_RECORDS = 32;

interface Waiting {
  record: ProviderRecord;
  resolve: (outcome: RecordOutcome) => void;
  reject: (error: unknown) => void;
}

/** Sends a list of records in one statement. Throws the driver's error. */
type Send = (records: readonly ProviderRecord[]) => Promise<RecordOutcome[]>;

/** Records that wait for a statement. */
export class RecordQueue {
  readonly #send: Send;
  #waiting: Waiting[] = [];
  #under_way = 0;

  constructor(send: Send) {
    this.#send = send;
  }

  /** Sends a record, with others or alone. Throws `ApiError`. */
  add(record: ProviderRecord): Promise<RecordOutcome> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ record, resolve, reject });
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#under_way < MAX_UNDER_WAY && this.#waiting.length > 0) {
      this.#under_way++;
      this.#sendTogether(this.#waiting.splice(0, MAX_RECORDS)).finally(() => {
        this.#under_way--;
        this.#flush();
      });
    }
  }

  #sendTogether(list: Waiting[]): Promise<void> {
    return sendApart(list, {
      send: (entries) => this.#sendList(entries),
      refuse(entries, error) {
        for (const { reject } of entries) reject(toApiError(error));
      },
      in_order: false,
    });
  }

  async #sendList(list: readonly Waiting[]): Promise<void> {
    const outcomes = await this.#send(list.map(({ record }) => record));
    for (const [i, { resolve }] of list.entries()) resolve(outcomes[i]!);
  }
}
