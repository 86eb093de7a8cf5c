/** The dialog that sends a request of the log again, as a retry or as a new request. */

import { useState } from "preact/hooks";
import type { LoggedRequest } from "../../../packages/client/mod.ts";
import { call_log, requestCall } from "../data/calls.ts";
import { FieldError } from "../data/failure.ts";
import { Choices, TextField } from "../parts/fields.tsx";
import { FormDialog } from "../parts/form.tsx";
import { bodyToSend, endOfPath, isChange, LEFT_OUT, requestOf } from "../data/logged_request.ts";
import { go } from "../data/route.ts";

/** Most lines of the body that are visible at once. */
const BODY_LINES = 14;

type KeyChoice = "same" | "new";

/** The dialog. A change opens the page of the new request: the log has no reads of pages. */
export function SendAgainDialog({ request, close }: { request: LoggedRequest; close: () => void }) {
  const { method, idempotency_key } = request;
  const is_change = isChange(request);
  const has_body = is_change && Object.keys(request.request_body ?? {}).length > 0;
  const [text, setText] = useState(() => JSON.stringify(bodyToSend(request), null, 2));
  const [key, setKey] = useState<KeyChoice>(idempotency_key === null ? "new" : "same");

  const done = () => {
    const { response } = call_log.value[0]!.exchange!;
    const { status, headers } = response!;
    const id = headers["request-id"];
    if (is_change && id !== undefined) go(["requests", id]);
    return headers["idempotent-replayed"] === undefined
      ? `Sent again: ${status}.`
      : `Sent again: ${status}, the stored response of the first request. Nothing happened twice.`;
  };
  return (
    <FormDialog
      title="Send again"
      close={close}
      chooses_key
      build={(options) =>
        requestCall(
          requestOf(request, bodyOf(text)),
          key === "same" ? { idempotencyKey: idempotency_key! } : options,
        )}
      done={done}
      act="Send"
    >
      <p>
        <code>{method}</code> <code>{endOfPath(request)}</code>
      </p>
      {idempotency_key !== null && (
        <Choices
          label="Idempotency key"
          name="key"
          value={key}
          set={setKey}
          options={[
            ["same", "The same key"],
            ["new", "A new key"],
          ]}
        />
      )}
      <p class="quiet">{effectOf(is_change, key)}</p>
      {has_body && (
        <TextField
          label="Body"
          params={["body"]}
          value={text}
          set={setText}
          rows={Math.min(text.split("\n").length, BODY_LINES)}
          mono
          hint="The log leaves out card numbers, security codes and IBANs. Test values with the same
            last digits stand in their place: check them."
        />
      )}
      {is_change && request.request_body === null && (
        <p class="notice warn">The log has not stored the body, so the request has none.</p>
      )}
    </FormDialog>
  );
}

function effectOf(is_change: boolean, key: KeyChoice): string {
  if (!is_change) return "A read changes nothing.";
  return key === "same"
    ? "A retry. Within 24 hours of the first request the API returns its stored response, and " +
      "nothing happens twice. Another body is 409 idempotency_conflict."
    : "A new request: what it does happens once more.";
}

/** Parses the body. Throws `FieldError`. */
function bodyOf(text: string): Record<string, unknown> {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new FieldError("body", `Not JSON: ${(error as Error).message}`);
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new FieldError("body", 'Not a JSON object such as {"amount": 1999}');
  }
  if (JSON.stringify(body).includes(`"${LEFT_OUT}"`)) {
    throw new FieldError("body", `Replace each ${LEFT_OUT} by a value: the log has left it out`);
  }
  return body as Record<string, unknown>;
}
