/** The dialog that makes an API key for the same sandbox. */

import { useContext, useState } from "preact/hooks";
import type { ApiKeyWithSecret, Scope } from "../../../packages/client/mod.ts";
import { SCOPES } from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { Dialog } from "../parts/dialog.tsx";
import { concerns } from "../data/failure.ts";
import { Choices, FieldFault, FormFailure, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { EXAMPLE_TIME, timeOf } from "../data/times.ts";

/** The checked scopes when the user begins to choose. */
const FIRST_CHOICE: readonly Scope[] = ["payments:read"];

/** The dialog. `done` gets the key with its secret. */
export function NewKeyDialog(props: { done: (key: ApiKeyWithSecret) => void; close: () => void }) {
  const { done, close } = props;
  const [name, setName] = useState("");
  const [wants, setWants] = useState<"all" | "some">("all");
  const [scopes, setScopes] = useState(FIRST_CHOICE);
  const [expires_at, setExpiresAt] = useState("");
  return (
    <Dialog title="Make an API key" close={close}>
      <Form
        build={(options) =>
          call("apiKeys", "create", {
            name,
            ...(wants === "some" && { scopes: [...scopes] }),
            ...(expires_at.trim() !== "" && { expires_at: timeOf("expires_at", expires_at) }),
          }, options)}
        done={done}
        actions={(sending) => (
          <>
            <button type="submit" class="primary" aria-disabled={sending}>
              {sending ? "Making it…" : "Make key"}
            </button>
            <button type="button" onClick={close}>Cancel</button>
          </>
        )}
      >
        <TextField
          label="Name"
          params={["name"]}
          value={name}
          set={setName}
          placeholder="Reports"
        />
        <Choices
          label="Scopes"
          name="scopes"
          class="segments"
          value={wants}
          set={setWants}
          options={[
            { value: "all", label: "All scopes" },
            { value: "some", label: "Chosen scopes" },
          ]}
        />
        {wants === "some" && <ScopeBoxes scopes={scopes} set={setScopes} />}
        <TextField
          label="Ends at"
          params={["expires_at"]}
          value={expires_at}
          set={setExpiresAt}
          placeholder={EXAMPLE_TIME}
          hint="By default, and at the latest, with the key of this page."
          optional
        />
      </Form>
    </Dialog>
  );
}

function ScopeBoxes(
  { scopes, set }: { scopes: readonly Scope[]; set: (scopes: readonly Scope[]) => void },
) {
  const failure = useContext(FormFailure);
  const fault = concerns(failure, ["scopes"]) ? failure : null;
  return (
    <fieldset class="boxes">
      <legend>Scopes</legend>
      {SCOPES.map((scope) => (
        <label key={scope}>
          <input
            type="checkbox"
            checked={scopes.includes(scope)}
            aria-invalid={fault ? "true" : undefined}
            onChange={({ currentTarget: { checked } }) =>
              set(checked ? [...scopes, scope] : scopes.filter((other) => other !== scope))}
          />
          <code>{scope}</code>
        </label>
      ))}
      {fault && <FieldFault id="scopes-error" failure={fault} />}
    </fieldset>
  );
}
