/** The store of checkouts. Each call runs one entry function in one round trip. */

import { tryAgain } from "../core/errors.ts";
import type { StoredResponse } from "./commit_rows.ts";
import type { EntryCalls } from "./entry_calls.ts";
import {
  type Access,
  type Idempotency,
  requestParameter,
  type Responded,
  responseOf,
  type Row,
} from "./outcome.ts";

/** A new row of `pay.checkouts`. */
export interface CheckoutRow {
  id: string;
  salt: string;
  /** Lower-case hex. */
  token_hash: string;
  max_payments: number | null;
  reference: string | null;
  customer_id: string | null;
  expires_at: string | null;
  created_at: string;
  /** The members that never change, as JSON text. */
  body: string;
}

const CREATE = "select * from pay.create_checkout(p_request => $1::text, p_checkout => $2::text)";
const CANCEL = `select * from pay.cancel_checkout(p_request => $1::text, p_id => $2::text,
  p_revision => $3::int, p_cancels => $4::text::boolean)`;

/** Most open checkouts of a sandbox, as in `pay_internal.most_open_checkouts`. */
export const MOST_OPEN_CHECKOUTS = 1_000;

export class CheckoutStore {
  readonly #calls: EntryCalls;

  constructor(calls: EntryCalls) {
    this.#calls = calls;
  }

  /** Creates a checkout. Throws `rate_limited` if the sandbox has too many open ones. */
  async create(
    access: Access,
    checkout: CheckoutRow,
    response: StoredResponse,
    idempotency: Idempotency | null,
  ): Promise<Responded> {
    const row = await this.#calls.ask<Row<"full">>(access, CREATE, [
      requestParameter(access, idempotency, response),
      JSON.stringify(checkout),
    ]);
    if (row.outcome === "full") {
      throw tryAgain(
        "rate_limited",
        `The sandbox has ${MOST_OPEN_CHECKOUTS} open checkouts, which is the limit: cancel some, let their ` +
          "time end, or reset the sandbox",
      );
    }
    return responded(row, response);
  }

  /**
   * Cancels a checkout that is at a revision, or stores the refusal. Returns null if the checkout
   * has changed since.
   */
  async cancel(
    access: Access,
    { id, revision, is_refused }: { id: string; revision: number; is_refused: boolean },
    response: StoredResponse,
    idempotency: Idempotency | null,
  ): Promise<Responded | null> {
    const row = await this.#calls.ask<Row<"stale">>(access, CANCEL, [
      requestParameter(access, idempotency, response),
      ...[id, revision, String(!is_refused)],
    ]);
    return row.outcome === "stale" ? null : responded(row, response);
  }
}

function responded(row: Row<string>, response: StoredResponse): Responded {
  return row.outcome === "replay"
    ? { response: responseOf(row), replayed: true }
    : { response, replayed: false };
}
