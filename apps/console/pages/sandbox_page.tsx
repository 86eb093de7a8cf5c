/** The page of a disposable sandbox. The sandbox of a key that the operator has made has none. */

import type { DisposableSandbox } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { Card, Title } from "../parts/page_parts.tsx";
import {
  DeleteSandboxButton,
  LinkButton,
  sandboxName,
  SwitchButton,
} from "../forms/sandboxes_dialog.tsx";
import { NewSecret } from "../parts/secret_card.tsx";
import { useLive } from "../data/live.ts";
import { Reading } from "../parts/notice.tsx";
import { session } from "../data/session.ts";
import { Fact, Id } from "../parts/text.tsx";

/** The page. A disposable sandbox cannot read itself, so the session tells of the present one. */
export function SandboxPage({ id }: { id: string }) {
  const present = session.value?.disposable?.sandbox;
  const own = present?.id === id ? present : null;
  const live = useLive(own ? null : call("sandboxes", "retrieve", id), { logged: true });
  const data = own ?? live.data;
  return (
    <>
      {data === null && <h1 tabIndex={-1}>Sandbox</h1>}
      <Reading label="this sandbox" live={{ data, error: live.error }}>
        {(sandbox) => <SandboxView sandbox={sandbox} is_own={own !== null} />}
      </Reading>
      {data === null && live.error !== null && (
        <p class="quiet">
          Only a disposable sandbox has a page, for keys of the sandbox that has made it, and until
          24 hours after its end.
        </p>
      )}
    </>
  );
}

function SandboxView({ sandbox, is_own }: { sandbox: DisposableSandbox; is_own: boolean }) {
  const { id, seed, created_at, expires_at } = sandbox;
  const is_over = Date.parse(expires_at) <= Date.now();
  return (
    <>
      <Title
        title={sandboxName(sandbox)}
        under={
          <>
            <span class={`status ${is_over ? "off" : "good"}`}>{is_over ? "Ended" : "Works"}</span>
            {is_own && <span class="status info">This page</span>}
            <Id id={id} />
          </>
        }
      >
        {!is_own && !is_over && (
          <div class="title-actions">
            <SwitchButton sandbox={sandbox} />
            <LinkButton sandbox={sandbox} />
            <DeleteSandboxButton sandbox={sandbox} class="danger" />
          </div>
        )}
      </Title>
      <NewSecret of={id} />
      <Card title="Details" class="details">
        <dl class="facts">
          <Fact name="Seed">{seed ?? "None"}</Fact>
          <Fact name="Created" at={created_at} />
          <Fact name={is_over ? "Ended" : "Ends"} at={expires_at} />
        </dl>
      </Card>
    </>
  );
}
