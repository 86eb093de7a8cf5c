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

/** The store of seeded sandboxes. */
export interface SeededStore {
  /**
   * Gives a request its number. Returns the settings of its sandbox with that number; null if the
   * key is not valid or its sandbox has no seed.
   */
  number(access: Access): Promise<SandboxSettings | null>;
  /** Stores a line of the transcript. */
  keep(access: Access, n: number, line: string): Promise<void>;
  /**
   * Returns the transcript of the caller's sandbox: a line for each request, each with a line feed.
   * The rest is read when it is taken, in parts, so that nobody holds much memory, and has a place
   * until its end. Throws `invalid_state` if the sandbox has no seed, and `rate_limited` if the
   * account has no place; the rest ends with an error after a reset.
   */
  transcript(access: Access): Promise<{ begin: string; rest: AsyncGenerator<string> }>;
}

const NUMBER = `select pay.number_request(p_key_hash => $1::text) as settings`;
const STORE = `select pay.store_transcript_line(
  p_key_hash => $1::text, p_n => $2::text::bigint, p_line => $3::text,
  p_storage_gb => $4::int)`;
const TRANSCRIPT = `select * from pay.transcript(
  p_request => $1::text, p_after => $2::text::bigint)`;

/** Creates the store over the entry functions. Every statement waits for the turn of its tenant. */
export function createSeededStore(calls: EntryCalls, { long_waits }: Places): SeededStore {
  async function readPart(access: Access, after: string) {
    const parameters = [requestParameter(access), after];
    const row = await calls.ask<Row<"not_seeded">>(access, TRANSCRIPT, parameters);
    if (row.outcome !== "not_seeded") return row;
    throw new ApiError(
      "invalid_state",
      'This sandbox has no transcript: make one with a "seed"',
      { current_status: "unseeded", allowed: [] },
    );
  }
  async function* readRest(access: Access, first: Awaited<ReturnType<typeof readPart>>) {
    const place = await long_waits.take([calls.tenants.nameOf(access.key_hash)]);
    try {
      yield "";
      yield* readOn(access, first);
    } finally {
      place.leave();
    }
  }
  async function* readOn(access: Access, first: Awaited<ReturnType<typeof readPart>>) {
    for (let part = first; part.detail;) {
      const after = part.detail;
      part = await withAnySettings(access, (access) => readPart(access, after));
      if (part.environment_id !== first.environment_id) {
        throw new Error("The sandbox was reset while its transcript was read");
      }
      yield part.body!;
    }
  }
  return {
    async number(access) {
      const { key_hash } = access;
      const [row] = await calls.run<{ settings: string | null }>(access, NUMBER, [key_hash]);
      return parseSettings(row!.settings);
    },

    async keep(access, n, line) {
      const storage_gb = access.storage?.gb ?? null;
      await calls.run(access, STORE, [access.key_hash, String(n), line, storage_gb]);
    },

    async transcript(access) {
      const first = await readPart(access, "0");
      const rest = readRest(withoutRateCount(access), first);
      // Takes the place before the response begins.
      await rest.next();
      return { begin: first.body!, rest };
    },
  };
}
