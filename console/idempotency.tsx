/**
 * The idempotency of a form: a key of the user's own, and the request sent twice. A second request
 * with the same key gets the stored response of the first one and has no effect (contract §5).
 */

import { ApiError, type Exchange } from "../client/mod.ts";
import { MAX_IDEMPOTENCY_KEY } from "../shared/schema/limits.ts";
import { type Call, change } from "./calls.ts";
import { FieldError } from "./failure.ts";
import { TextField } from "./fields.tsx";
import { href } from "./route.ts";

/** The name of the header, and of the field in errors of the API. */
const HEADER = "Idempotency-Key";
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** The choice of the user. */
interface IdempotencyChoice {
  /** Whether the fields are shown. Otherwise they have no effect. */
  is_open: boolean;
  /** Empty: the form makes a new key. */
  key: string;
  twice: boolean;
}

export const FIRST_CHOICE: IdempotencyChoice = { is_open: false, key: "", twice: false };

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

/**
 * Makes a call once or twice. `told` says what happened to the idempotency key, if the user has
 * chosen one or has sent the request twice.
 */
export async function send<T>(
  described: Call<T>,
  choice: IdempotencyChoice,
): Promise<{ outcome: Outcome<T>; told: string | null }> {
  const first = await attempt(described);
  const is_decided = !("error" in first.outcome) || first.outcome.error instanceof ApiError;
  if (!choice.is_open || !is_decided) return { ...first, told: null };
  if (choice.twice) {
    return { outcome: first.outcome, told: comparison(first, await attempt(described)) };
  }
  return { outcome: first.outcome, told: ownKey(choice) === null ? null : toldOfOne(first) };
}

/** A call with the last exchange of its requests. */
interface Attempt<T> {
  outcome: Outcome<T>;
  response: Exchange["response"];
}

async function attempt<T>(described: Call<T>): Promise<Attempt<T>> {
  let response: Exchange["response"] = null;
  const observe = (exchange: Exchange) => {
    response = exchange.response;
  };
  try {
    return { outcome: { value: await change(described, observe) }, response };
  } catch (error) {
    return { outcome: { error }, response };
  }
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
  const { is_open, key, twice } = choice;
  const typed = key.trim();
  return (
    <details
      class="idempotency"
      onToggle={({ currentTarget: { open } }) =>
        open !== is_open && set({ ...choice, is_open: open })}
    >
      <summary>Idempotency</summary>
      {is_open && (
        <div class="idempotency-fields">
          <TextField
            label="Idempotency key"
            params={[HEADER]}
            value={key}
            set={(text) => set({ ...choice, key: text })}
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
