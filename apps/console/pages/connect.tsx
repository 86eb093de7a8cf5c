/** The first page. It asks for a test key and checks its form before it sends anything. */

import { batch, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { apiBaseUrl, isLocalStart } from "../data/api_base_url.ts";
import { clearLog, openClient } from "../data/calls.ts";
import { type Failure, failureOf } from "../data/failure.ts";
import { FieldFault } from "../parts/fields.tsx";
import { Logo } from "../parts/page_parts.tsx";
import { linked_key } from "../data/route.ts";
import { is_stored, judgeKey, type PageKey, session, session_end } from "../data/session.ts";

/** Asks for the key, and opens the session if the API accepts it. */
export function Connect() {
  const base_url = apiBaseUrl();
  const [text, setText] = useState("");
  const [asking, setAsking] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(
    session_end.value === null ? null : failureOf(session_end.value),
  );
  const [keep, setKeep] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), [failure]);
  // The page was opened by a link that carries a key.
  useSignalEffect(() => {
    const linked = linked_key.value;
    if (linked === null) return;
    linked_key.value = null;
    setText(linked);
    connect(linked);
  });

  const connect = async (typed: string) => {
    if (asking) return;
    const api_key = typed.trim();
    const refusal = refusalOf(api_key);
    setFailure(refusal);
    if (refusal) {
      // A live key must not stay visible.
      if (refusal.code === "test_key_required") setText("");
      return;
    }
    setAsking(true);
    try {
      const { scopes } = await openClient(api_key, base_url, { maxRetries: 0 }).apiKeys.own();
      open({ api_key, scopes });
    } catch (error) {
      setFailure(failureOf(error));
    } finally {
      setAsking(false);
    }
  };

  const open = (key: PageKey) => {
    clearLog();
    batch(() => {
      session_end.value = null;
      is_stored.value = keep;
      session.value = { ...key, base_url };
    });
  };

  return (
    <main class="connect">
      <div class="connect-card">
        <Logo />
        <h1>Open your sandbox</h1>
        <p class="lead">
          Make payments with test cards, IBANs and wallets, move them through their lifecycle, and
          watch the ledger and the webhooks. No real money moves.
        </p>
        <form
          class="form"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            connect(text);
          }}
        >
          <div class="field">
            <label for="key">Test key</label>
            <input
              ref={input}
              id="key"
              type="text"
              class="mono"
              value={text}
              placeholder="sk_test_…"
              autoComplete="off"
              autoCapitalize="off"
              spellcheck={false}
              aria-invalid={failure ? "true" : undefined}
              aria-describedby={failure ? "key-error key-hint" : "key-hint"}
              onInput={(event) => setText(event.currentTarget.value)}
            />
            <div role="alert">{failure && <FieldFault id="key-error" failure={failure} />}</div>
            <p class="hint" id="key-hint">
              The page sends the key to this API only. It refuses live keys and does not send them.
            </p>
          </div>
          <div class="field">
            <label class="check">
              <input
                type="checkbox"
                checked={keep}
                aria-describedby="keep-hint"
                onChange={(event) => setKeep(event.currentTarget.checked)}
              />
              Keep the key in this tab
            </label>
            <p class="hint" id="keep-hint">
              The session storage of the browser then holds the key until you close the tab or
              forget the key. Otherwise the key is only in the memory of the page, and a reload asks
              for it again.
            </p>
          </div>
          <button type="submit" class="primary wide" aria-disabled={asking}>
            {asking ? "Checking the key…" : "Open the sandbox"}
          </button>
        </form>
        <p class="quiet">
          {isLocal(base_url)
            ? (
              <>
                <code>deno task start</code>{" "}
                prints a link that opens this page with a test key. The key is also in{" "}
                <code>.local/credentials.json</code>.
              </>
            )
            : (
              <>
                Requests go to <code>{base_url}</code>.
              </>
            )}
        </p>
        {isLocalStart() && (
          <p>
            <a href="../docs/">Documentation</a> · <a href="../docs/reference/">API reference</a>
          </p>
        )}
      </div>
    </main>
  );
}

function refusalOf(api_key: string): Failure | null {
  const failure = { kind: "unsent", code: null, param: null, request_id: null } as const;
  const verdict = judgeKey(api_key);
  if (verdict === "test") return null;
  if (verdict === "live") {
    const message = "This is a live key. The console takes test keys only. It has sent nothing.";
    return { ...failure, code: "test_key_required", message };
  }
  const message = api_key === ""
    ? "Paste a test key first."
    : "This is not a complete test key: it must be sk_test_ and 49 letters and digits.";
  return { ...failure, message };
}

function isLocal(base_url: string): boolean {
  return /^https?:\/\/(127\.0\.0\.1|localhost)(:|\/)/.test(base_url);
}
