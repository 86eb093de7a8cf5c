/**
 * The store of seeded sandboxes: the numbers of their requests, and their transcripts. Each call
 * runs one entry function in one round trip.
 */

import { ApiError } from "../core/errors.ts";
import { withoutRateCount } from "../domain/changes/service_request.ts";
import type { Places } from "../jobs/places.ts";
import type { EntryCalls } from "../store/entry_calls.ts";
import { type Access, requestParameter, type Row, withAnySettings } from "../store/outcome.ts";
import { parseSettings, type SandboxSettings } from "../store/sandbox_settings.ts";
import { sql } from "../store/statement.ts";

/** A row of `pay.transcript`. */
type TranscriptRow = Row<"not_seeded">;

/** The store of seeded sandboxes. Every statement waits for the turn of its tenant. */
export class SeededStore {
  readonly #calls: EntryCalls;
  readonly #places: Places;

  constructor(calls: EntryCalls, places: Places) {
    this.#calls = calls;
    this.#places = places;
  }

  /**
   * Gives a request its number. Returns the settings of its sandbox with that number; null if the
   * key is not valid or its sandbox has no seed.
   */
  async number(access: Access): Promise<SandboxSettings | null> {
    const [row] = await this.#calls.run<{ settings: string | null }>(
      access,
      ...sql`select pay.number_request(p_key_hash => ${access.key_hash}) as settings`,
    );
    return parseSettings(row!.settings);
  }

  async keep(access: Access, n: number, line: string): Promise<void> {
    const { key_hash, storage } = access;
    await this.#calls.run(
      access,
      ...sql`select pay.store_transcript_line(p_key_hash => ${key_hash}, p_n => ${n}::bigint,
        p_line => ${line}, p_storage_gb => ${storage?.gb}::int)`,
    );
  }

  /**
   * Returns the transcript of the caller's sandbox: a line for each request, each with a line feed.
   * The rest is read when it is taken, in parts, so that nobody holds much memory, and has a place
   * until its end. Throws `invalid_state` if the sandbox has no seed, and `rate_limited` if the
   * account has no place; the rest ends with an error after a reset.
   */
  async transcript(access: Access): Promise<{ begin: string; rest: AsyncGenerator<string> }> {
    const first = await this.#readPart(access, "0");
    const rest = this.#readRest(withoutRateCount(access), first);
    // Takes the place before the response begins.
    await rest.next();
    return { begin: first.body!, rest };
  }

  async #readPart(access: Access, after: string): Promise<TranscriptRow> {
    const row = await this.#calls.ask<TranscriptRow>(
      access,
      ...sql`select * from pay.transcript(p_request => ${requestParameter(access)},
        p_after => ${after}::bigint)`,
    );
    if (row.outcome !== "not_seeded") return row;
    throw new ApiError(
      "invalid_state",
      'This sandbox has no transcript: make one with a "seed"',
      { current_status: "unseeded", allowed: [] },
    );
  }

  async *#readRest(access: Access, first: TranscriptRow) {
    const place = await this.#places.long_waits.take([this.#calls.tenants.nameOf(access.key_hash)]);
    try {
      yield "";
      yield* this.#readOn(access, first);
    } finally {
      place.leave();
    }
  }

  async *#readOn(access: Access, first: TranscriptRow) {
    for (let part = first; part.detail;) {
      const after = part.detail;
      part = await withAnySettings(access, (access) => this.#readPart(access, after));
      if (part.environment_id !== first.environment_id) {
        throw new Error("The sandbox was reset while its transcript was read");
      }
      yield part.body!;
    }
  }
}
