/** Messages on a page: failures, results, empty lists, and data that is loading. */

import type { ComponentChildren } from "preact";
import type { Page } from "../../../packages/client/mod.ts";
import { type Failure, failureOf } from "../data/failure.ts";

/** A failure. It can get the focus, and screen readers read it at once. */
export function FailureNotice({ failure, retries }: { failure: Failure; retries?: boolean }) {
  return (
    <div class="notice bad" role="alert" tabIndex={-1}>
      <p>
        <strong>{failure.message}</strong>
        {failure.code && <code>{failure.code}</code>}
      </p>
      {retries && failure.kind === "undecided" && (
        <p>
          Nothing that you typed is lost. Send it again: the request has the same idempotency key,
          so it takes effect at most once.
        </p>
      )}
      {failure.request_id && <p class="quiet">Request {failure.request_id}</p>}
    </div>
  );
}

/** The result of an action. */
export function Notice(props: { kind: "good" | "bad"; children: ComponentChildren }) {
  return <div class={`notice ${props.kind}`} role="status">{props.children}</div>;
}

/** A place without content. */
export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children}
    </div>
  );
}

/** Tells that a list without a pager shows only its newest items. */
export function Cut({ page: { data, has_more } }: { page: Page<unknown> }) {
  if (!has_more) return null;
  return <p class="quiet">The newest {data.length} are shown. There are more.</p>;
}

/**
 * A page without items. Either the list is empty, or the API has read its maximum of rows for a
 * page and found no match.
 */
export function NoItems(props: { page: Page<unknown>; children: ComponentChildren }) {
  if (!props.page.has_more) return props.children;
  return (
    <Empty title="None found yet">
      <p>The API has searched the newest ones. Continue with the older ones.</p>
    </Empty>
  );
}

/** Placeholder rows while data is loading. */
function Loading({ rows = 3, label }: { rows?: number; label: string }) {
  return (
    <div class="loading" role="status" aria-label={`Loading ${label}`}>
      {Array.from({ length: rows }, (_, index) => <span key={index} class="bone" />)}
    </div>
  );
}

/**
 * Shows the data of `useLive`, placeholders while it loads, and its failure. If a later read fails,
 * the data stays visible.
 */
export function Reading<T>(props: {
  label: string;
  live: { data: T | null; error: unknown };
  rows?: number;
  children: (data: T) => ComponentChildren;
}) {
  const { data, error } = props.live;
  return (
    <>
      {error !== null && <ReadingFailure label={props.label} error={error} />}
      {data !== null
        ? props.children(data)
        : error === null && <Loading label={props.label} rows={props.rows ?? 3} />}
    </>
  );
}

function ReadingFailure({ label, error }: { label: string; error: unknown }) {
  const failure = failureOf(error);
  const is_repeated = failure.kind === "undecided";
  return (
    <div class={`notice ${is_repeated ? "warn" : "bad"}`} role="alert">
      <p>
        <strong>{failure.message}</strong>
        {failure.code && <code>{failure.code}</code>}
      </p>
      <p>
        {is_repeated
          ? `The console requests ${label} again until the API responds.`
          : `Cannot show ${label}.`}
      </p>
      {failure.request_id && <p class="quiet">Request {failure.request_id}</p>}
    </div>
  );
}
