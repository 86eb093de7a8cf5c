/** The dialogs that make and rotate an API key. */

import type { ApiKey, ApiKeyWithSecret, Scope } from "../../../packages/client/mod.ts";
import { SCOPES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { useClock } from "../data/clock.ts";
import { useDraft } from "../data/draft.ts";
import { Boxes, Choices, OverlapField, TextField } from "../parts/fields.tsx";
import { FormDialog } from "../parts/form.tsx";
import { replaceSecret, session } from "../data/session.ts";
import { EXAMPLE_TIME, timeOf } from "../data/times.ts";

/** `done` gets the key with its secret, and returns the message. */
interface KeyDialogProps {
  done: (key: ApiKeyWithSecret) => string;
  close: () => void;
}

/** The values of a new key. It has all scopes, or those in `scopes`. */
const FIRST = {
  name: "",
  wants: "all" as "all" | "some",
  scopes: ["payments:read"] as readonly Scope[],
  expires_at: "",
};

/** Whether the page uses a secret of the key. */
export function isOwn({ secrets }: ApiKey): boolean {
  const { api_key } = session.value!;
  return secrets.some(({ prefix, last4 }) => api_key.startsWith(prefix) && api_key.endsWith(last4));
}

export function NewKeyDialog(props: KeyDialogProps) {
  const { draft, change, field, kept } = useDraft(FIRST, "key");
  const { name, wants, scopes, expires_at } = draft;
  const clock = useClock();
  const now_ms = clock === null ? Date.now() : Date.parse(clock.now);
  return (
    <FormDialog
      {...props}
      title="Make an API key"
      kept={kept}
      build={(options) =>
        call("apiKeys", "create", {
          name,
          ...(wants === "some" && { scopes: [...scopes] }),
          ...(expires_at.trim() !== "" && { expires_at: timeOf("expires_at", expires_at, now_ms) }),
        }, options)}
      act="Make key"
      acting="Making it…"
    >
      <TextField {...field("name", "Name")} placeholder="Reports" />
      <Choices
        label="Scopes"
        name="scopes"
        value={wants}
        set={(wants) => change({ wants })}
        options={[
          ["all", "All scopes"],
          ["some", "Chosen scopes"],
        ]}
      />
      {wants === "some" && (
        <Boxes
          label="Scopes"
          param="scopes"
          names={SCOPES}
          chosen={scopes}
          set={(scopes) => change({ scopes })}
        />
      )}
      <TextField
        {...field("expires_at", "Ends at")}
        placeholder={`7 days, or ${EXAMPLE_TIME}`}
        hint="By default, and at the latest, with the key of this page."
        optional
      />
    </FormDialog>
  );
}

/** Adds a secret to a key. */
export function RotateKeyDialog({ of: key, ...props }: KeyDialogProps & { of: ApiKey }) {
  const { draft, field } = useDraft({ expires_in: "86400" });
  const is_own = isOwn(key);
  return (
    <FormDialog
      {...props}
      title="Rotate the API key"
      build={(options) => ({
        ...call("apiKeys", "rotate", key.id, { expires_in: Number(draft.expires_in) }, options),
        ...(is_own && { take: ({ secret }: ApiKeyWithSecret) => replaceSecret(secret) }),
      })}
      act="Rotate key"
    >
      <p>
        {key.name} gets a new secret. Its idempotency keys stay valid.
        {is_own && " This page uses the key, and continues with the new secret."}
      </p>
      <OverlapField
        {...field("expires_in", "Older secrets end")}
        hint="At most 5 secrets of a key work: a sixth ends the oldest."
      />
    </FormDialog>
  );
}
