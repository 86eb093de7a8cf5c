/**
 * The headers that a form can send: an idempotency key of the user's own, with the request sent
 * twice, and a fault of this request. A second request with the same key gets the stored response
 * of the first one and has no effect (contract §5). The client retries after a fault (contract §7).
 */

import { ApiError, type Exchange, type RequestOptions } from "../../../packages/client/mod.ts";
import { FAULTS } from "../../../shared/core/vocabulary.ts";
import { MAX_IDEMPOTENCY_KEY } from "../../../shared/schema/limits.ts";
import { type Call, change } from "../data/calls.ts";
import { FieldError } from "../data/failure.ts";
import { fieldsOf } from "../data/draft.ts";
import { optionsOf, SelectField, TextField } from "./fields.tsx";
import type { Build } from "../data/retry_key.ts";
import { href } from "../data/route.ts";
import { label } from "../data/words.ts";

/** The names of the headers, and of the fields in errors of the API. */
const HEADER = "Idempotency-Key";
const FAULT_HEADER = "Sandbox-Fault";
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** The first choice of the user. The fields have an effect only while they are open. */
export const FIRST_CHOICE = {
  is_open: false,
  /** Empty: the form makes a new key. */
  key: "",
  twice: false,
  /** The fault of the first attempt. Empty: none. */
  fault: "" as typeof FAULTS.request[number] | "",
  delay_ms: "1000",
};
type IdempotencyChoice = typeof FIRST_CHOICE;

/** The end of a call: its response, or the error that it has thrown. */
type Outcome<T> = { value: T } | { error: unknown };

/**
 * Returns the key that the user has typed, or null if there is none.
 * @throws {FieldError} if the API would refuse it
 */
export function ownKey({ is_open, key }: IdempotencyChoice): string | null {
  const text = key.trim();
  if (!is_open || text === "") return null;
  if (text.length <= MAX_IDEMPOTENCY_KEY && VISIBLE_ASCII.test(text)) return text;
  throw new FieldError(
    HEADER,
    `Use 1 to ${MAX_IDEMPOTENCY_KEY} plain letters, digits and punctuation marks, without spaces`,
  );
}

/** The option for the chosen fault. The API checks the duration of a delay. */
function faultOf({ is_open, fault, delay_ms }: IdempotencyChoice): RequestOptions {
  if (!is_open || fault === "") return {};
  return { sandboxFault: fault === "delay" ? { delay_ms: Number(delay_ms) } : fault };
}

/**
 * Makes a call once or twice. `told` says what the fault has done, and what happened to the
 * idempotency key, if the user has chosen one or has sent the request twice.
 */
export async function send<T>(
  build: Build<T>,
  key: string,
  choice: IdempotencyChoice,
): Promise<{ outcome: Outcome<T>; told: string | null }> {
  const first = await attempt(build({ idempotencyKey: key, ...faultOf(choice) }));
  const { outcome } = first;
  const is_decided = !("error" in outcome) || outcome.error instanceof ApiError;
  if (!choice.is_open || !is_decided) return { outcome, told: null };
  const told = [
    choice.fault === "" ? null : toldOfFault(choice.fault, first),
    choice.twice
      ? comparison(first, await attempt(build({ idempotencyKey: key })))
      : ownKey(choice) === null
      ? null
      : toldOfOne(first),
  ].filter((text) => text !== null);
  return { outcome, told: told.length === 0 ? null : told.join(" ") };
}

/** A call with the responses to its attempts, and the last one of them. */
interface Attempt<T> {
  outcome: Outcome<T>;
  responses: readonly Exchange["response"][];
  response: Exchange["response"];
}

async function attempt<T>(described: Call<T>): Promise<Attempt<T>> {
  const responses: Exchange["response"][] = [];
  const result = (outcome: Outcome<T>) => (
    { outcome, responses, response: responses.at(-1) ?? null }
  );
  try {
    return result({ value: await change(described, ({ response }) => responses.push(response)) });
  } catch (error) {
    return result({ error });
  }
}

function toldOfFault(fault: string, { responses }: Attempt<unknown>): string {
  const attempts = responses.map((response, index) =>
    `attempt ${index + 1} got ${response?.status ?? "no response"}`
  );
  return `Fault “${label(fault)}”: ${attempts.join(", ")}.`;
}

function replayed({ response }: Attempt<unknown>): boolean {
  return response?.headers["idempotent-replayed"] === "true";
}

function toldOfOne(only: Attempt<unknown>): string | null {
  if (replayed(only)) {
    return "This is the stored response of an earlier request with this key: nothing has happened.";
  }
  return "error" in only.outcome
    ? null
    : "The API stores this response under your key for 24 hours.";
}

function comparison(first: Attempt<unknown>, second: Attempt<unknown>): string {
  const status = second.response?.status;
  if (status === undefined) return "Sent twice: the second request got no response.";
  if (!replayed(second)) {
    return `Sent twice: the second response is ${status} and not a stored one, because the API ` +
      "stores no response after which nothing has happened.";
  }
  const is_same = second.response?.body === first.response?.body && status ===
      first.response?.status;
  return is_same
    ? `Sent twice: the second request got the stored ${status} of the first, byte for byte, and ` +
      "had no effect of its own."
    : `Sent twice: the second request got a stored ${status} that differs from the first response.`;
}

/** The fields, at the end of a form. They are folded away until the user opens them. */
export function IdempotencyFields(props: {
  choice: IdempotencyChoice;
  set: (choice: IdempotencyChoice) => void;
}) {
  const { choice, set } = props;
  const { is_open, key, twice, fault } = choice;
  const field = fieldsOf(choice, (changed) => set({ ...choice, ...changed }));
  const typed = key.trim();
  return (
    <details
      class="idempotency"
      onToggle={({ currentTarget: { open } }) =>
        open !== is_open && set({ ...choice, is_open: open })}
    >
      <summary>Idempotency and faults</summary>
      {is_open && (
        <div class="idempotency-fields">
          <TextField
            {...field("key", "Idempotency key", HEADER)}
            placeholder="A new UUID"
            hint="The same request with the same key has one effect within 24 hours."
            optional
            mono
          />
          <label class="inline">
            <input
              type="checkbox"
              checked={twice}
              onChange={({ currentTarget }) => set({ ...choice, twice: currentTarget.checked })}
            />
            Send the request twice, with one key
          </label>
          <SelectField
            {...field("fault", "Fault of this request", FAULT_HEADER)}
            options={[["", "None"], ...optionsOf(FAULTS.request, label)]}
            hint="The first attempt gets it. After a failure the page retries with the same key."
            optional
          />
          {fault === "delay" && (
            <TextField
              {...field("delay_ms", "Delay in milliseconds", FAULT_HEADER)}
              inputMode="numeric"
            />
          )}
          {typed !== "" && (
            <p>
              <a href={href(["idempotency_keys", typed])}>Stored record of this key</a>
            </p>
          )}
        </div>
      )}
    </details>
  );
}
