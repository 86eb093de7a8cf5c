/** Messages on a page: failures, results, empty lists, and data that is loading. */

import type { ComponentChildren } from "preact";
import type { Page, Payment, Transfer } from "../../../packages/client/mod.ts";
import { type Failure, failureOf } from "../data/failure.ts";
import { LacksScope } from "../data/permissions.ts";

/** A failure. It can get the focus, and screen readers read it at once. */
export function FailureNotice(props: {
  failure: Failure;
  tone?: "bad" | "warn";
  retries?: boolean;
  children?: ComponentChildren;
}) {
  const { failure: { message, code, kind, request_id }, tone = "bad", retries, children } = props;
  return (
    <div class={`notice ${tone}`} role="alert" tabIndex={-1}>
      <p>
        <strong>{message}</strong>
        {code && <code>{code}</code>}
      </p>
      {retries && kind === "undecided" && (
        <p>
          Nothing that you typed is lost. Send it again: the request has the same idempotency key,
          so it takes effect at most once.
        </p>
      )}
      {children}
      {request_id && <p class="quiet">Request {request_id}</p>}
    </div>
  );
}

/** The reason why a payment or a transfer has failed. Renders nothing for any other one. */
export function FailedNotice(props: {
  of: Pick<Payment | Transfer, "failure_code" | "failure_message" | "return_code">;
  /** The text if there is no message. */
  otherwise: string;
  children?: ComponentChildren;
}) {
  const { of: { failure_code, failure_message, return_code }, otherwise, children } = props;
  return failure_code && (
    <p class="notice bad">
      {failure_message ?? otherwise} <code>{failure_code}</code>
      {return_code && <code>{return_code}</code>}
      {children}
    </p>
  );
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
      <p>The API has read a part of the list. “Older” continues the search.</p>
    </Empty>
  );
}

/** Shows the items of a list, or that there are none. `none` is the title then. */
export function ReadingList<T>(props: {
  label: string;
  live: { data: Page<T> | null; error: unknown };
  rows?: number;
  none: string;
  /** The content of an empty list. */
  about_none?: ComponentChildren;
  /** Whether a pager follows. Otherwise the list says that it is cut. */
  is_paged?: boolean;
  children: (items: readonly T[]) => ComponentChildren;
}) {
  const { label, live, rows = 2, none, about_none, is_paged = false, children } = props;
  return (
    <Reading label={label} live={live} rows={rows}>
      {(page) =>
        page.data.length > 0
          ? (
            <>
              {children(page.data)}
              {!is_paged && <Cut page={page} />}
            </>
          )
          : (
            <NoItems page={page}>
              <Empty title={none}>{about_none}</Empty>
            </NoItems>
          )}
    </Reading>
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
  const { label, live: { data, error }, rows = 3, children } = props;
  return (
    <>
      {error !== null && <ReadingFailure label={label} error={error} />}
      {data !== null && children(data)}
      {data === null && error === null && (
        <div class="loading" role="status" aria-label={`Loading ${label}`}>
          {Array.from({ length: rows }, (_, index) => <span key={index} class="bone" />)}
        </div>
      )}
    </>
  );
}

function ReadingFailure({ label, error }: { label: string; error: unknown }) {
  if (error instanceof LacksScope) {
    return (
      <p class="quiet">
        The key of this page cannot read {label}. It lacks the scope <code>{error.scope}</code>.
      </p>
    );
  }
  const failure = failureOf(error);
  const is_repeated = failure.kind === "undecided";
  return (
    <FailureNotice failure={failure} tone={is_repeated ? "warn" : "bad"}>
      <p>
        {is_repeated
          ? `The console requests ${label} again until the API responds.`
          : `Cannot show ${label}.`}
      </p>
    </FailureNotice>
  );
}
