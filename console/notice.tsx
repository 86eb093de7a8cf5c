/** Messages on the page: failures with their code, results, and places that are empty or waiting. */

import type { ComponentChildren } from "preact";
import type { Page } from "../client/mod.ts";
import { type Failure, failureOf } from "./failure.ts";

/** A failure, to be found by keyboard and read out at once. */
export function FailureNotice({ failure, retries }: { failure: Failure; retries?: boolean }) {
  return (
    <div class="notice bad" role="alert" tabIndex={-1}>
      <p>
        <strong>{failure.message}</strong>
        {failure.code && <code>{failure.code}</code>}
      </p>
      {retries && failure.kind === "unanswered" && (
        <p>
          Nothing that you typed is lost. Send it again: it carries the same idempotency key, so it
          takes effect once at most.
        </p>
      )}
      {failure.request_id && <p class="quiet">Request {failure.request_id}</p>}
    </div>
  );
}

/** Something that went as it should. */
export function Notice(props: { kind: "good" | "bad"; children: ComponentChildren }) {
  return <div class={`notice ${props.kind}`} role="status">{props.children}</div>;
}

/** A place with nothing in it yet. */
export function Empty(props: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children}
    </div>
  );
}

/** Says that a list which is shown without pages goes on. */
export function Cut({ page: { data, has_more } }: { page: Page<unknown> }) {
  if (!has_more) return null;
  return <p class="quiet">The newest {data.length} are shown. The API has more.</p>;
}

/**
 * A page without items: the list is empty, or the API has read as many rows as it reads for one
 * page and found no match.
 */
export function NoItems(props: { page: Page<unknown>; children: ComponentChildren }) {
  if (!props.page.has_more) return props.children;
  return (
    <Empty title="None found yet">
      <p>The API has looked through the newest ones. Go on with the older ones.</p>
    </Empty>
  );
}

/** Rows that stand where data will be. */
function Loading({ rows = 3, label }: { rows?: number; label: string }) {
  return (
    <div class="loading" role="status" aria-label={`Loading ${label}`}>
      {Array.from({ length: rows }, (_, index) => <span key={index} class="bone" />)}
    </div>
  );
}

/**
 * What stands for a reading: its data, bones while it loads, its failure. Data that is there stays
 * while later readings fail.
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
  const goes_on = failure.kind === "unanswered";
  return (
    <div class={`notice ${goes_on ? "warn" : "bad"}`} role="alert">
      <p>
        <strong>{failure.message}</strong>
        {failure.code && <code>{failure.code}</code>}
      </p>
      <p>{goes_on ? `Asking again for ${label} until it answers.` : `Cannot show ${label}.`}</p>
      {failure.request_id && <p class="quiet">Request {failure.request_id}</p>}
    </div>
  );
}
